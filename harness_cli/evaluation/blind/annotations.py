"""Annotations on disk: one append-only file a person, each line durable before the next question.

`annotations/<annotator>.jsonl` has the lines of a run's journal (`store/journal.py`): a checksum a
record, one write and one fdatasync an annotation. A killed program leaves at most a torn last
line, which the next session cuts.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.records.blind import TAGS, Annotation, BlindSheet, Opening
from harness_cli.store.appending import append_durably
from harness_cli.store.journal import cut_torn_tail, line_of, scan
from harness_cli.store.locks import IfLocked, locked
from harness_cli.store.redact import redact
from harness_cli.store.state import user_name

FOLDER = "annotations"
OPENINGS = "openings.jsonl"
CHOICES = ("A", "B", "tie")
LONGEST_REASON = 4_000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

_encode = msgspec.json.Encoder().encode


def annotator_name(name: str | None) -> str:
    """Who annotates: the name given, else the user of this machine. Names become file names."""
    chosen = _user() if name is None else name.strip().lower()
    if not _NAME.fullmatch(chosen):
        raise UsageError(
            f"`{name}` is no annotator's name", hint="--annotator: letters, digits, `.`, `_`, `-`"
        )
    return chosen


def _user() -> str:
    """The user of this machine as a file name."""
    return re.sub(r"[^a-z0-9._-]+", "-", user_name().lower()).strip("._-")[:64] or "annotator"


def fault_of(sheet: BlindSheet, pair: str, choice: str, reason: str, tag: str) -> str | None:
    """What is wrong with an annotation, with its fix; None when nothing is."""
    if pair not in {p.id for p in sheet.pairs}:
        return (
            f"`{pair}` is no pair of this blind test `{sheet.id}`: take the rows of its own sheet"
        )
    if choice not in CHOICES:
        return f"`{choice}` is no choice: A, B or tie"
    if choice != "tie" and not reason.strip():
        return f"{choice} is preferred without a reason: say why in a few words, or choose tie"
    if len(reason) > LONGEST_REASON:
        return f"the reason has {len(reason)} characters: at most {LONGEST_REASON}"
    if tag and tag not in TAGS:
        return f"`{tag}` is no tag: {', '.join(TAGS)}, or nothing"
    return None


class AnnotationLog:
    """The annotations of one person, while this process alone may write them."""

    def __init__(self, sheet: BlindSheet, path: Path, annotator: str) -> None:
        self.sheet, self.path, self.annotator = sheet, path, annotator
        self.latest: dict[str, Annotation] = _latest(path)

    def add(self, pair: str, choice: str, *, reason: str = "", tag: str = "", via: str) -> None:
        """Keep one decision; it is on the disk when this returns. Raises `UsageError`."""
        fault = fault_of(self.sheet, pair, choice, reason, tag)
        if fault is not None:
            raise UsageError(fault)
        made = msgspec.convert(
            {
                "kind": "annotation",
                "pair": pair,
                "choice": choice,
                "reason": redact(reason.strip()),
                "tag": tag,
                "annotator": self.annotator,
                "at": now(),
                "via": via,
            },
            Annotation,
        )
        append(self.path, _encode(made))
        self.latest[pair] = made

    def open_pairs(self) -> list[str]:
        """Pairs that wait for a decision, in the order of the sheet."""
        return [p.id for p in self.sheet.pairs if p.id not in self.latest and not p.identical]


@contextmanager
def opened(
    folder: Path, sheet: BlindSheet, annotator: str, *, if_locked: IfLocked = "fail"
) -> Iterator[AnnotationLog]:
    """The log of one annotator, held for a session. Raises `Locked` where another one is open."""
    path = folder / FOLDER / f"{annotator}.jsonl"
    lock = path.with_suffix(".lock")
    with locked(lock, what=f"annotation by {annotator}", if_locked=if_locked):
        if path.exists():
            cut_torn_tail(path)
        yield AnnotationLog(sheet, path, annotator)


def read_annotations(folder: Path) -> dict[str, dict[str, Annotation]]:
    """Annotator → pair → the last decision."""
    paths = sorted((folder / FOLDER).glob("*.jsonl"))
    return {path.stem: _latest(path) for path in paths}


def read_openings(folder: Path) -> list[Opening]:
    """When the key was opened before the end."""
    path = folder / OPENINGS
    if not path.is_file():
        return []
    return [msgspec.json.decode(line.data, type=Opening) for line in scan(path)]


def record_opening(folder: Path, *, annotated: int, of: int) -> None:
    """Keep that somebody looked before the end; raises `HarnessError` where it cannot be kept."""
    made = Opening(at=now(), by=_user(), annotated=annotated, of=of)
    append(folder / OPENINGS, _encode(made))


def append(path: Path, record: bytes) -> None:
    """One durable line with its checksum."""
    append_durably(path, line_of(record))


def now() -> str:
    """UTC to the microsecond: annotations are ordered against openings."""
    return datetime.now(UTC).isoformat()


def decided(sheet: BlindSheet, by_pair: Mapping[str, Annotation]) -> dict[str, Annotation | None]:
    """Pair → decision, None for a tie by construction; pairs without one are absent."""
    found: dict[str, Annotation | None] = {}
    for pair in sheet.pairs:
        if pair.id in by_pair:
            found[pair.id] = by_pair[pair.id]
        elif pair.identical:
            found[pair.id] = None
    return found


def _latest(path: Path) -> dict[str, Annotation]:
    found: dict[str, Annotation] = {}
    if not path.is_file():
        return found
    for line in scan(path):
        try:
            made = msgspec.json.decode(line.data, type=Annotation)
        except msgspec.MsgspecError as exc:
            raise BadFile(f"{path.name}: a line is no annotation: {exc}") from exc
        found[made.pair] = made
    return found
