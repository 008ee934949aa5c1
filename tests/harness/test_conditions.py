import pytest

from harness_cli.errors import UsageError
from harness_cli.harness.prompts import CONDITIONS, holds
from harness_cli.records.request import FaqEntry, Request, Room, RoomEvent

PRIVATE = Request(channel="private", faq=(FaqEntry(id="f", question="q", answer="a"),))
ENDED = Request(room=Room(status="ended"), mode="multi", anchor=("hi",))
EVENTS = Request(events=(RoomEvent(viewer="v", kind="join"),), history=({"role": "user"},))


@pytest.mark.parametrize(
    ("when", "request_", "expected"),
    [
        (None, PRIVATE, True),
        ("channel == private", PRIVATE, True),
        ("channel == private", ENDED, False),
        ("channel != private", ENDED, True),
        ("mode == multi", ENDED, True),
        ("faq", PRIVATE, True),
        ("not faq", PRIVATE, False),
        ("not not faq", PRIVATE, True),
        ("anchor", ENDED, True),
        ("events and history", EVENTS, True),
        ("history and not events", EVENTS, False),
        ("room.status == ended", ENDED, True),
        ("room.status==ended", ENDED, True),
        ("faq or anchor and events", PRIVATE, True),
        ("(faq or anchor) and events", PRIVATE, False),
        ("not (faq or anchor)", EVENTS, True),
    ],
)
def test_conditions_read_as_they_are_written(when, request_, expected):
    assert holds(when, request_) is expected


@pytest.mark.parametrize("atom", CONDITIONS)
def test_every_documented_condition_can_be_read(atom):
    assert holds(f"{atom} or not {atom}", Request()) is True


@pytest.mark.parametrize(
    ("when", "hint"),
    [
        ("chanel == private", "did you mean `channel`?"),
        ("channel == secret", "public, private"),
        ("channel", "=="),
        ("faq and", "known"),
        ("", "known"),
        ("(faq", ""),
        ("faq faq", ""),
        ("faq; import os", ""),
        ("__import__('os')", ""),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused(when, hint):
    with pytest.raises(UsageError) as found:
        holds(when, Request())
    assert hint in f"{found.value} {found.value.hint}"
