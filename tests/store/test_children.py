"""Copies of this process at work: what each made counts, and none is left."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness_cli.store import children
from harness_cli.store.children import Children, worth


def alive() -> set[str]:
    """Children of this process, those that nobody waited for among them; other tests leave some."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # one that ended meanwhile
            state = (folder / "stat").read_text().rpartition(")")[2].split()
            if state[1] == str(os.getpid()):
                found.add(folder.name)
    return found


def test_a_child_that_runs_and_one_that_nobody_waited_for_are_seen():
    before = alive()
    with Children() as some:
        some.start(lambda: time.sleep(60))
        some.start(int)
        assert len(alive() - before) == 2


def test_each_is_told_in_the_order_in_which_they_began(tmp_path):
    def fails():
        raise ValueError("this one")

    before = alive()
    with Children() as some:
        for work in ((tmp_path / "made").touch, fails, lambda: os.kill(os.getpid(), 9), int):
            some.start(work)
        assert some.wait() == [True, False, False, True]
        assert some.wait() == []
    assert (tmp_path / "made").exists()
    assert alive() <= before


def test_leaving_the_block_ends_them():
    began, before = time.monotonic(), alive()
    with Children() as some:
        some.start(lambda: time.sleep(60))
        some.start(lambda: time.sleep(60))
    assert alive() <= before
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("cores", "amount", "processes"),
    [(1, 100, 1), (3, 100, 3), (3, 25, 2), (3, 5, 0), (64, 999, 8)],
)
def test_work_is_worth_a_process_a_share(monkeypatch, cores, amount, processes):
    monkeypatch.setattr(children, "cores", lambda: cores)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert worth(amount, 10) == processes
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert worth(amount, 10) == 1
