"""The table of items: one small JSON object a rollout, and the two spools its details go to."""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

from harness_cli.evaluation.page.chunks import Pieces, Place, embedded
from harness_cli.evaluation.page.located import JournalReader
from harness_cli.evaluation.page.trace import Shower, Texts
from harness_cli.evaluation.report import why_failed
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult
from harness_cli.store.runs import Key

SHORT = 240
"""Characters of a question or a reply that the table shows and the search looks through."""
RESERVE = 512 * 1024
"""Bytes kept for everything that is neither the table nor a trajectory."""


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """What the incumbent did with an item that changed its state."""

    change: str
    """fixed or broken."""
    run: str
    states: tuple[str, ...]
    reply: str
    scores: dict[str, float | None]
    findings: tuple[str, ...]


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the table."""

    id: str
    repeat: int = 0
    category: str = ""
    state: str = ""
    tags: tuple[str, ...] = ()
    scores: dict[str, float | None] = {}
    ask: str = ""
    reply: str = ""
    kinds: tuple[str, ...] = ()
    why: str = ""
    route: str = ""
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    wall: float | None = None
    change: str = ""
    at: Place | None = None
    """Where its trajectory lies; None when the page has no room for it."""


@dataclass(slots=True)
class Spooled:
    """What is on disk after all rows are made: to be put into the page in this order."""

    rows: IO[bytes]
    pieces: IO[bytes]
    walls: list[float] = field(default_factory=list)
    """Seconds of the fresh rollouts that answered by themselves."""
    items: int = 0
    left_out: int = 0
    """Rollouts whose trajectory found no room."""
    cut: int = 0
    """Texts that were shortened."""

    @classmethod
    def empty(cls, stack: ExitStack) -> "Spooled":
        """Two temporary files that `stack` closes."""
        rows, pieces = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        return cls(stack.enter_context(rows), stack.enter_context(pieces))


def spool(
    reader: JournalReader,
    *,
    before: dict[str, Before],
    clean: Callable[[str], str],
    room: int,
    stack: ExitStack,
) -> Spooled:
    """Rows and trajectories of a run, the worst first, so that room runs out for passes last.

    `room` is in bytes and bounds the whole page; rows always find room. The spools are temporary
    files that `stack` closes.
    """
    out = Spooled.empty(stack)
    details, texts = Pieces(out.pieces, "t"), Pieces(out.pieces, "x")
    kept = Texts(texts, clean)
    shower = Shower(kept, reader.text)
    keys = reader.places.worst_first()
    size = 0
    for number, key in enumerate(keys):
        result, trajectory = reader.result(key), reader.trajectory(key)
        ahead = size // max(number, 1) * (len(keys) - number)
        place = None
        if trajectory is not None:
            needed = size + ahead + details.bytes + texts.bytes + RESERVE
            # Once it was short it stays so: no passed item gets room that a failed one was refused.
            if needed < room and not out.left_out:
                document = _document(reader, shower, key, result, trajectory, before)
                place = details.add(clean(document.decode()).encode())
            else:
                out.left_out += 1
        row = _row(result, shower.question(trajectory) if trajectory else "", place, before)
        line = embedded(clean(msgspec.json.encode(row).decode()).encode())
        out.rows.write((b",\n" if number else b"\n") + line)
        size += len(line) + 2
        if result.wall_s is not None and result.state != "errored" and not result.fell_back:
            out.walls.append(result.wall_s)
    texts.close()
    details.close()
    out.items, out.cut = len(keys), kept.cut
    return out


def _document(
    reader: JournalReader,
    shower: Shower,
    key: Key,
    result: ItemResult,
    trajectory: Trajectory,
    before: dict[str, Before],
) -> bytes:
    document: dict[str, Any] = {
        "t": shower.trajectory(trajectory),
        "v": shower.verdict(reader.verdict(key), result),
    }
    if key.item in before:
        document["b"] = msgspec.to_builtins(before[key.item])
    return msgspec.json.encode(document)


def _row(result: ItemResult, ask: str, place: Place | None, before: dict[str, Before]) -> Row:
    changed = before.get(result.item_id)
    return Row(
        id=result.item_id,
        repeat=result.repeat,
        category=result.category,
        state=result.state,
        tags=result.tags,
        scores=result.scores,
        ask=short_end(ask),
        reply=short(result.reply),
        kinds=unique(f.kind for f in result.findings),
        why="" if result.state == "passed" else short(result.error or why_failed(result)),
        route="" if result.route == "normal" else result.route,
        tools=unique(result.tools_called),
        skills=unique(result.skills_loaded),
        wall=None if result.wall_s is None else round(result.wall_s, 3),
        change=changed.change if changed else "",
        at=place,
    )


def unique(words: Iterable[str]) -> tuple[str, ...]:
    """Each word once, in order."""
    return tuple(dict.fromkeys(words))


def short_end(text: str) -> str:
    """The end of a prompt, where the viewer's words stand, for one cell."""
    text = " ".join(text[-4 * SHORT :].split())
    return text if len(text) <= SHORT else "…" + text[1 - SHORT :]


def short(text: str) -> str:
    """A text for one cell: blanks joined, the end given up with a mark."""
    text = " ".join(text[: 4 * SHORT].split())
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"
