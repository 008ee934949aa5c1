"""A large journal scored by several processes: each takes a range of it, one joins what they made.

A record that lies on the other side of a border than its item (a trajectory in one range, the item
in the next) is handed over. A child that fails for whatever reason makes the whole attempt void;
the caller then goes through the journal alone and meets the same fault where it can be told.
Children work from the moment they are started: what they made counts once it is joined.
"""

import io
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from harness_cli.evaluation.part_sums import Collected, Part, PartSums, whole_of
from harness_cli.evaluation.scorer import Scorer, Window
from harness_cli.records.journal import VerdictRecord
from harness_cli.store.children import Children, worth
from harness_cli.store.journal import ranges, scan

LEAST = 16 * 1024 * 1024
"""Bytes of journal that are worth a process."""


class _Made(msgspec.Struct, frozen=True):
    """What a child says beside the lines it wrote."""

    places: list[tuple[str, int, int]]
    trajectories: list[tuple[str, int, bytes]]
    verdicts: list[VerdictRecord]
    orphans: list[bytes]
    sums: PartSums | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Made).decode


@dataclass(frozen=True, slots=True)
class Parts:
    """Children that score the parts of a journal."""

    children: Children
    folder: Path
    count: int
    added_up: bool

    def join(self, scorer: Scorer) -> bool:
        """Wait, and have `scorer` hold what all of them made; False, with nothing done, where one
        failed."""
        done = all(self.children.wait())
        if done:
            _join(scorer, self.folder, self.count, added_up=self.added_up)
        return done


@contextmanager
def parts_of(journal: Path, window: Callable[[], Window]) -> Iterator[Parts | None]:
    """Children at work on a journal; None where it is small or there is one core.

    `window` gives each child the items from the start; a sealed split has been opened before.
    Leaving the context ends and forgets them.
    """
    count = worth(journal.stat().st_size, LEAST)
    if count < 2:
        yield None
        return
    bounds = ranges(journal, count)
    with TemporaryDirectory(prefix="harness-parts-") as name, Children() as children:
        for number, (start, end) in enumerate(bounds):
            last, target = number == len(bounds) - 1, Path(name, str(number))
            children.start(partial(_score, journal, start, end, last, target, window))
        yield Parts(children, Path(name), len(bounds), added_up=window().repeats == 1)


def _score(
    journal: Path, start: int, end: int, last: bool, target: Path, window: Callable[[], Window]
) -> None:
    reached = start
    with (
        target.with_suffix(".lines").open("wb", buffering=1 << 20) as file,
        target.with_suffix(".canonical").open("wb", buffering=1 << 20) as canonical,
    ):
        items = window()
        scorer = Scorer(items, file, part=True)
        if items.repeats == 1:  # else an item may stand in several parts, and is one in the report
            scorer.collected = Collected(canonical)
        for line in scan(journal, start, end):
            scorer.take(line)
            reached = line.end
    if not last and reached != end:
        raise ValueError("a damaged record stands before whole ones")
    made = _Made(
        places=[(item, repeat, at) for (item, repeat), at in scorer.places.items()],
        trajectories=[(item, n, data) for (item, n), data in scorer.trajectories.items()],
        verdicts=list(scorer.verdicts.values()),
        orphans=scorer.orphans,
        sums=None if scorer.collected is None else scorer.collected.sums(),
    )
    target.with_suffix(".made").write_bytes(_encode(made))


def _join(scorer: Scorer, folder: Path, count: int, *, added_up: bool) -> None:
    rest, parts = io.BytesIO(), list[Part]()
    scorer.collected = Collected(rest) if added_up else None
    for number in range(count):
        made = _decode((folder / f"{number}.made").read_bytes())
        scorer.join(folder / f"{number}.lines", made.places)
        for verdict in made.verdicts:
            scorer.verdicts.setdefault((verdict.item, verdict.repeat), verdict)
        for record in made.orphans:
            scorer.score(record)
        for item, repeat, data in made.trajectories:
            scorer.trajectories[item, repeat] = data
        parts.append((made.sums, _mapped(folder / f"{number}.canonical")))
    if scorer.collected is not None:
        scorer.whole = whole_of([*parts, (scorer.collected.sums(), rest.getvalue())])


def _mapped(path: Path) -> bytes | mmap.mmap:
    """A file's bytes, which outlive its name; they are not read before they are asked for."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
