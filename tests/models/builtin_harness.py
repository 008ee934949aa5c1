# ruff: noqa: E501  the texts of a harness stand as its author would write them
"""A small harness written by hand for the tests of the builtin policy: a plant shop's live room.

Four skills, four tools, six products. Nothing of it occurs in the policy's source.
"""

import json
import re
from typing import Any

SKILLS = {
    "plant-facts": (
        "Answers about one plant: how much it costs, its light and water needs, its size, whether it is "
        "left in stock. 植物的价格、浇水、光照、大小、库存，多少钱，怎么养，还有吗。"
    ),
    "parcel": (
        "Answers about parcels and orders: shipping time, delivery, a plant that arrived broken, "
        "returns and refunds. 发货、快递、物流、退货、退款、收到坏了。Not for the price of a plant."
    ),
    "small-talk": (
        "Greets viewers, takes thanks and praise, jokes and talks about the host when no plant is asked "
        "about. 打招呼、感谢、夸奖、闲聊、主播。"
    ),
    "which-one": (
        "Helps to choose: compares two plants, or suggests one for a room, a beginner, a gift, a budget. "
        "推荐、对比、哪个好、选哪个、送人、新手。"
    ),
}

BODIES = {
    "plant-facts": """# Plant facts
## Rules
- Say only what the plant sheet says.
## Tools
- `plant_sheet`: one plant's sheet with price, light, water, size and stock.
## Reply patterns
- **price**: how much it costs, the price, 多少钱, 价格
  - en: {name} is {price} yuan.
  - zh: {zh_name}现在{price}元。
- **water**: how often to water it, watering, dry out, 浇水, 多久浇一次
  - en: Water {name} {water}.
  - zh: {zh_name}{zh_water}浇一次水。
- **light**: how much light or sun it needs, dark room, window, 光照, 晒太阳
  - en: {name} likes {light}.
  - zh: {zh_name}喜欢{zh_light}。
- **stock**: whether it is still available, how many are left, 还有吗, 库存
  - en: {stock} of {name} are left.
  - zh: {zh_name}还有{stock}盆。
- **unknown**: the sheet does not have the information, 没有这个信息
  - en: I don't have that detail on the sheet.
  - zh: 资料里没有写这一点。
""",
    "parcel": """# Parcels
## Tools
- `parcel_terms`: what holds for shipping, returns, broken plants; call it first with the topic.
## Reply patterns
- **terms**: shipping, returns, broken on arrival, refunds, 发货, 退货, 坏了
  - en: {text}
  - zh: {zh_text}
""",
    "small-talk": """# Small talk
## Reply patterns
- **hello**: a greeting, hi, hello, good evening, 你好, 大家好
  - en: Hello and welcome!
  - zh: 你好，欢迎来到直播间！
- **thanks**: thank you, praise, love it, 谢谢, 好看, 喜欢
  - en: Thank you, that is kind!
  - zh: 谢谢你的喜欢！
- **chat**: jokes, the weather, the host's day, 闲聊, 今天, 主播
  - en: I am having a lovely time with you all.
  - zh: 今天和大家聊得很开心。
""",
    "which-one": """# Which one
## Tools
- `weigh_up`: compares two plants by their numbers; use it for which is better, difference, 对比.
- `find_plant`: finds a plant for a need, a room, a gift, a budget; use it to suggest, 推荐.
## Reply patterns
- **compared**: the difference between two, which is better or cheaper, 对比, 哪个好, 区别
  - en: {first.name} is {first.price} yuan, {second.name} is {second.price} yuan; {cheaper} is cheaper.
  - zh: {first.zh_name}{first.price}元，{second.zh_name}{second.price}元，{zh_cheaper}更便宜。
- **suggested**: a suggestion for a need, recommend, good for, 推荐, 适合, 送人
  - en: I suggest {best.name}, number {best.number}.
  - zh: 推荐{best.number}号{best.zh_name}。
""",
}

PRODUCTS = (
    (1, "Snake plant", "虎尾兰", 39, "every three weeks", "three weeks", "any light, even shade"),
    (2, "Boston fern", "波士顿蕨", 28.5, "twice a week", "half a week", "soft light"),
    (3, "Money tree", "发财树", 129, "every ten days", "ten days", "bright light"),
    (4, "Peace lily", "白掌", 45, "once a week", "one week", "half shade"),
    (5, "Monstera", "龟背竹", 88, "once a week", "one week", "bright, no direct sun"),
    (6, "Mini cactus", "迷你仙人掌", 12, "once a month", "one month", "full sun"),
)

SYSTEM = """You host the live room of a plant shop. Reply in the viewer's language, at most 60 words.

## Skills
{skills}

## Plants in this room
{products}
{now}
"""


def tool(name: str, description: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """One tool definition in OpenAI form."""
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(required),
            },
        },
    }


NUMBER = {"type": "integer", "description": "The plant's link number."}


def tools(skills: dict[str, str] = SKILLS) -> list[dict[str, Any]]:
    """The loader and the four tools."""
    return [
        tool(
            "open_skill",
            "Read a skill before replying.",
            {"name": {"type": "string", "enum": list(skills)}},
            "name",
        ),
        tool(
            "plant_sheet",
            "One plant's sheet: price, light, water, size, stock. 一种植物的资料。",
            {"link": NUMBER},
            "link",
        ),
        tool(
            "weigh_up",
            "Two plants side by side. 两种植物对比。",
            {
                "links": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "minItems": 2,
                    "maxItems": 2,
                }
            },
            "links",
        ),
        tool(
            "find_plant",
            "Plants that fit a need. 按需求找植物。",
            {
                "keyword": {"type": "string", "description": "What to look for."},
                "max_price": {"type": "number", "description": "Budget in yuan."},
            },
            "keyword",
        ),
        tool(
            "parcel_terms",
            "The shop's terms for parcels. 发货和售后条款。",
            {
                "topic": {
                    "type": "string",
                    "enum": ["shipping", "returns", "broken"],
                    "description": "shipping = when it ships, delivery 发货; returns = send back, refund "
                    "退货退款; broken = arrived damaged 坏了.",
                }
            },
            "topic",
        ),
    ]


def request(
    comment: str,
    *,
    skills: dict[str, str] = SKILLS,
    offered: list[dict[str, Any]] | None = None,
    current: int | None = 5,
    host: str = "",
    history: str = "",
    comments: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The first wire request for a comment."""
    listed = "\n".join(f"- {name}: {text}" for name, text in skills.items())
    goods = "\n".join(f"- link {n}: {name} / {zh} (plants)" for n, name, zh, *_ in PRODUCTS)
    now = f"\nNow presented: link {current}" if current else ""
    parts = []
    if history:
        parts.append(f"## Earlier in this conversation\n{history}")
    if host:
        parts.append(f"## What the host said last\n- {host}")
    said = "\n".join(f"- [v{i}] {text}" for i, text in enumerate(comments or (comment,), 1))
    parts.append(f"## Viewer comments\n{said}")
    system = SYSTEM.format(skills=listed, products=goods, now=now)
    return {
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": "\n\n".join(parts)},
        ],
        "tools": offered if offered is not None else tools(skills),
        "seed": 0,
    }


def sheet(number: int) -> dict[str, Any]:
    """What `plant_sheet` answers."""
    for n, name, zh, price, water, zh_water, light in PRODUCTS:
        if n == number:
            return {
                "number": n,
                "name": name,
                "zh_name": zh,
                "price": price,
                "water": water,
                "zh_water": zh_water,
                "light": light,
                "zh_light": light,
                "stock": 7 * n,
            }
    return {"error": f"no link {number}"}


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    """The JSON text of a call's result, under the tools' first names."""
    if name == "open_skill":
        return BODIES[arguments["name"]]
    if name == "plant_sheet":
        found: dict[str, Any] = sheet(arguments["link"])
    elif name == "weigh_up":
        first, second = (sheet(n) for n in arguments["links"])
        cheaper = min((first, second), key=lambda s: s["price"])
        found = {
            "first": first,
            "second": second,
            "cheaper": cheaper["name"],
            "zh_cheaper": cheaper["zh_name"],
        }
    elif name == "find_plant":
        found = {"best": sheet(1), "count": 1}
    else:
        topic = arguments["topic"]
        found = {"topic": topic, "text": f"Terms on {topic}.", "zh_text": f"条款：{topic}。"}
    return json.dumps(found, ensure_ascii=False)


# (comment, skill, tool or None, arguments that must be among the call's)
PROBES: tuple[tuple[str, str, str | None, dict[str, Any]], ...] = (
    ("How much is #3?", "plant-facts", "plant_sheet", {"link": 3}),
    ("what's the price of the peace lily", "plant-facts", "plant_sheet", {"link": 4}),
    ("how often should I water this one?", "plant-facts", "plant_sheet", {"link": 5}),
    ("does link 2 need a lot of sun", "plant-facts", "plant_sheet", {"link": 2}),
    ("is the money tree still available?", "plant-facts", "plant_sheet", {"link": 3}),
    ("any left of number six", "plant-facts", "plant_sheet", {"link": 6}),
    ("would the snake plant survive in a dark bathroom", "plant-facts", "plant_sheet", {"link": 1}),
    ("how tall does it get?", "plant-facts", "plant_sheet", {"link": 5}),
    ("when will my order ship?", "parcel", "parcel_terms", {"topic": "shipping"}),
    (
        "my fern came with snapped leaves, the pot is in pieces",
        "parcel",
        "parcel_terms",
        {"topic": "broken"},
    ),
    ("can I send it back if I don't like it", "parcel", "parcel_terms", {"topic": "returns"}),
    ("how long does delivery to Chengdu take", "parcel", "parcel_terms", {"topic": "shipping"}),
    ("I want my money back", "parcel", "parcel_terms", {"topic": "returns"}),
    ("hi everyone!", "small-talk", None, {}),
    ("thank you so much, you are great", "small-talk", None, {}),
    ("lol you are so funny", "small-talk", None, {}),
    ("which is better, #1 or #4?", "which-one", "weigh_up", {"links": [1, 4]}),
    ("difference between the fern and the cactus?", "which-one", "weigh_up", {"links": [2, 6]}),
    ("can you suggest something for my desk at work", "which-one", "find_plant", {}),
    ("I need a gift for my mum under 100 yuan", "which-one", "find_plant", {"max_price": 100}),
    ("3号多少钱", "plant-facts", "plant_sheet", {"link": 3}),
    ("白掌多久浇一次水啊", "plant-facts", "plant_sheet", {"link": 4}),
    ("这个还有货吗", "plant-facts", "plant_sheet", {"link": 5}),
    ("二号链接要晒太阳吗", "plant-facts", "plant_sheet", {"link": 2}),
    ("什么时候发货", "parcel", "parcel_terms", {"topic": "shipping"}),
    ("收到叶子都断了怎么办", "parcel", "parcel_terms", {"topic": "broken"}),
    ("不喜欢可以退吗", "parcel", "parcel_terms", {"topic": "returns"}),
    ("主播你好呀", "small-talk", None, {}),
    ("1号和3号哪个好养", "which-one", "weigh_up", {"links": [1, 3]}),
    ("有没有适合新手养的", "which-one", "find_plant", {}),
)


class Rollout:
    """Plays a whole turn: the policy's moves, the tools' answers, until it replies."""

    def __init__(self, decide: Any, **renamed: str) -> None:
        self.decide = decide
        self.first_name = {new: old for old, new in renamed.items()}

    def play(self, body: dict[str, Any]) -> tuple[list[tuple[str, dict[str, Any]]], str]:
        """The calls in order and the reply."""
        messages = list(body["messages"])
        log: list[tuple[str, dict[str, Any]]] = []
        for _ in range(6):
            message = self.decide({**body, "messages": messages})
            calls = message.get("tool_calls") or []
            if not calls:
                return log, message["content"]
            messages.append(message)
            for call in calls:
                name = call["function"]["name"]
                arguments = json.loads(call["function"]["arguments"])
                log.append((name, arguments))
                told = self.tool(name, arguments)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})
        raise AssertionError("no reply within six moves")

    def tool(self, name: str, arguments: dict[str, Any]) -> str:
        """A tool's answer, under whatever name it is offered; renamed skills keep their bodies."""
        back = self.first_name
        known = {k: back.get(v, v) if isinstance(v, str) else v for k, v in arguments.items()}
        text = run_tool(back.get(name, name), known)
        return renamed_text(text, {old: new for new, old in back.items()})


def renamed_text(text: str, names: dict[str, str]) -> str:
    """A text with whole names replaced, all at once."""
    if not names:
        return text
    found = "|".join(re.escape(n) for n in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w-])({found})(?![\w-])", lambda m: names[m[1]], text)
