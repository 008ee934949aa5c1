"""Prompt Robustness: unseen instructions on process and wording (ADR, LLM, TCO)."""

import random
import re
from dataclasses import dataclass

import msgspec

from harness_cli.records.item import Assertion, Expect, ExpectedTool, Item, Overlay
from harness_cli.simulator.robustness.drafts import (
    Asked,
    Call,
    Draft,
    addresses,
    ask,
    definition,
    request_of,
)
from harness_cli.simulator.robustness.seeds import Constraint, Seeds, Step, ToolSeed
from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.setting import Scene

CONSTRAINTS = (2, 4)
"""Least and most constraints on the reply, the rule on the order of calls not counted."""


@dataclass(frozen=True, slots=True)
class Active:
    """A constraint with the value it has in one item."""

    constraint: Constraint
    en: str
    zh: str

    def value(self, language: str) -> str:
        """The words it wants, or the number, in a language."""
        return self.zh if language == "zh" else self.en

    @property
    def rule(self) -> str:
        """What the policy is told."""
        return self.constraint.rule.replace("{en}", self.en).replace("{zh}", self.zh)

    @property
    def check(self) -> Assertion:
        """What decides it: either language's words count."""
        return msgspec.structs.replace(
            self.constraint.check, value=self._filled(self.constraint.check.value)
        )

    def _filled(self, value: object) -> object:
        if isinstance(value, dict):
            return {k: int(self.en) if v == "{en}" else v for k, v in value.items()}
        pattern = "regex" in self.constraint.check.type
        either = [re.escape(w) if pattern else w for w in dict.fromkeys((self.en, self.zh))]
        words = f"(?i:{'|'.join(either)})" if pattern else self.en
        filled = str(value).replace("{value}", words)
        return filled.replace("{en}", either[0]).replace("{zh}", either[-1])


def prompt_draft(
    seeds: Seeds, scene: Scene, seed: ToolSeed, language: str, rng: random.Random
) -> Draft:
    """One item of Prompt Robustness."""
    asked = ask(seed, scene, language, rng)
    step = pick(rng, seeds.steps)
    step_name = pick(rng, step.tool.names)
    active = _active(seeds.constraints, asked, rng)
    lookup: Call = (asked.tool_name, asked.arguments)
    calls: tuple[Call, ...] = ((step_name, {}), lookup)
    if step.when == "after":
        calls = calls[::-1]
    rules = [step.rule.replace("{tool}", step_name), *(a.rule for a in active)]
    rng.shuffle(rules)
    tools = [definition(step.tool, step_name), definition(seed.tool, asked.tool_name)]
    rng.shuffle(tools)
    item = Item(
        id="",
        split="test",
        category=seed.category,
        request=request_of(asked, scene, rng),
        expect=Expect(tools=(ExpectedTool(name=asked.tool_name),), order=_names(calls)),
        assert_=(
            addresses(asked),
            Assertion(type="assert-set", metric="llm", assert_=tuple(a.check for a in active)),
            Assertion(type="trajectory:tool-sequence", value=list(_names(calls)), metric="tco"),
        ),
        overlay=Overlay(tools=tuple(tools), instructions=tuple(rules)),
        tool_returns={asked.tool_name: asked.returns, step_name: _plain(step)},
        tags=(language, f"seed:{seed.id}", f"step:{step.id}", *_tags(active)),
    )
    return Draft(
        item=item,
        calls=calls,
        reply=worded(asked, active),
        wrong_calls=calls[::-1],
        wrong_reply="!" * 80,
        key=f"{asked.comment}/{asked.room.id}/{asked.values.get('link')}/{rules}",
    )


def worded(asked: Asked, active: list[Active]) -> str:
    """The reference answer under the active constraints, each in its place of the reply."""
    chinese = asked.language == "zh"
    at = {a.constraint.position: a.value(asked.language) for a in active}
    comma, stop, gap = ("，", "。", "") if chinese else (", ", ".", " ")
    text = asked.reply
    before = [at[place] for place in ("start", "call") if place in at]
    if before:
        text = comma.join([*before, text if chinese else _lowered(text)])
    if "middle" in at:
        text += gap + _sentence(at["middle"], chinese) + stop
    if "end" in at:
        closing = at["end"]
        text += gap + (closing if closing[-1] in "?？" else _sentence(closing, chinese) + stop)
    return text


def _sentence(words: str, chinese: bool) -> str:
    return words if chinese else words[:1].upper() + words[1:]


def _lowered(text: str) -> str:
    """A sentence as it goes on behind a comma; `I` and abbreviations keep their capital."""
    return text[0].lower() + text[1:] if text[1:2].islower() else text


def _active(constraints: tuple[Constraint, ...], asked: Asked, rng: random.Random) -> list[Active]:
    """Constraints that exclude each other nowhere; at least one wants something said."""
    count = rng.randrange(CONSTRAINTS[0], CONSTRAINTS[1] + 1)
    first = pick(rng, [c for c in constraints if c.positive])
    chosen, taken = [first], {first.position}
    rest = [c for c in constraints if c is not first]
    rng.shuffle(rest)
    for constraint in rest:
        if len(chosen) < count and constraint.position not in taken - {"none"}:
            chosen.append(constraint)
            taken.add(constraint.position)
    return [_valued(c, asked, rng) for c in chosen]


def _valued(constraint: Constraint, asked: Asked, rng: random.Random) -> Active:
    en, zh = (v.replace("{viewer}", asked.viewer) for v in pick(rng, constraint.values))
    return Active(constraint, en, zh)


def _names(calls: tuple[Call, ...]) -> tuple[str, ...]:
    return tuple(name for name, _ in calls)


def _plain(step: Step) -> dict[str, object]:
    return dict(step.returns)


def _tags(active: list[Active]) -> tuple[str, ...]:
    return tuple(f"constraint:{a.constraint.id}" for a in active)
