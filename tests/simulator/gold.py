"""A host that knows what an item expects: loads its skills, calls its tools, fills their patterns.

What it says is what the shipped harness would have a perfect policy say, so hooks and judges can be
held against it.
"""

import asyncio
import json
import re
from typing import Any

from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatReply, ChatRequest, RawToolCall
from harness_cli.records.harness import HarnessState, Tool
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult, Trajectory
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.marketing import Marketing
from harness_cli.simulator.sandbox import SandboxExecutor
from harness_cli.simulator.scenarios.library import Scenario

PATTERN = re.compile(
    r"^- \*\*(?P<key>\w+)\*\*: .+\n  - en: (?P<en>.+)\n  - zh: (?P<zh>.+)$", re.MULTILINE
)
SLOT = re.compile(r"\{([a-z_.]+)\}")


class MarketingExecutor:
    """The marketing service in this process: what its MCP server answers from."""

    def __init__(self, world: Catalogue) -> None:
        self.marketing = Marketing(world)

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:
        room = request.room
        found = self.marketing.answer(tool.operation, arguments, room.id, room.products)
        return ToolResult(ok=True, content=json.dumps(found, ensure_ascii=False), structured=found)

    async def close(self) -> None:
        pass


class Gold:
    """Gold trajectories of items under one harness state."""

    def __init__(
        self, state: HarnessState, world: Catalogue, scenarios: dict[str, Scenario]
    ) -> None:
        self.state, self.world, self.scenarios = state, world, scenarios
        self.executors = {"sandbox": SandboxExecutor(world), "mcp": MarketingExecutor(world)}
        self.patterns: dict[str, dict[str, dict[str, str]]] = {
            s.name: {m["key"]: {"en": m["en"], "zh": m["zh"]} for m in PATTERN.finditer(s.body)}
            for s in state.skills
        }

    def run(self, item: Item) -> Trajectory:
        """The trajectory of the perfect policy on one item."""
        policy = ScriptedPolicy([self._calls(item), lambda request: self._reply(item, request)])
        agent = Agent(state=self.state, policy=policy, executors=self.executors, world=self.world)
        return asyncio.run(rollout(item.request, agent, request_id=item.id, item_id=item.id))

    def _calls(self, item: Item) -> ChatReply:
        calls = [("load_skill", {"skill": name}) for name in item.expect.skills]
        for tool in item.expect.tools:
            calls.append((tool.name, {**self._free(item, tool.name), **tool.arguments}))
        if not calls:
            calls = [("refuse", {"reason": "irrelevant"})]
        return ChatReply(
            tool_calls=tuple(
                RawToolCall(id=f"c{n}", name=name, arguments=json.dumps(arguments))
                for n, (name, arguments) in enumerate(calls)
            ),
            finish_reason="tool_calls",
        )

    def _free(self, item: Item, tool: str) -> dict[str, Any]:
        """Arguments an item leaves open, in the viewer's words."""
        scenario = self.scenarios[_tagged(item, "scenario")]
        said = item.request.comments[0].text if item.request.comments else ""
        if tool == "search_product_by_keyword" and scenario.want:
            return {"keyword": scenario.want.zh if "zh" in item.tags else scenario.want.en}
        if tool == "get_faq":
            return {"query": next(f.question for f in self.world.faq if f.id == scenario.entry)}
        if tool == "get_inventory" and any("variant" in t for t in item.tags):
            return {"variant": said[:60]}
        if tool == "refuse":
            return {"reason": "irrelevant"}
        return {}

    def _reply(self, item: Item, request: ChatRequest) -> str:
        told = [
            json.loads(m["content"])
            for m in request.messages
            if m["role"] == "tool" and str(m["content"]).startswith("{")
        ]
        told += [
            {"answer": f.answer, "zh_answer": f.answer}
            for f in item.request.faq
            if any(fact.field == f"faq.{f.id}" for fact in item.expect.facts)
        ]
        language = "zh" if "zh" in item.tags else "en"
        said = [self._unit(item, answer, told, language) for answer in item.expect.answers]
        return ("" if language == "zh" else " ").join(s for s in said if s)

    def _unit(self, item: Item, answer: str, told: list[dict[str, Any]], language: str) -> str:
        if answer == "silent":
            return ""
        facts = [f for f in item.expect.facts if f.answer == answer]
        if answer.startswith("attribute:"):
            return self._attribute(facts[0], language)
        key = {"stock": "stock", "final_price": "final_price"}.get(answer, answer)
        skills = [s for s in item.expect.skills if key in self.patterns[s]] or ["item-qa"]
        template = self._template(item, skills[0], key, language)
        products = {f.product for f in facts if f.product}
        fitting = [r for r in told if all(_has(r, s) for s in SLOT.findall(template))]
        wanted = [r for r in fitting if r.get("product_id") in products] or fitting
        result = wanted[0] if wanted else {}
        return SLOT.sub(lambda m: str(_slot(result, m[1])), template)

    def _template(self, item: Item, skill: str, key: str, language: str) -> str:
        patterns = self.patterns[skill]
        if key == "stock" and "scenario:stock-variant" in item.tags:
            return patterns.get("stock_variant", patterns[key])[language]
        if key == "chat" and "identity" in item.tags:
            return patterns["identity"][language]
        if key == "chat" and "scenario:room-now" in item.tags:
            return patterns["room"][language]
        return patterns[key][language]

    def _attribute(self, fact: Any, language: str) -> str:
        product = self.world.product(fact.product)
        attribute = next(a for a in product.attributes if a.name == fact.field)
        if language == "zh":
            return f"{product.zh_name}的{attribute.zh_name}是{attribute.zh_value}。"
        return f"For {product.name} the {fact.field.replace('_', ' ')} is {fact.value}."


def _tagged(item: Item, kind: str) -> str:
    return next(t.partition(":")[2] for t in item.tags if t.startswith(f"{kind}:"))


def _slot(result: Any, path: str) -> Any:
    for step in path.split("."):
        result = result[step]
    return result


def _has(result: Any, path: str) -> bool:
    try:
        return _slot(result, path) is not None
    except (KeyError, TypeError):
        return False
