"""Copies of this process at work: what each made counts, and none is left."""

import os
import threading
import time

import pytest

from harness_cli.store import children
from harness_cli.store.children import Children, worth


def none_is_left() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def test_each_is_told_in_the_order_in_which_they_began(tmp_path):
    def fails():
        raise ValueError("this one")

    with Children() as some:
        for work in ((tmp_path / "made").touch, fails, lambda: os.kill(os.getpid(), 9), int):
            some.start(work)
        assert some.wait() == [True, False, False, True]
        assert some.wait() == []
    assert (tmp_path / "made").exists()
    assert none_is_left()


def test_leaving_the_block_ends_them():
    began = time.monotonic()
    with Children() as some:
        some.start(lambda: time.sleep(60))
        some.start(lambda: time.sleep(60))
    assert none_is_left()
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
