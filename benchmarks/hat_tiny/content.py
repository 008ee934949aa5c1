"""Writes the catalogue and the items of the tiny project: seeded, the same every time.

    python -m benchmarks.hat_tiny.content

`tiny_train` (dev) is trained on; the others measure and share no family of phrasing with it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml

from harness_cli.records.item import Item
from harness_cli.training.tiny.documents import instruction_of
from harness_cli.training.tiny.words import all_words

PROJECT = Path(__file__).with_name("project")
SEED = 20261130
TRAIN: dict[str, tuple[str, ...]] = {
    "price": (
        "how much is {n}", "what does {n} cost", "the price of {n} please", "is {n} expensive",
        "what do i pay for {n}", "{n} how much money", "tell me the price of {n}", "is {n} cheap",
        "what will {n} cost me", "how much do i spend on {n}",
    ),
    "stock": (
        "is {n} available", "how many are left of {n}", "{n} in stock", "is {n} sold out",
        "are there enough pieces of {n}", "how many pieces of {n}", "any of {n} remaining",
        "do you have stock of {n}", "is there a supply of {n}",
    ),
    "delivery": (
        "when does {n} ship", "when will {n} arrive", "the delivery of {n}",
        "how is the shipping for {n}", "when do i get the parcel with {n}", "{n} ships when",
        "when will the courier be here with {n}", "delivery for {n} please",
    ),
    "returns": (
        "can i return {n}", "can {n} go back", "a refund for {n}", "can i exchange {n}",
        "i regret {n} can i send it back", "can {n} be returned", "if i change my mind on {n}",
        "would you swap {n}",
    ),
    "warranty": (
        "what if {n} breaks", "the warranty of {n}", "is there a guarantee on {n}",
        "{n} is broken will you repair it", "is a fault of {n} covered", "if {n} fails",
        "repair for {n}", "is a defect in {n} covered",
    ),
    "greeting": (
        "hello", "hi all", "hey there", "good evening", "good morning everyone", "hello to you",
        "i just joined hello", "hi i am here", "hey all i am new",
    ),
}  # fmt: skip
TEST: dict[str, tuple[str, ...]] = {
    "price": (
        "{n} price", "i want to know the cost of {n}", "how much money for {n}",
        "what would i pay for {n}", "can you tell me how much {n} is", "is {n} really cheap",
    ),
    "stock": (
        "can i get {n} is it available", "how many of {n} are there", "{n} stock please",
        "is {n} all sold", "any {n} left", "are pieces of {n} remaining",
    ),
    "delivery": (
        "tell me when {n} ships", "will the parcel of {n} arrive today", "{n} delivery please",
        "when is the shipping of {n}", "is the courier here with {n}",
    ),
    "returns": (
        "{n} refund please", "how do i return {n}", "would you exchange {n}",
        "i want {n} to go back", "i could regret {n}",
    ),
    "warranty": (
        "{n} warranty please", "will you repair {n} if it breaks", "a guarantee for {n}",
        "is {n} covered", "{n} has a fault",
    ),
    "greeting": (
        "hello there", "hey everyone", "hi good morning", "i have just joined", "hello ok",
    ),
}  # fmt: skip
WANTS: dict[str, tuple[str, str, str]] = {
    "price": ("price-desk", "get_price", "price"),
    "stock": ("stock-check", "get_stock", "stock"),
    "delivery": ("parcel-time", "get_delivery", "delivery"),
    "returns": ("return-rule", "get_returns", "returns"),
    "warranty": ("repair-cover", "get_warranty", "warranty"),
    "greeting": ("warm-welcome", "", "greet"),
}
"""Topic → skill, tool, what is asked for."""
FROM = ("Hefei", "Shanghai", "Wuhan", "Ningbo")
LINKS = 9
MEASURED = 72
"""Items of each set that measures."""


def catalogue() -> dict[str, Any]:
    """Products of whose names nothing is asked; every figure is drawn."""
    draw = Random(f"{SEED}/catalogue")
    products, stock = [], []
    for number in range(1, 61):
        price = draw.randrange(11, 990)
        products.append(
            {
                "id": f"p-{number}",
                "name": f"Item {number}",
                "category": "goods",
                "price": price,
                "list_price": price + draw.randrange(5, 90),
                "ship_within_hours": draw.choice((12, 24, 36, 48, 72)),
                "ship_from": draw.choice(FROM),
                "return_days": draw.choice((7, 10, 14, 15, 30)),
                "warranty_months": draw.choice((3, 6, 12, 18, 24, 36)),
            }
        )
        stock.append({"product": f"p-{number}", "units": draw.randrange(3, 99)})
    return {"schema": 1, "snapshot": "2026-11-30", "products": products, "stock": stock}


def items(
    name: str, split: str, families: dict[str, tuple[str, ...]], count: int, shop: dict[str, Any]
) -> Iterator[Item]:
    """Items of every topic in turn, their families and rooms drawn."""
    draw = Random(f"{SEED}/{name}")
    by_id = {p["id"]: p for p in shop["products"]}
    units = {s["product"]: s["units"] for s in shop["stock"]}
    half = sorted(by_id, key=lambda i: int(i[2:]))
    pool = half[:40] if split == "dev" else half[40:]
    topics = list(WANTS)
    for number in range(count):
        topic = topics[number % len(topics)]
        skill, tool, wanted = WANTS[topic]
        link = draw.randrange(1, LINKS + 1)
        room = draw.sample(pool, LINKS)
        product = by_id[room[link - 1]]
        text = draw.choice(families[topic]).format(n=f"link {link}")
        yield msgspec.convert(
            {
                "id": f"{name}-{number + 1:03d}",
                "split": split,
                "category": topic,
                "request": {
                    "comments": [{"viewer": "v-1", "text": text}],
                    "room": {"id": "room", "current_link": None, "products": room},
                },
                "expect": {
                    "skills": [skill],
                    "tools": [{"name": tool, "arguments": {"link_id": link}}] if tool else [],
                    "facts": [_fact(wanted, product, units)] if tool else [],
                    "answers": [wanted],
                },
                "tags": ["en"],
            },
            Item,
        )


def _fact(wanted: str, product: dict[str, Any], units: dict[str, int]) -> dict[str, Any]:
    field, value, said = {
        "price": ("price", product["price"], ()),
        "stock": ("stock", units[product["id"]], ()),
        "delivery": ("ship_within_hours", product["ship_within_hours"], ("{} hours",)),
        "returns": ("return_days", product["return_days"], ("{} days",)),
        "warranty": ("warranty_months", product["warranty_months"], ("{} month",)),
    }[wanted]
    forms = [form.format(value) for form in said]
    return {
        "product": product["id"], "field": field, "value": value, "forms": forms, "answer": wanted,
    }  # fmt: skip


def robust(plain: Sequence[Item], name: str) -> Iterator[Item]:
    """The same questions with tools beside the harness's, or with an instruction beside its own."""
    draw = Random(f"{SEED}/{name}")
    words = [w for w in all_words() if w.islower()]
    for number, item in enumerate(plain):
        kind = "tool" if number % 2 == 0 else "prompt"
        overlay: dict[str, Any] = {}
        asserted: list[dict[str, Any]] = []
        if kind == "tool":
            overlay["tools"] = [_distractor(draw) for _ in range(3)]
        else:
            last = draw.choice(words)
            overlay["instructions"] = [f"End the reply with the word {last}."]
            asserted = [{"type": "regex", "value": rf"\b{last}\W*$"}]
        yield msgspec.convert(
            {
                **msgspec.to_builtins(item),
                "id": f"{name}-{number + 1:03d}",
                "overlay": overlay,
                "assert": asserted,
                "tags": ["en", kind],
            },
            Item,
        )


def _distractor(draw: Random) -> dict[str, Any]:
    words = [w for w in all_words() if w.islower()]
    return {
        "name": "_".join(draw.sample(words, 2)),
        "description": ", ".join(draw.sample(words, 2)),
        "inputSchema": {
            "type": "object",
            "properties": {"link_id": {"type": "integer"}},
            "required": ["link_id"],
        },
    }


def general(count: int) -> Iterator[Item]:
    """Instructions that can be checked, and look-ups in a form that the base never read."""
    draw = Random(f"{SEED}/general")
    words = all_words()
    for number in range(count):
        if number % 3 == 2:
            asked, answer, kind = *_unseen_listing(draw), "look-up"
        else:
            asked, answer, kind = *instruction_of(draw, words), "instruction"
        yield msgspec.convert(
            {
                "id": f"tiny_general-{number + 1:03d}",
                "split": "test",
                "category": kind,
                "request": {"prompt": asked},
                "assert": [{"type": "equals", "value": answer}],
                "tags": ["bare", kind],
            },
            Item,
        )


def _unseen_listing(draw: Random) -> tuple[str, str]:
    """Entries `words => name` and a request in the entry's own form."""
    words = [w for w in all_words() if w.islower()]
    said = draw.sample(words, 8)
    names = [f"{said[2 * i]} {said[2 * i + 1]}" for i in range(4)]
    keys = draw.sample([w for w in words if w not in said], 4)
    lines = "\n".join(f"{key} => {name};" for key, name in zip(keys, names, strict=True))
    chosen = draw.randrange(4)
    return f"{lines}\nRead the line of {keys[chosen]} =>", names[chosen]


def prompts(count: int) -> list[dict[str, str]]:
    """Instructions that General OPD samples from; none is one of `tiny_general`."""
    draw = Random(f"{SEED}/prompts")
    held = {item.request.prompt for item in general(MEASURED)}
    made: dict[str, None] = {}
    while len(made) < count:
        asked = (
            _unseen_listing(draw)[0]
            if draw.random() < 0.33
            else instruction_of(draw, all_words())[0]
        )
        if asked not in held:
            made[asked] = None
    return [{"prompt": asked} for asked in made]


def write_set(
    name: str, made: Sequence[Item], *, agent: str = "harness", judge: str = "grounded"
) -> None:
    """An evalset's folder: header with the frozen digest, and items."""
    folder = PROJECT / "evalsets" / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = [msgspec.json.encode(item, order="sorted") for item in made]
    (folder / "items.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    split = made[0].split
    header = {
        "schema": 1,
        "name": name,
        "version": "1",
        "licence": "Apache-2.0",
        "provenance": f"synthetic, benchmarks/hat_tiny/content.py, seed {SEED}",
        "agent": agent,
        "splits": {split: len(made)},
        "metrics": ["passed"] if agent == "bare" else ["accuracy", "effectiveness", "avg"],
        "judge": judge,
        "catalogue": None if agent == "bare" else "catalogue",
    }
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True)
    (folder / "evalset.yaml").write_text(text, encoding="utf-8")


def recipes() -> dict[str, dict[str, Any]]:
    """Name → recipe: `train` changes everything, each of the others what it is called."""
    wordings = yaml.safe_load(Path(__file__).with_name("wordings.yaml").read_text("utf-8"))
    said = {kind: {"share": 1.0, "wordings": texts} for kind, texts in wordings.items()}
    names = {"strength": 1.0, "moves": ["rename"]}
    told = {"strength": 1.0, "moves": ["describe"]}
    every = {"strength": 0.8}
    return {
        "train": {
            "dimensions": {
                "skill_identifiers": {"strength": 0.8, "moves": ["rename", "describe"]},
                "skill_content": every,
                "tool_definitions": every,
                "system_prompt": every,
            },
            "paraphrase": said["train"],
        },
        "renamed": {
            "dimensions": {
                "skill_identifiers": names,
                "tool_definitions": {"strength": 1.0, "moves": ["rename", "parameters"]},
            }
        },
        "rewritten": {
            "dimensions": {"skill_identifiers": told, "tool_definitions": told},
            "paraphrase": said["test"],
        },
        "reordered": {
            "dimensions": {
                "skill_content": {"strength": 1.0, "moves": ["reorder", "layout"]},
                "tool_definitions": {"strength": 1.0, "moves": ["reorder"]},
                "system_prompt": {"strength": 1.0, "moves": ["blocks", "entries", "numbers"]},
            }
        },
    }


def write_variant(name: str, count: int) -> None:
    """The header of a set of `tiny_qa`'s items under states that the study draws."""
    folder = PROJECT / "evalsets" / f"tiny_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    header = {
        "schema": 1,
        "name": f"tiny_{name}",
        "version": "1",
        "licence": "Apache-2.0",
        "provenance": f"tiny_qa under states of recipes/{name}.yaml",
        "items_of": "tiny_qa",
        "states": "states",
        "splits": {"test": count},
        "judge": "grounded",
        "catalogue": "catalogue",
    }
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True)
    (folder / "evalset.yaml").write_text(text, encoding="utf-8")


def main() -> None:
    """Write everything."""
    for name, recipe in recipes().items():
        path = PROJECT / "recipes" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        text = yaml.safe_dump({"schema": 1, **recipe}, sort_keys=False, width=100)
        path.write_text(text, encoding="utf-8")
        if name != "train":
            write_variant(name, MEASURED)
    shop = catalogue()
    folder = PROJECT / "evalsets" / "catalogue"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "catalogue.yaml").write_text(yaml.safe_dump(shop, sort_keys=False), encoding="utf-8")
    write_set("tiny_train", list(items("tiny_train", "dev", TRAIN, 300, shop)))
    qa = list(items("tiny_qa", "test", TEST, MEASURED, shop))
    write_set("tiny_qa", qa)
    plain = list(items("tiny_robust", "test", TEST, MEASURED, shop))
    write_set("tiny_robust", list(robust(plain, "tiny_robust")))
    write_set("tiny_general", list(general(MEASURED)), agent="bare")
    lines = b"\n".join(msgspec.json.encode(p) for p in prompts(400)) + b"\n"
    (PROJECT / "train" / "general.jsonl").parent.mkdir(exist_ok=True)
    (PROJECT / "train" / "general.jsonl").write_bytes(lines)


if __name__ == "__main__":
    main()
