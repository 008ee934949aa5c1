"""Finished items go to the disk together: few syncs, and nobody waits for them longer than that."""

import asyncio
import time

from harness_cli.evaluation import rollouts
from harness_cli.evaluation.rollouts import Finished

LONG_S = 20.0
ENTRY = (None, None)


def company(monkeypatch, seconds, *, before=0, then=(), size=2):
    """How long an item waits for company: `before` others are there, `then` come meanwhile."""
    monkeypatch.setattr(rollouts, "TOGETHER_S", seconds)

    async def go():
        finished = Finished(size)
        for _ in range(before):
            await finished.put(ENTRY)
        begun = time.monotonic()
        waiting = asyncio.ensure_future(finished.company())
        await asyncio.sleep(0)
        coming = [asyncio.ensure_future(finished.put(entry)) for entry in then]
        await waiting
        took = time.monotonic() - begun
        for task in coming:
            task.cancel()
        return took

    return asyncio.run(go())


def test_an_item_waits_for_others_no_longer_than_its_moment(monkeypatch):
    assert 0.1 <= company(monkeypatch, 0.1) < LONG_S / 2
    assert 0.1 <= company(monkeypatch, 0.1, then=[ENTRY]) < LONG_S / 2


def test_nothing_is_waited_for_where_a_worker_waits_for_room(monkeypatch):
    assert company(monkeypatch, LONG_S, before=2) < LONG_S / 2
    assert company(monkeypatch, LONG_S, before=1, then=[ENTRY, ENTRY]) < LONG_S / 2


def test_nothing_is_waited_for_at_the_end(monkeypatch):
    assert company(monkeypatch, LONG_S, then=[None]) < LONG_S / 2
    assert company(monkeypatch, LONG_S, before=1, then=[ENTRY, None], size=4) < LONG_S / 2
