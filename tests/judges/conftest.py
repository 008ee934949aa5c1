"""The shipped catalogue, one judge, and small makers of items and trajectories."""

from pathlib import Path

import pytest

from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Expect, Item
from harness_cli.records.request import Comment, Request, Room
from harness_cli.records.trajectory import Route, Step, ToolCall, ToolResult, Trajectory
from harness_cli.store.catalogue import read_catalogue

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def world():
    return read_catalogue(ROOT / "evalsets" / "catalogue")


@pytest.fixture(scope="session")
def judge():
    return GroundedJudge()


@pytest.fixture(scope="session")
def grade(judge, world):
    """`grade(reply, room=…, link=…, comments=…, expect=…, calls=…)` → Verdict."""

    def run(reply, room="room-beauty", link=1, comments=("?",), expect=None, **parts):
        item = make_item(world, room, link, comments, expect or Expect())
        return judge.verdict(item, make_trajectory(reply, **parts), world)

    return run


def make_item(world, room, link, comments, expect):
    products = world.room(room).products
    mode = "multi" if len(comments) > 1 else "single"
    request = Request(
        comments=tuple(Comment(viewer="v", text=text) for text in comments),
        room=Room(id=room, products=products, current_link=link),
        mode=mode,
    )
    return Item(id="item-1", mode=mode, request=request, expect=expect)


def make_trajectory(reply, calls=(), **fields):
    """`calls` holds (name, arguments, result) or (name, arguments, result, ok)."""
    made = tuple(
        ToolCall(
            id=f"c{i}",
            name=name,
            arguments_raw="{}" if arguments is None else str(arguments),
            arguments=arguments,
            result=ToolResult(ok=not bad, content=str(result), structured=result),
        )
        for i, (name, arguments, result, *bad) in enumerate(calls)
    )
    step = Step(index=0, messages=(), reply=ChatReply(content=reply), calls=made)
    fields.setdefault("route", Route.NORMAL if reply else Route.SUPPRESSED)
    return Trajectory(request_id="r-1", steps=(step,), reply=reply, **fields)
