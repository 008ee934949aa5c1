"""Long prompt texts are journaled once: a shipped system prompt has 8 KB and is mostly the same."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec

from harness_cli.records.journal import TextRecord
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.runs import REF, TEXTS

LONG = 512
"""Characters from which a text is kept apart."""
SHARED = ("system", "user")
"""Roles whose texts come from the harness and the item: often the same, and not yet cleaned."""


class Texts:
    """The writing side of `RunFolder.trajectories`: which texts stand in the journal already.

    It knows the last `TEXTS`, first in, first out, so memory is bounded where every item has a
    prompt of its own; the reader keeps twice as many and drops none before the trajectory that
    follows them.
    """

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._known: dict[str, str] = {}

    def compact(self, trajectory: Trajectory) -> tuple[list[TextRecord], Trajectory]:
        """The trajectory with references for its long prompt texts, and those that are new.

        Both are to be journaled at once, the texts first.
        """
        new: list[TextRecord] = []
        steps = tuple(
            msgspec.structs.replace(
                step, messages=tuple(self._compacted(message, new) for message in step.messages)
            )
            for step in trajectory.steps
        )
        while len(self._known) > TEXTS:
            del self._known[next(iter(self._known))]
        return new, msgspec.structs.replace(trajectory, steps=steps)

    def _compacted(self, message: dict[str, Any], new: list[TextRecord]) -> dict[str, Any]:
        content = message.get("content")
        if message.get("role") not in SHARED or not isinstance(content, str):
            return message
        if len(content) < LONG:
            return {**message, "content": self._clean(content)}
        if content not in self._known:
            new.append(self._learn(content))
        return {**message, "content": {REF: self._known[content]}}

    def _learn(self, text: str) -> TextRecord:
        clean = self._clean(text)
        record = TextRecord(id=blake2b(clean.encode(), digest_size=16).hexdigest(), text=clean)
        self._known[text] = record.id
        return record
