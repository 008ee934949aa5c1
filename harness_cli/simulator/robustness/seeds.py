"""Scenario seeds of the robustness sets: `evalsets/scenarios/robustness/*.yaml` (TR App. E.3)."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.item import Assertion
from harness_cli.records.reader import read_yaml
from harness_cli.simulator.scenarios.library import Needs, Phrases

FOLDER = "robustness"
Draw = int | str | tuple[str, str]
"""A number, a text for both languages, or an English and a Chinese one. `a|b` are wordings that
count as the same, of which the first is said."""


class SeedTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that the harness does not have, under one of several names."""

    names: tuple[str, ...]
    description: str
    parameters: dict[str, Literal["integer", "number", "string"]] = {}


class ToolSeed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One need of a live room and the tool that serves it."""

    id: str
    category: str
    tool: SeedTool
    draws: dict[str, tuple[Draw, ...]]
    """Slot → what it may hold, one is drawn per item."""
    arguments: dict[str, str] = {}
    returns: dict[str, str]
    comments: Phrases
    reply: dict[str, str]
    """What the reference solver says."""
    core: tuple[str, ...]
    """Slots without which the query is not answered (ADR)."""
    info: tuple[str, ...]
    """Slots of the tool's return that the reply must carry (RC)."""
    needs: Needs = Needs()

    @property
    def about_product(self) -> bool:
        """The comment names a product."""
        return any("{ref}" in text for text in (*self.comments.en, *self.comments.zh))


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that a rule puts before or after the lookup."""

    id: str
    when: Literal["before", "after"]
    tool: SeedTool
    returns: dict[str, Any]
    rule: str


class Constraint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One constraint on the reply, with the check that decides it."""

    id: str
    position: Literal["start", "call", "middle", "end", "none"]
    """The place in the reply that it takes; two of one place exclude each other."""
    positive: bool
    """Something has to be said, so that silence does not satisfy it."""
    values: tuple[tuple[str, str], ...]
    """English and Chinese."""
    rule: str
    check: Assertion


class ToolSeeds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tools.yaml`."""

    schema: int = 1
    seeds: tuple[ToolSeed, ...]


class PromptParts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`prompts.yaml`."""

    schema: int = 1
    steps: tuple[Step, ...]
    constraints: tuple[Constraint, ...]


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the two sets are built from."""

    tools: tuple[ToolSeed, ...]
    steps: tuple[Step, ...]
    constraints: tuple[Constraint, ...]


def read_seeds(scenarios: Path) -> Seeds:
    """The seeds below a scenario library. Raises `BadFile` listing what is wrong with them."""
    folder = scenarios / FOLDER
    tools = read_yaml(folder / "tools.yaml", ToolSeeds).seeds
    parts = read_yaml(folder / "prompts.yaml", PromptParts)
    seeds = Seeds(tools=tools, steps=parts.steps, constraints=parts.constraints)
    faults = [*_doubled(seeds), *(fault for seed in tools for fault in _faults(seed))]
    if faults:
        raise BadFile(f"{folder}: " + "; ".join(faults))
    return seeds


def _doubled(seeds: Seeds) -> list[str]:
    ids = [s.id for s in seeds.tools] + [s.id for s in seeds.steps]
    ids += [c.id for c in seeds.constraints]
    tools = [s.tool for s in seeds.tools] + [s.tool for s in seeds.steps]
    names = [name for tool in tools for name in tool.names]
    faults = [f"the id `{i}` stands twice" for i in {i for i in ids if ids.count(i) > 1}]
    faults += [f"two tools are named `{n}`" for n in {n for n in names if names.count(n) > 1}]
    return sorted(faults)


def _faults(seed: ToolSeed) -> list[str]:
    wrong = [
        f"`{seed.id}`: `{slot}` is not drawn"
        for slot in (*seed.core, *seed.info)
        if slot not in seed.draws
    ]
    unknown = sorted(seed.arguments.keys() - seed.tool.parameters.keys())
    wrong += [f"`{seed.id}`: the tool has no parameter `{name}`" for name in unknown]
    if not (seed.comments.en and seed.comments.zh and seed.reply.keys() == {"en", "zh"}):
        wrong.append(f"`{seed.id}`: comments and reply are needed in both languages")
    return wrong
