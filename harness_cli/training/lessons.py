"""A teacher's rollouts as lessons of students: filtered, retries pruned, spooled, read in order.

    run, as it ended ──▶ rejected? ──▶ hook retries pruned ──▶ agent | tool | response ──▶ spool
                                                                                 │
                                              by item, state, candidate ◀────────┘

One rollout is held in memory at a time. Rollouts lie in the order in which they ended; lessons come
back in that of items, and of equal ones the first there counts.
"""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from harness_cli.harness.tools import offered
from harness_cli.records.canonical import digest
from harness_cli.records.item import Item
from harness_cli.records.training import LeftOut, Provenance, SftJob, SftRow
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult
from harness_cli.store.runs import Key
from harness_cli.training.conversation import Conversation, conversation_of, pruned
from harness_cli.training.masking import Order
from harness_cli.training.rejection import kept_whole, rejected
from harness_cli.training.students import Lesson, lesson, tools_column
from harness_cli.training.teaching import Taught
from harness_cli.training.teaching_plan import ORIGINAL

_json = msgspec.json.Encoder().encode
"""Keys stay in the order in which they were sampled and shown."""


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson as it lies on the disk."""

    row: SftRow
    trained: tuple[int, ...]
    unfinished: bool = False
    sampled: dict[int, tuple[int, ...]] | None = None

    def order(self) -> Order:
        """The lesson for the tokeniser."""
        row = self.row
        made = Lesson(
            student=row.student,
            messages=(*row.messages, *row.prompt, *row.completion),
            trained=self.trained,
            unfinished=self.unfinished,
        )
        tools = msgspec.json.decode(row.tools) if row.tools else None
        return Order(made, tools, self.sampled)


_read = msgspec.json.Decoder(Spooled).decode
Place = tuple[Key, int]
"""Item with repeat, and which of the job's students."""


@dataclass(slots=True)
class Lessons:
    """What comes of a teacher's work; a context, at whose end the spool is gone."""

    left_out: list[LeftOut] = field(default_factory=list)
    """In order of item, state, candidate and student; the tokeniser adds what it cannot take."""
    retries: Counter[str] = field(default_factory=Counter)
    candidates: int = 0
    rows: int = 0
    """Lessons that `each` gives."""
    _found: dict[Place, tuple[int, int, bytes]] = field(default_factory=dict)
    """Where a lesson lies in the spool, how long it is, and what makes it the same as another."""
    _left: dict[Place, LeftOut] = field(default_factory=dict)
    _spool: Any = field(default_factory=tempfile.TemporaryFile)

    def __enter__(self) -> "Lessons":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._spool.close()

    def keep(self, place: Place, spooled: Spooled, same: bytes) -> None:
        """Write a lesson down."""
        data = _json(spooled)
        self._found[place] = (self._spool.tell(), len(data), same)
        self._spool.write(data)

    def leave(self, place: Place, out: LeftOut) -> None:
        """A candidate or lesson that is none."""
        self._left[place] = out

    def close_books(self) -> None:
        """Sort, and leave out what stands there already."""
        seen: set[bytes] = set()
        for place in sorted(self._found):
            same = self._found[place][2]
            if same in seen:
                row = _read_at(self._spool, self._found.pop(place)).row
                self._left[place] = left_out(row, "duplicate")
            seen.add(same)
        self.rows = len(self._found)
        self.left_out = [self._left[place] for place in sorted(self._left)]
        self._left.clear()

    def each(self) -> Iterator[Spooled]:
        """Every lesson, in order, one at a time."""
        for place in sorted(self._found):
            yield _read_at(self._spool, self._found[place])


def _read_at(spool: Any, where: tuple[int, int, bytes]) -> Spooled:
    spool.seek(where[0])
    return _read(spool.read(where[1]))


def left_out(row: SftRow, reason: str, detail: str = "") -> LeftOut:
    """A lesson that is in no file, and why."""
    origin = row.provenance
    return LeftOut(
        item=origin.item,
        state=origin.state,
        candidate=origin.candidate,
        student=row.student,
        reason=reason,
        detail=detail,
    )


def lessons_of(taught: Taught, job: SftJob, folder: Path) -> Lessons:
    """Filter the candidates and make the students' lessons of what is left.

    The spool lies in `folder`, where the data set is going to be: it is as large.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  `Lessons` is its context
    found = Lessons(_spool=spool)
    results = {Key(r.item_id, r.repeat): r for r in taught.run.results()}
    items = {item.id: item for item in taught.evalset.items}
    for trajectory in taught.run.trajectories(results.__contains__):
        key = Key(str(trajectory.item_id), trajectory.repeat)
        found.candidates += 1
        _candidate(taught, job, found, key, items[key.item], results.pop(key), trajectory)
    found.close_books()
    return found


def _candidate(
    taught: Taught,
    job: SftJob,
    found: Lessons,
    key: Key,
    item: Item,
    result: ItemResult,
    trajectory: Trajectory,
) -> None:
    state, candidate = taught.place(result.repeat)
    why = rejected(result, trajectory, job.accept)
    if why is not None:
        out = LeftOut(item=item.id, state=state, candidate=candidate, reason=why[0], detail=why[1])
        found.leave((key, -1), out)
        return
    whole = conversation_of(trajectory)
    kept, how = _retried(whole, job, item.id)
    found.retries[how] += 1
    origin = Provenance(
        evalset=taught.evalset.header.name,
        split=str(taught.evalset.ref.split),
        item=item.id,
        state=state,
        harness=taught.state(state).id,
        map_sha256=_map_digest(taught, state),
        teacher=taught.teacher,
        judge=taught.judge,
        accuracy=result.scores.get("accuracy"),
        effectiveness=result.scores.get("effectiveness"),
        verdict=result.state,
        candidate=candidate,
        retries=how,
        refused_outputs=whole.failures,
        trajectory_sha256=result.trajectory_sha256,
    )
    tools = tools_column(offered(taught.state(state), overlay=item.overlay.tools))
    for number, student in enumerate(job.students):
        made = lesson(student, kept, thinking=job.thinking == "keep", include_last=job.include_last)
        if isinstance(made, str):
            out = LeftOut(item=item.id, state=state, candidate=candidate, reason=made)
            found.leave((key, number), msgspec.structs.replace(out, student=student))
            continue
        spooled = Spooled(
            row=_row(made, tools, origin),
            trained=made.trained,
            unfinished=made.unfinished,
            sampled=_sampled(made, kept),
        )
        same = hashlib.sha256(_json([student, made.messages, made.trained, tools])).digest()
        found.keep((key, number), spooled, same)


def _retried(whole: Conversation, job: SftJob, item: str) -> tuple[Conversation, Any]:
    """The conversation with its hook retries or without, and which it is.

    A call whose arguments are no object cannot be shown again as it was: such retries are pruned.
    """
    if not whole.failures:
        return whole, "none"
    if kept_whole(item, job.keep_retries, job.seed) and not whole.malformed:
        return whole, "kept"
    return pruned(whole), "pruned"


def _map_digest(taught: Taught, state: str) -> str:
    return "" if state == ORIGINAL or taught.states is None else digest(taught.states.maps[state])


def _sampled(made: Lesson, conversation: Conversation) -> dict[int, tuple[int, ...]] | None:
    """Ids the teacher's server sampled, where the lesson shows its turns unchanged."""
    return conversation.sampled() or None if made.student == "agent" else None


def _row(made: Lesson, tools: list[dict[str, Any]] | None, origin: Provenance) -> SftRow:
    alone = made.student == "response"
    return SftRow(
        id=f"{origin.item}@{origin.state}#{origin.candidate}/{made.student}",
        student=made.student,
        messages=() if alone else made.messages,
        prompt=tuple(made.prompt) if alone else (),
        completion=tuple(made.completion) if alone else (),
        tools=_json(tools).decode() if tools else "",
        provenance=origin,
    )
