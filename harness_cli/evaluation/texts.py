"""Long prompt texts are journaled once: a shipped system prompt has 8 KB and is mostly the same."""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from harness_cli.records.journal import TextRecord, TrajectoryRecord
from harness_cli.records.trajectory import Step, Trajectory
from harness_cli.store.runs import REF, TEXTS

LONG = 512
"""Characters from which a text is kept apart."""
SHARED = ("system", "user")
"""Roles whose texts come from the harness and the item: often the same, and not yet cleaned."""


class Texts:
    """The writing side of `RunFolder.trajectories`: which texts stand in the journal already.

    It knows the last `TEXTS`, first in, first out, so memory is bounded where every item has a
    prompt of its own; the reader keeps twice as many, so that one evicted by the trajectory that
    refers to it is still there.
    """

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._known: dict[str, str] = {}

    def records(
        self, item: str, repeat: int, trajectory: Trajectory
    ) -> Iterator[TextRecord | TrajectoryRecord]:
        """The records of one trajectory: first the texts that are new, then itself."""
        steps: list[Step] = []
        learned = 0
        for step in trajectory.steps:
            messages: list[dict[str, Any]] = []
            for message in step.messages:
                content = message.get("content", "")
                if _kept_apart(message) and (content in self._known or learned < TEXTS):
                    if content not in self._known:
                        learned += 1
                        yield self._learn(content)
                    message = {**message, "content": {REF: self._known[content]}}
                elif message.get("role") in SHARED and isinstance(content, str):
                    message = {**message, "content": self._clean(content)}
                messages.append(message)
            steps.append(msgspec.structs.replace(step, messages=tuple(messages)))
        kept = msgspec.structs.replace(trajectory, steps=tuple(steps))
        yield TrajectoryRecord(item=item, repeat=repeat, trajectory=kept)

    def _learn(self, text: str) -> TextRecord:
        name = blake2b(text.encode(), digest_size=8).hexdigest()
        record = TextRecord(id=name, text=self._clean(text))
        self._known[text] = record.id
        if len(self._known) > TEXTS:
            del self._known[next(iter(self._known))]
        return record


def _kept_apart(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return message.get("role") in SHARED and isinstance(content, str) and len(content) >= LONG
