"""Does a reward tell good trajectories from corrupted ones? If not, nothing can be learnt from it.

On the probe set, for every dimension: the good trajectories against those whose corruption lowers
that dimension.

    AUC = P(good > corrupted) + ½ P(good = corrupted)     (Mann and Whitney 1947)
    gap = mean(good) − mean(corrupted)

A dimension separates when AUC ≥ 0.8, gap ≥ 0.2 and no more than a tenth of its probes is unscored
(**choice**: a flat reward has AUC 0.5 and gap 0, one of pure noise AUC near 0.5; a judge that is
wrong about every tenth good and every tenth corrupted trajectory still has 0.9).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile
from harness_cli.judges.base import Judge
from harness_cli.judges.rewards.dimension import DIMENSIONS
from harness_cli.records.canonical import digest
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.probe import Probe
from harness_cli.records.trajectory import Trajectory

FOLDER = "reward_probes"
AUC, GAP, UNSCORED = 0.8, 0.2, 0.1
LEAST = 5
"""Good and corrupted probes of a dimension below which nothing can be said of it."""


class Separation(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension on the probe set."""

    dimension: str
    good: int
    corrupted: int
    unscored: int = 0
    auc: float | None = None
    gap: float | None = None
    fault: str = ""
    """Why it does not separate; empty when it does."""
    worst: tuple[str, ...] = ()
    """Corrupted probes that score as high as a good one."""


def read_probes(path: Path) -> tuple[Probe, ...]:
    """The probes of a file, each with its item. Raises `BadFile` with the line."""
    if not path.is_file():
        raise BadFile(
            f"there is no probe set `{path}`", hint="`python -m harness_cli.simulator.probes`"
        )
    found: list[Probe] = []
    items: dict[str, Item] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            probe = msgspec.json.decode(line, type=Probe)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise BadFile(f"{path}:{number}: no probe: {exc}") from exc
        name = probe.id.partition("/")[0]
        if probe.item is not None:
            items[name] = probe.item
        elif name not in items:
            raise BadFile(f"{path}:{number}: `{probe.id}` stands before its good one")
        unknown = set(probe.lowers) - DIMENSIONS.keys()
        if unknown:
            raise BadFile(f"{path}:{number}: no reward is called `{min(unknown)}`")
        found.append(msgspec.structs.replace(probe, item=items[name]))
    return tuple(found)


def item_of(probe: Probe) -> Item:
    """The item a probe is about. Raises `BadFile` for one that was not read by `read_probes`."""
    if probe.item is None:
        raise BadFile(f"probe `{probe.id}` has no item")
    return probe.item


async def score_probes(
    judge: Judge, probes: Sequence[Probe], world: Catalogue
) -> dict[str, dict[str, float | None]]:
    """Probe → dimension → score."""
    found = {}
    for probe in probes:
        verdict = await judge.judge(item_of(probe), probe.trajectory, world)
        found[probe.id] = {name: verdict.scores.get(name) for name in DIMENSIONS}
    return found


def separations(
    probes: Sequence[Probe], scores: Mapping[str, Mapping[str, float | None]]
) -> tuple[Separation, ...]:
    """Every dimension that the judge scores at all, or that none of its probes is scored in."""
    return tuple(_separation(name, probes, scores) for name in DIMENSIONS)


def _separation(
    name: str, probes: Sequence[Probe], scores: Mapping[str, Mapping[str, float | None]]
) -> Separation:
    good = [p for p in probes if p.corruption is None]
    corrupted = [p for p in probes if name in p.lowers]
    high = [s for p in good if (s := scores[p.id].get(name)) is not None]
    low = {p.id: s for p in corrupted if (s := scores[p.id].get(name)) is not None}
    unscored = len(good) + len(corrupted) - len(high) - len(low)
    made = Separation(dimension=name, good=len(good), corrupted=len(corrupted), unscored=unscored)
    if min(len(good), len(corrupted)) < LEAST:
        return _faulty(made, f"fewer than {LEAST} good or corrupted probes")
    if unscored > UNSCORED * (len(good) + len(corrupted)):
        return _faulty(made, f"{unscored} of {len(good) + len(corrupted)} probes are unscored")
    area, gap = auc(high, list(low.values())), mean(high) - mean(list(low.values()))
    worst = sorted((p for p, s in low.items() if s >= mean(high)), key=lambda p: -low[p])
    made = msgspec.structs.replace(
        made, auc=round(area, 4), gap=round(gap, 4), worst=tuple(worst[:5])
    )
    if area < AUC:
        return _faulty(made, f"AUC {area:.2f}, at least {AUC:g} is needed")
    if gap < GAP:
        return _faulty(made, f"gap {gap:.2f}, at least {GAP:g} is needed")
    return made


def _faulty(made: Separation, why: str) -> Separation:
    return msgspec.structs.replace(made, fault=why)


def auc(high: Sequence[float], low: Sequence[float]) -> float:
    """P(one of `high` is above one of `low`), ties as halves."""
    wins = sum((a > b) + 0.5 * (a == b) for a in high for b in low)
    return wins / (len(high) * len(low))


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def probe_digest(probes: Sequence[Probe]) -> str:
    """Of the whole set: what a measurement was made on."""
    return digest([msgspec.to_builtins(p) for p in probes])


def trajectories(probes: Sequence[Probe]) -> list[tuple[Item, Trajectory]]:
    """Items and trajectories, for measuring a judge's noise on the same set."""
    return [(item_of(p), p.trajectory) for p in probes]
