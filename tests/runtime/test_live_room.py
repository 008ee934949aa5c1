"""A live room line by line: groups, talk, steering."""

import asyncio

import pytest

from harness_cli.errors import UsageError
from harness_cli.records.catalogue import Catalogue, Product
from harness_cli.records.request import Request, Room
from harness_cli.records.trajectory import Trajectory
from harness_cli.runtime.live_room import LiveRoom, steered

WORLD = Catalogue(
    snapshot="2026-01-01",
    products=tuple(
        Product(id=p, name=p, category="x", price=1, list_price=1) for p in ("p-1", "p-2")
    ),
)
BASE = Request(room=Room(id="r", products=("p-1", "p-2"), current_link=1))


def play(*lines, window_s=0.15):
    """Lines are texts, or seconds to wait before the next one."""
    asked = []

    async def coming():
        for text in lines:
            if isinstance(text, float):
                await asyncio.sleep(text)
            else:
                yield text

    async def answer(request, group):
        asked.append(request)
        return Trajectory(request_id="x", reply=f"reply {len(asked)}")

    room = LiveRoom(BASE, WORLD, window_s=window_s)
    count = asyncio.run(room.play(coming(), answer))
    assert count == len(asked)
    return asked


def texts(request):
    return [(c.viewer, c.text) for c in request.comments]


def test_comments_of_one_kind_are_answered_together_when_their_window_is_over():
    one, two = play("amy: how much is #1\n", "price of #1 please\n", 0.4, "how much is #1 now\n")
    assert texts(one) == [("amy", "how much is #1"), ("viewer", "price of #1 please")]
    assert (one.mode, two.mode) == ("multi", "single")


def test_what_was_said_travels_with_the_next_request():
    _, two = play("hello\n", "/link 2\n", "how much\n")
    assert two.history == (
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "reply 1"},
    )
    assert two.room.current_link == 2


def test_the_end_of_the_lines_answers_what_waits():
    assert len(play("hello\n", "how much\n", "thanks\n", window_s=60)) == 3


def test_quit_ends_the_room_before_the_lines_do():
    assert len(play("hello\n", "/quit\n", "thanks\n", window_s=60)) == 1


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("/link 2", {"current_link": 2}),
        ("/status ended", {"status": "ended"}),
        ("/private", {"channel": "private"}),
        ("/host Welcome back", {"anchor": ("Welcome back",)}),
    ],
)
def test_a_line_that_begins_with_a_slash_steers_the_room(line, changed):
    request = steered(BASE, line)
    for name, value in changed.items():
        assert getattr(request, name, getattr(request.room, name, None)) == value


@pytest.mark.parametrize("line", ["/link 3", "/link x", "/status gone", "/dance", "/host"])
def test_an_unknown_line_says_what_there_is(line):
    with pytest.raises(UsageError) as caught:
        steered(BASE, line)
    assert "/link 1-2" in caught.value.hint
