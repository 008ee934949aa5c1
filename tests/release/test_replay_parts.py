"""A stretch of rollouts a process: nothing of what comes of them depends on how many there are."""

import os
import threading

import msgspec
import pytest

from harness_cli.errors import BadFile
from harness_cli.release import replay_parts
from harness_cli.release.replay_parts import in_parts
from harness_cli.store import children

TODO = [(at, f"item-{at}", 0) for at in range(10)]


class Seen(msgspec.Struct):
    by: int
    places: list[int]


def look(stretch) -> Seen:
    return Seen(os.getpid(), [at for at, _, _ in stretch])


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setattr(children, "cores", lambda: 3)
    monkeypatch.setattr(replay_parts, "LEAST", 1)


@pytest.fixture
def alone(monkeypatch):
    """Whatever threads other tests of this process left."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


@pytest.mark.usefixtures("three", "alone")
def test_every_rollout_is_looked_at_once_and_in_order_by_a_process_a_stretch():
    made = in_parts(TODO, look)
    assert [at for part in made for at in part.places] == list(range(10))
    assert len({part.by for part in made}) == 3
    assert made[0].by == os.getpid()


def test_few_rollouts_are_worth_no_process(monkeypatch):
    monkeypatch.setattr(children, "cores", lambda: 3)
    assert in_parts(TODO, look) == [Seen(os.getpid(), list(range(10)))]


@pytest.mark.usefixtures("three")
def test_beside_threads_none_is_started():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        assert [part.by for part in in_parts(TODO, look)] == [os.getpid()]
    finally:
        ended.set()
        thread.join()


@pytest.mark.usefixtures("three", "alone")
def test_what_a_process_that_was_killed_left_is_done_here():
    here = os.getpid()

    def fragile(stretch) -> Seen:
        if os.getpid() != here and (9, "item-9", 0) in stretch:
            os.kill(os.getpid(), 9)
        return look(stretch)

    made = in_parts(TODO, fragile)
    assert [at for part in made for at in part.places] == list(range(10))
    assert made[-1].by == here


@pytest.mark.usefixtures("three", "alone")
@pytest.mark.parametrize("bad", [0, 5, 9])
def test_an_error_of_any_stretch_is_raised_and_no_process_is_left(bad):
    def refuses(stretch) -> Seen:
        if any(at == bad for at, _, _ in stretch):
            raise BadFile(f"record {bad}")
        return look(stretch)

    with pytest.raises(BadFile, match=f"record {bad}"):
        in_parts(TODO, refuses)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
