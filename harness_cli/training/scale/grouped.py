"""Advantages of rows that a distributed engine holds: one row a segment of a rollout (METHODS §6).

An engine's batch is a bag of rows in any order: padding between them, rollouts that failed missing.
Each row says to which group, rollout and segment it belongs and carries the whole reward line of
its rollout (`rewards.COLUMNS`), so the table that GDPO needs is put together here, and the
arithmetic stays that of `training/rewards.py`. Nothing of an engine is loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import torch

from harness_cli.errors import UsageError
from harness_cli.records.room import RoomCard
from harness_cli.training.advantages import FLOOR, FinalStep, Std
from harness_cli.training.rewards import (
    COLUMNS,
    SEGMENTS,
    CotPenalty,
    SegmentAdvantages,
    segment_advantages,
)

FIELD: Final = "harness"
"""Where the engine's row carries ours (`extra_fields["harness"]`)."""


class RowNote(msgspec.Struct, frozen=True, kw_only=True):
    """What travels with a row."""

    segment: str
    """tool or reply; `whole` for a row that is distilled, which has no advantage."""
    rewards: tuple[float | None, ...]
    """The reward line of the rollout, `rewards.COLUMNS`; None where a dimension is unscored."""
    share: float = 1.0
    """Tokens of this row over those of its segment. A segment whose context was rewritten lies in
    several rows; each is weighed by its share, so that together they weigh as one."""
    state: str = ""
    """Harness id of the state it ran in: one for all rollouts of a group."""
    request: str = ""
    """Fingerprint of what was asked."""
    policy: str = ""
    """Version of the weights it was sampled under."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A row of the batch: whose it is, and its note. Padding has none."""

    group: str
    rollout: int
    note: RowNote | None


def penalty_of(card: RoomCard) -> CotPenalty:
    """The card's penalty as the arithmetic takes it."""
    return CotPenalty(int(card.penalty.low), int(card.penalty.high), card.penalty.weight)


def note_of(value: Any) -> RowNote:
    """The note out of an engine's field. Raises `UsageError` where it is none."""
    if value is None:
        raise UsageError(
            "a row of the batch carries no rewards",
            hint="it comes from another agent loop than `harness`",
        )
    return msgspec.convert(value, RowNote)


def row_advantages(
    rows: Sequence[Placed],
    group: int,
    penalty: CotPenalty,
    *,
    final: FinalStep = "group",
    std: Std = "population",
    floor: float = FLOOR,
) -> tuple[list[float], dict[str, float]]:
    """One advantage a row, already weighed by its share, and the share of zeros by segment.

    `group` is the number of rollouts that were asked for: one that failed keeps its place with NaN
    rewards and counts in no mean. Padding gets 0. Raises `UsageError` for a mixed group.
    """
    real = [row for row in rows if row.note is not None]
    if not real:
        return [0.0] * len(rows), {}
    places = _places(real, group)
    table = torch.full((len({g for g, _ in places}) * group, len(COLUMNS)), torch.nan).double()
    for row in real:
        line = _line(row.note)
        at = places[(row.group, row.rollout)]
        known = table[at]
        if not bool(torch.isnan(known).all()) and not torch.equal(
            known.nan_to_num(-1.0), line.nan_to_num(-1.0)
        ):
            raise UsageError(f"the rows of rollout {row.rollout} of a group differ in rewards")
        table[at] = line
    _refuse_mixture(real)
    found = segment_advantages(table, group, penalty, final=final, std=std, floor=floor)
    return [_of_row(row, places, found) for row in rows], found.dropped()


def _places(rows: Sequence[Placed], group: int) -> dict[tuple[str, int], int]:
    """Line of the table for each rollout: groups in order of appearance, their rollouts by number.

    A number beyond the group's size (an engine that numbers anew after a refill) takes a free line.
    """
    members: dict[str, set[int]] = {}
    for row in rows:
        members.setdefault(row.group, set()).add(row.rollout)
    places: dict[tuple[str, int], int] = {}
    for number, (name, rollouts) in enumerate(members.items()):
        if len(rollouts) > group:
            raise UsageError(f"a group holds {len(rollouts)} rollouts, {group} were asked for")
        for at, rollout in enumerate(sorted(rollouts)):
            places[(name, rollout)] = number * group + at
    return places


def _line(note: RowNote | None) -> torch.Tensor:
    values = () if note is None else note.rewards
    if len(values) != len(COLUMNS):
        raise UsageError(f"{len(values)} rewards in a row, {len(COLUMNS)} dimensions are known")
    return torch.tensor([torch.nan if v is None else v for v in values], dtype=torch.float64)


def _refuse_mixture(rows: Sequence[Placed]) -> None:
    shared: dict[str, Mapping[str, str]] = {}
    for row in rows:
        if row.note is None:
            continue
        own = {"state": row.note.state, "request": row.note.request, "policy": row.note.policy}
        first = shared.setdefault(row.group, own)
        for what, value in own.items():
            if first[what] != value:
                raise UsageError(
                    f"a mixed group: its rollouts differ in {what}: `{first[what]}`, `{value}`",
                    hint="all rollouts of a group share query and harness state (METHODS §6)",
                )


def _of_row(row: Placed, places: Mapping[tuple[str, int], int], found: SegmentAdvantages) -> float:
    if row.note is None:
        return 0.0
    if row.note.segment not in SEGMENTS:
        raise UsageError(f"`{row.note.segment}` is no segment: {', '.join(SEGMENTS)}")
    at = places[(row.group, row.rollout)]
    value = float(found.values_NS[at, SEGMENTS.index(row.note.segment)])
    return value * row.note.share
