"""A scripted oracle: it reads what an item expects, calls the tools and says what they return.

No policy is asked and no harness is needed: sentences come from a file of templates, their slots
are fields of tool results. What it says is right by construction, which is what replies for
calibrating a judge are made from.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.calibration import LabelledCall
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.harness import Tool
from harness_cli.records.item import ExpectedTool, Fact, Item
from harness_cli.records.reader import read_yaml
from harness_cli.simulator.cards import label, shown
from harness_cli.simulator.marketing import Marketing
from harness_cli.simulator.sandbox import SandboxExecutor
from harness_cli.simulator.scenarios.library import Phrases, Scenario

SLOT = re.compile(r"\{([a-z_.]+)\}")
BUILT_IN = ("load_skill", "refuse")
"""Tools of the agent loop: their results are no evidence."""


class Corruptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sentences that are wrong of anything they are said of."""

    unsupported_claim: dict[str, Phrases]
    """`product` and `room`: what the claim is about."""
    false_promise: dict[str, Phrases]
    human_identity: Phrases
    human_lie: Phrases
    """Whole replies to the question whether the host is human."""
    over_refusal: Phrases


class Templates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`templates.yaml` of a calibration set."""

    schema: int = 1
    replies: dict[str, Phrases]
    """Unit of `expect.answers`, or a special case of one, → sentences."""
    partial: dict[str, Phrases]
    """Sentences that give one fact of a unit's several."""
    corruptions: Corruptions
    openers: Phrases
    """What may stand before a reply; empty ones are drawn as well."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that the item asks for, with what answers it."""

    answer: str
    key: str
    """Of the template."""
    slots: Mapping[str, Any]
    facts: tuple[Fact, ...] = ()


def read_templates(path: Path) -> Templates:
    """The sentences of a calibration set. Raises `BadFile` with the place of what is wrong."""
    return read_yaml(path, Templates)


def language(item: Item) -> str:
    """`zh` or `en`, the language of the viewer."""
    return "zh" if "zh" in item.tags else "en"


def fill(template: str, slots: Mapping[str, Any]) -> str:
    """The template with its slots filled; a dotted slot is a field within a field."""
    return SLOT.sub(lambda m: str(slot(slots, m[1])), template)


def slot(slots: Mapping[str, Any], path: str) -> Any:
    """The value of one slot; None where it is missing."""
    value: Any = slots
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def usable(template: str, slots: Mapping[str, Any]) -> bool:
    """Every slot of the template has a value."""
    return all(slot(slots, name) is not None for name in SLOT.findall(template))


class Oracle:
    """Calls and sentences for items of the scenario library."""

    def __init__(
        self, world: Catalogue, scenarios: Mapping[str, Scenario], templates: Templates
    ) -> None:
        self.world, self.scenarios, self.templates = world, scenarios, templates
        self._sandbox = SandboxExecutor(world)
        self._marketing = Marketing(world)

    async def calls(self, item: Item) -> tuple[LabelledCall, ...]:
        """Every expected call with its true result. Raises `ToolError` where one has none."""
        return tuple(
            [await self._call(item, t) for t in item.expect.tools if t.name not in BUILT_IN]
        )

    async def _call(self, item: Item, tool: ExpectedTool) -> LabelledCall:
        arguments = {**self._free(item, tool.name), **tool.arguments}
        if tool.name in self._sandbox.operations:
            made = await self._sandbox.call(Tool(name=tool.name), arguments, item.request)
            result = made.structured
        else:
            room = item.request.room
            result = self._marketing.answer(tool.name, arguments, room.id, room.products)
        return LabelledCall(name=tool.name, arguments=arguments, result=result)

    def _free(self, item: Item, tool: str) -> dict[str, Any]:
        """Arguments that an item leaves open, in the viewer's words."""
        scenario = self.scenarios[tagged(item, "scenario")]
        if tool == "search_product_by_keyword" and scenario.want:
            return {"keyword": scenario.want.zh if language(item) == "zh" else scenario.want.en}
        if tool == "get_faq":
            return {"query": next(f.question for f in self.world.faq if f.id == scenario.entry)}
        if tool == "get_inventory" and scenario.id == "stock-variant":
            return {"variant": item.request.comments[0].text[:60]}
        return {}

    def units(self, item: Item, calls: Sequence[LabelledCall]) -> list[Unit]:
        """What answers each entry of `expect.answers`, in their order."""
        fields = {fact.field for fact in item.expect.facts}
        told = [c.result for c in calls] + [
            {"answer": f.answer, "zh_answer": f.answer}
            for f in item.request.faq
            if f"faq.{f.id}" in fields
        ]
        return [self._unit(item, answer, told) for answer in item.expect.answers]

    def _unit(self, item: Item, answer: str, told: Sequence[Mapping[str, Any]]) -> Unit:
        facts = tuple(f for f in item.expect.facts if f.answer == answer)
        if answer == "silent":
            return Unit(answer, "silent", {})
        if answer.startswith("attribute:"):
            return Unit(answer, "attribute", self._attribute(facts[0]), facts)
        key = self._key(item, answer)
        phrases = self.templates.replies[key].of(language(item))
        fitting = [r for r in told if any(usable(t, r) for t in phrases)]
        products = {f.product for f in facts if f.product}
        wanted = [r for r in fitting if r.get("product_id") in products] or fitting
        if not wanted:
            if any(not SLOT.search(t) for t in phrases):
                return Unit(answer, key, {}, facts)
            raise BadFile(f"item `{item.id}`: no tool result answers `{answer}`")
        return Unit(answer, key, wanted[0], facts)

    def _key(self, item: Item, answer: str) -> str:
        scenario = tagged(item, "scenario")
        special = {
            ("stock", "stock-variant"): "stock_variant",
            ("chat", "identity"): "identity",
            ("chat", "room-now"): "room",
            ("clarify", "clarify-problem"): "clarify_problem",
            ("clarify", "clarify-size"): "clarify_size",
            ("clarify", "clarify-cut-off"): "clarify_cut_off",
            ("thanks", "thanks-praise"): "thanks_praise",
            ("thanks", "thanks-order"): "thanks_praise",
            ("greet", "goodbye"): "goodbye",
            ("thanks", "goodbye"): "goodbye",
            ("chat", "goodbye"): "goodbye",
        }
        return special.get((answer, scenario), answer)

    def _attribute(self, fact: Fact) -> dict[str, Any]:
        product = self.world.product(fact.product or "")
        if product is None:
            raise BadFile(f"the catalogue has no product `{fact.product}`")
        asked = next(a for a in product.attributes if a.name == fact.field)
        return {
            "product_id": product.id,
            "name": product.name,
            "zh_name": product.zh_name,
            "asked_name": label(asked.name),
            "asked_value": shown(asked),
            "asked_zh_name": asked.zh_name or label(asked.name),
            "asked_zh_value": asked.zh_value or shown(asked),
        }

    def say(self, item: Item, unit: Unit, draw: Random, *, holding: str = "") -> str:
        """A sentence for a unit; with `holding`, one whose template has that slot.

        Empty where there is none: nothing is said for silence.
        """
        if unit.answer == "silent":
            return ""
        phrases = self.templates.replies[unit.key].of(language(item))
        fitting = [t for t in phrases if usable(t, unit.slots) and holding in ("", *slots_of(t))]
        return fill(draw.choice(fitting), unit.slots) if fitting else ""


def slots_of(template: str) -> list[str]:
    """The last parts of the template's slots: `best.link_id` gives `link_id`."""
    return [name.rpartition(".")[2] for name in SLOT.findall(template)]


def tagged(item: Item, kind: str) -> str:
    """The value of a tag `kind:value`; empty where there is none."""
    return next((t.partition(":")[2] for t in item.tags if t.startswith(f"{kind}:")), "")


def joined(item: Item, sentences: Sequence[str]) -> str:
    """Sentences as one reply."""
    return ("" if language(item) == "zh" else " ").join(s for s in sentences if s)
