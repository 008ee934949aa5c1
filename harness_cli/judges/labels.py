"""Labelled replies: what people said of a reply, and how far a judge agrees with them.

The format (`labels.jsonl`, one reply a line) is documented in docs/judging.md.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.judges.base import Judge
from harness_cli.records.calibration import LabelledCall
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Expect, Item
from harness_cli.records.reader import parse_json, read_text
from harness_cli.records.request import Comment, Request, Room
from harness_cli.records.trajectory import Route, Step, ToolCall, ToolResult, Trajectory
from harness_cli.records.verdict import Verdict


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One annotator's reading of the reply."""

    annotator: str
    accuracy: int
    """0 or 1."""
    effectiveness: float
    """0, 0.5 or 1."""
    kinds: tuple[str, ...] = ()
    """What is wrong with it, in the judge's words; empty for a faultless reply."""


class LabelledReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a labels file: a reply to an item, and the labels it got."""

    id: str
    reply: str
    labels: tuple[Label, ...]
    item: Item | None = None
    """The whole item; or `item_id`, or `comments`, `room`, `current_link` and `expect`."""
    item_id: str | None = None
    """An item of the evalset that the verb names."""
    comments: tuple[str, ...] = ()
    room: str = ""
    """A room of the catalogue: its products in their order are the links."""
    current_link: int | None = None
    expect: Expect = Expect()
    calls: tuple[LabelledCall, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()
    corruption: str = ""
    """What was done to a good reply to make this one, when anything was; recall is by this word."""
    category: str = ""
    note: str = ""


class LabelRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The flat form of a line: one reading of a reply to an item of an evalset."""

    id: str
    item_id: str
    reply: str
    accuracy: int
    effectiveness: float
    kind: str | None = None
    """The main fault; `also` names further ones."""
    also: tuple[str, ...] = ()
    annotator: str = "team"
    tool_results: tuple[LabelledCall, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()
    channel: str = "public"
    wording: str | None = None
    note: str = ""

    def labelled(self) -> LabelledReply:
        """The same as a labelled reply."""
        kinds = tuple(k for k in (self.kind, *self.also) if k)
        label = Label(
            annotator=self.annotator,
            accuracy=self.accuracy,
            effectiveness=self.effectiveness,
            kinds=kinds,
        )
        return LabelledReply(
            id=self.id,
            reply=self.reply,
            labels=(label,),
            item_id=self.item_id,
            calls=self.tool_results,
            actions=self.actions,
            note=self.note,
        )


def read_labels(path: Path) -> list[LabelledReply]:
    """Every line of a labels file. Raises `BadFile` with the line of what is wrong."""
    found: list[LabelledReply] = []
    seen: set[str] = set()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        if "labels" in parse_json(line, dict[str, Any], name=where):
            reply = parse_json(line, LabelledReply, name=where)
        else:
            reply = parse_json(line, LabelRow, name=where).labelled()
        wrong = _fault(reply, seen)
        if wrong:
            raise BadFile(f"{path}:{number}: {wrong}")
        seen.add(reply.id)
        found.append(reply)
    if not found:
        raise BadFile(f"{path}: no labelled reply in it")
    return found


def _fault(reply: LabelledReply, seen: set[str]) -> str | None:
    if reply.id in seen:
        return f"`{reply.id}` stands twice"
    if not reply.labels:
        return f"`{reply.id}` has no label"
    for label in reply.labels:
        if label.accuracy not in (0, 1) or label.effectiveness not in (0, 0.5, 1):
            return f"`{reply.id}`: accuracy is 0 or 1, effectiveness 0, 0.5 or 1"
    if len({label.annotator for label in reply.labels}) < len(reply.labels):
        return f"`{reply.id}`: one annotator has labelled it twice"
    return None


def with_items(replies: Sequence[LabelledReply], items: Iterable[Item]) -> list[LabelledReply]:
    """The replies with the items that they name by id; raises `BadFile` for one that is absent."""
    wanted = {r.item_id for r in replies if r.item is None and r.item_id is not None}
    known = {item.id: item for item in items if item.id in wanted}
    absent = sorted(wanted - known.keys())
    if absent:
        raise BadFile(f"labels name items that the evalset has not: {', '.join(absent[:5])}")
    return [
        msgspec.structs.replace(r, item=known[r.item_id])
        if r.item is None and r.item_id is not None
        else r
        for r in replies
    ]


def as_item(reply: LabelledReply, world: Catalogue) -> Item:
    """The item that a reply answers."""
    if reply.item is not None:
        return reply.item
    if reply.item_id is not None:
        raise BadFile(f"label `{reply.id}`: item `{reply.item_id}` was not looked up")
    room = world.room(reply.room)
    if reply.room and room is None:
        raise BadFile(f"label `{reply.id}`: the catalogue has no room `{reply.room}`")
    request = Request(
        comments=tuple(Comment(viewer=f"v{i}", text=t) for i, t in enumerate(reply.comments)),
        room=Room(
            id=reply.room,
            current_link=reply.current_link,
            products=room.products if room else (),
        ),
        mode="multi" if len(reply.comments) > 1 else "single",
    )
    return Item(
        id=reply.id,
        category=reply.category or "uncategorised",
        mode=request.mode,
        request=request,
        expect=reply.expect,
    )


def as_trajectory(reply: LabelledReply) -> Trajectory:
    """A trajectory that ends in the reply and made the given calls."""
    calls = tuple(
        ToolCall(
            id=f"call-{i}",
            name=call.name,
            arguments_raw=msgspec.json.encode(call.arguments).decode(),
            arguments=call.arguments,
            result=ToolResult(
                ok=call.ok,
                content=msgspec.json.encode(call.result).decode(),
                structured=call.result,
            ),
        )
        for i, call in enumerate(reply.calls)
    )
    step = Step(index=0, messages=(), reply=ChatReply(content=reply.reply), calls=calls)
    return Trajectory(
        request_id=reply.id,
        item_id=reply.id,
        steps=(step,),
        reply=reply.reply,
        actions=reply.actions,
        route=Route.NORMAL if reply.reply.strip() else Route.SUPPRESSED,
    )


async def judge_labels(
    judge: Judge, replies: Sequence[LabelledReply], world: Catalogue
) -> list[Verdict]:
    """The judge's verdict on every labelled reply."""
    return [await judge.judge(as_item(r, world), as_trajectory(r), world) for r in replies]
