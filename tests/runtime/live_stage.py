"""A small live room to act in: a state made of records, a scripted policy, sandboxed tools."""

import asyncio
import json
from dataclasses import replace

from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.catalogue import Catalogue, Product
from harness_cli.records.chat import Generation
from harness_cli.records.config import Limits
from harness_cli.records.harness import (
    Block,
    Check,
    Constraint,
    HarnessState,
    Hook,
    Pipeline,
    Replies,
    Skill,
    Tool,
)
from harness_cli.records.request import Comment, Request, Room
from harness_cli.records.trajectory import ToolResult
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout

WORLD = Catalogue(
    snapshot="2026-01-01",
    products=(
        Product(id="p-1", name="Sunscreen SPF50", category="care", price=89, list_price=109),
    ),
)


class TableExecutor:
    """Answers from a table: a value, an error to raise, or a function of the arguments."""

    def __init__(self, answers):
        self.answers = answers
        self.calls = []

    async def call(self, tool, arguments, request):
        self.calls.append((tool.operation, arguments))
        answer = self.answers[tool.operation]
        if callable(answer):
            answer = answer(arguments)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ToolResult):
            return answer
        return ToolResult(ok=True, content=json.dumps(answer), structured=answer)

    async def close(self):
        pass


def tool(name, *required, executor="sandbox", types=None, mutates=False, **meta):
    types = types or {}
    return Tool(
        name=name,
        description=name,
        input_schema={
            "type": "object",
            "properties": {r: {"type": types.get(r, "string")} for r in required},
            "required": list(required),
            "additionalProperties": False,
        },
        annotations={} if mutates else {"readOnlyHint": True},
        meta={"harness.executor": executor, **{f"harness.{k}": v for k, v in meta.items()}},
    )


TOOLS = (
    tool("get_product", "link_id", types={"link_id": "integer"}),
    tool("get_stock", "product"),
    tool("move_product", "link_id", types={"link_id": "integer"}, mutates=True),
    tool("load_skill", "skill", executor="builtin"),
    tool("refuse", "reason", executor="builtin"),
)
SKILLS = (
    Skill(name="item-qa", description="product questions", body="Say the price.", path="a"),
    Skill(
        name="tool-strategy-multi",
        description="many comments",
        body="Group them.",
        metadata={"harness.kind": "strategy"},
    ),
)


def hook(name, event, check=None, action="retry", **more):
    settings = more.pop("settings", {})
    checks = (Check(check=check, with_=settings),) if check else ()
    return Hook(name=name, event=event, checks=checks, action=action, **more)


def state(*hooks, tools=TOOLS, skills=SKILLS, **changes):
    return HarnessState(
        **{
            "id": "t" * 40,
            "tools": tools,
            "skills": skills,
            "hooks": hooks,
            "pipelines": {
                "default": Pipeline(
                    blocks=(Block(name="base"),),
                    constraints={"reply_words": Constraint(value=8, range=(4, 40), unit="words")},
                )
            },
            "blocks": {"base": "You host a live room."},
            "fallback": "Answer in one short sentence. State no fact you were not given.",
            "replies": Replies(
                conservative={"en": "Let me check that.", "zh": "我确认一下。"},
                refusal={"en": "I cannot help with that.", "zh": "这个我帮不了。"},
            ),
            **changes,
        }
    )


def ask_for(text="How much is #1?", channel="public", **more):
    comments = (Comment(viewer="v1", text=text),) if text is not None else ()
    return Request(
        **{
            "channel": channel,
            "comments": comments,
            "room": Room(id="r", products=("p-1",), current_link=1),
            **more,
        }
    )


class Stage:
    """One agent on a scripted policy; `run` plays one request and keeps what was seen."""

    state = staticmethod(state)
    hook = staticmethod(hook)
    tool = staticmethod(tool)
    ask_for = staticmethod(ask_for)
    TableExecutor = TableExecutor
    TOOLS = TOOLS

    def __init__(self):
        self.policy = None
        self.executor = None
        self.seen = []

    def agent(self, replies, *hooks, answers=None, limits=None, generation=None, **more):
        self.policy = ScriptedPolicy(replies)
        self.executor = TableExecutor(
            answers or {"get_product": {"name": "Sunscreen SPF50", "price": 89, "list_price": 109}}
        )
        agent = Agent(
            state=more.pop("state", None) or state(*hooks),
            policy=self.policy,
            executors={"sandbox": self.executor},
            world=WORLD,
            limits=limits or Limits(),
            generation=generation or Generation(),
        )
        return replace(agent, **more)

    def run(self, replies, *hooks, request=None, log=None, **more):
        agent = self.agent(replies, *hooks, **more)
        return self.play(agent, request=request, log=log)

    def play(self, agent, request=None, log=None):
        return asyncio.run(
            rollout(
                request or ask_for(), agent, request_id="r-1", log=log, observe=self.seen.append
            )
        )
