"""The case a member of a panel judges: one document made of item and trajectory, with references.

What the harness of the judge says about it (rubrics, procedure) is edited there; how the judged
text is kept apart is not for editing and stands here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import msgspec

from harness_cli.judges.naturalness import RUBRIC
from harness_cli.judges.panel.fence import addresses_judge, between_marks, fenced_json
from harness_cli.records.canonical import digest
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Assertion, Item
from harness_cli.records.request import Request, Room
from harness_cli.records.trajectory import Route, StopReason, ToolCall, Trajectory

TEXT_CAP = 8_000
"""Characters of one text in the case."""
RESULT_CAP = 1_500
"""Characters of one tool result in the case; all of it is read with an evidence tool."""


class Rubric(msgspec.Struct, frozen=True, kw_only=True):
    """One `llm-rubric` of an item."""

    id: str
    text: str


class AnyCase(Protocol):
    """What evidence tools and members need of a case."""

    @property
    def item(self) -> Item:
        """What was asked."""
        ...

    @property
    def world(self) -> Catalogue:
        """Where facts come from."""
        ...

    @property
    def host_calls(self) -> Mapping[str, ToolCall]:
        """The host's own tool calls by the reference they have in the case."""
        ...

    @property
    def request(self) -> Request:
        """The request of a judge's rollout."""
        ...

    @property
    def digest(self) -> str:
        """Of everything a judge can see."""
        ...


@dataclass(frozen=True)
class Case:
    """One trajectory to judge."""

    item: Item
    trajectory: Trajectory
    world: Catalogue
    reference: bool = True
    """Show what the item expects, which the host never saw."""
    natural: bool = False
    """Ask about an item's `naturalness` as a rubric."""

    @cached_property
    def rubrics(self) -> tuple[Rubric, ...]:
        """The item's rubrics, each text once, in order."""
        texts = dict.fromkeys(rubric_texts(self.item.assert_))
        if self.natural and asks_naturalness(self.item.assert_) and self.trajectory.reply.strip():
            texts[RUBRIC] = None
        return tuple(Rubric(id=f"rubric:{n}", text=t) for n, t in enumerate(texts, 1))

    @cached_property
    def document(self) -> dict[str, Any]:
        """Everything a judge is shown; empty parts are left out."""
        parts: dict[str, Any] = {
            **asked(self.item),
            "expected": expected(self.item) if self.reference else None,
            **answered("", self.trajectory),
            "rubrics": [{"ref": r.id, "id": r.id, "text": r.text} for r in self.rubrics],
            "reply": replied("reply", self.trajectory),
        }
        return {name: part for name, part in parts.items() if part}

    @property
    def host_calls(self) -> dict[str, ToolCall]:
        """The host's tool calls by reference."""
        return {f"call:{n}": call for n, call in enumerate(self.trajectory.calls, 1)}

    @cached_property
    def text(self) -> str:
        """The message a judge gets."""
        return between_marks(fenced_json(self.document))

    @cached_property
    def request(self) -> Request:
        """The request of a judge's rollout: the case, and the room for its list of products."""
        return judged_request(self.item, self.text)

    @cached_property
    def digest(self) -> str:
        """Of all that a judge can see of item, trajectory and catalogue: what verdicts are kept by.

        Equal for two trajectories that say and did the same, whatever tokens and clocks they took.
        """
        results = [c.result.content for c in self.trajectory.calls]
        return digest([self.document, results, self.world.digest or self.world.snapshot])


def judged_request(item: Item, text: str) -> Request:
    """The request of a judge's rollout: the case as text, and the room for the list of products."""
    asked_in = item.request
    return Request(channel="private", prompt=text, room=asked_in.room, mode=asked_in.mode)


def asked(item: Item) -> dict[str, Any]:
    """What the host was asked, and in which situation."""
    request = item.request
    return {
        "channel": request.channel,
        "room": _room(request.room),
        "host_said_before": _numbered("host", [{"text": _cut(t)} for t in request.anchor]),
        "history": _numbered("history", [_turn(t) for t in request.history]),
        "viewer_actions": [msgspec.to_builtins(e) for e in request.events],
        "faq_given": _numbered("faq-given", [msgspec.to_builtins(f) for f in request.faq]),
        "comments": _numbered(
            "comment", [{"viewer": c.viewer, "text": _cut(c.text)} for c in request.comments]
        ),
        "prompt": {"ref": "prompt", "text": _cut(request.prompt)} if request.prompt else None,
        "instructions": _numbered(
            "instruction", [{"text": _cut(t)} for t in item.overlay.instructions]
        ),
    }


def answered(prefix: str, trajectory: Trajectory) -> dict[str, Any]:
    """What the host did on the way to its reply."""
    return {
        "skills_loaded": list(trajectory.skills_loaded),
        "tool_calls": _numbered(f"{prefix}call", [_called(c) for c in trajectory.calls]),
        "actions": _numbered(f"{prefix}action", [dict(a) for a in trajectory.actions]),
    }


def expected(item: Item) -> dict[str, Any] | None:
    """What the item's author expects, which the host never saw."""
    expect = item.expect
    facts = [
        {"product": f.product, "field": f.field, "value": f.value, "for": f.answer}
        for f in expect.facts
    ]
    shown = {
        "asked_for": list(expect.answers),
        "facts": facts,
        "forbidden": list(expect.forbidden),
    }
    kept = {name: value for name, value in shown.items() if value}
    return {"ref": "expected", **kept} if kept else None


def replied(ref: str, trajectory: Trajectory) -> dict[str, Any]:
    """The reply, with what is known about it."""
    found: dict[str, Any] = {"ref": ref, "text": _cut(trajectory.reply)}
    if not trajectory.reply.strip():
        found["silent"] = True
    if trajectory.stop is StopReason.REFUSED:
        found["declined_to_speak"] = True
    if trajectory.route is not Route.NORMAL:
        found["route"] = trajectory.route.value
    words = addresses_judge(trajectory.reply)
    if words is not None:
        found["speaks_to_the_judge"] = words
    return found


def rubric_texts(assertions: tuple[Assertion, ...]) -> list[str]:
    """The texts of all `llm-rubric` assertions, those inside sets too."""
    found: list[str] = []
    for assertion in assertions:
        if assertion.type.removeprefix("not-") == "llm-rubric" and isinstance(assertion.value, str):
            found.append(assertion.value)
        found += rubric_texts(assertion.assert_)
    return found


def asks_naturalness(assertions: tuple[Assertion, ...]) -> bool:
    """Whether an item asserts `naturalness`, or its opposite, also inside a set."""
    return any(
        a.type.removeprefix("not-") == "naturalness" or asks_naturalness(a.assert_)
        for a in assertions
    )


def _room(room: Room) -> dict[str, Any]:
    shown = {"id": room.id, "status": room.status, "current_link": room.current_link}
    return {name: value for name, value in shown.items() if value}


def _turn(turn: dict[str, Any]) -> dict[str, Any]:
    return {"role": str(turn.get("role", "")), "text": _cut(str(turn.get("content") or ""))}


def _called(call: ToolCall) -> dict[str, Any]:
    shown = {
        "tool": call.name,
        "arguments": call.arguments if call.arguments is not None else call.arguments_raw,
        "ok": call.result.ok,
        "result": _cut(call.result.content, RESULT_CAP),
    }
    if call.result.error is not None:
        shown["error"] = str(call.result.error)
    return shown


def _numbered(word: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with references; a `ref` of their own they lose."""
    made = []
    for number, row in enumerate(rows, 1):
        made.append({"ref": f"{word}:{number}", **{k: v for k, v in row.items() if k != "ref"}})
    return made


def _cut(text: str, cap: int = TEXT_CAP) -> str:
    return text if len(text) <= cap else f"{text[:cap]} … ({len(text) - cap} characters more)"
