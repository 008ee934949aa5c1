"""Labelled replies: what people said of a reply, and the verdicts of a judge on them.

The format of their files is documented in docs/judging.md; `label_file.py` reads them.
"""

from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.calibration import LabelledCall
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Expect, Item
from harness_cli.records.request import Comment, Request, Room
from harness_cli.records.trajectory import Route, Step, ToolCall, ToolResult, Trajectory


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
    """The flat form of a line, or of a row of CSV: one reading of a reply to an evalset's item."""

    id: str = ""
    """Default: the item's id. Lines of one id, one annotator each, are one reply."""
    item_id: str
    reply: str | None = None
    """None: the reply that a run gave, which the verb names."""
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
    corruption: str = ""
    category: str = ""
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
            id=self.id or self.item_id,
            reply=self.reply or "",
            labels=(label,),
            item_id=self.item_id,
            calls=self.tool_results,
            actions=self.actions,
            corruption=self.corruption,
            category=self.category,
            note=self.note,
        )


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


Case = tuple[Item, Trajectory]
