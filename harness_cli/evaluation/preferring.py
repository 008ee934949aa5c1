"""Two runs of the same items, reply against reply: preferences, flips, an exact test."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from harness_cli.errors import Stale, UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.judges.panel.pairwise import PairJudge, PairVerdict
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.run import RunConfig
from harness_cli.records.trajectory import Trajectory
from harness_cli.runtime.toolbox import together
from harness_cli.stats.binary import Preference, preference
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder

Pair = tuple[Item, Trajectory, Trajectory]


class PairReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a panel prefers of two runs. `wins` and `losses` are those of A."""

    judge: str
    a: str
    b: str
    pairs: int
    unscored: int
    preference: Preference
    flips: int
    """Member votes whose two orders did not say the same."""
    votes: int
    """Member votes with an answer in both orders."""
    flip_rate: float | None
    """flips / votes; None where nobody voted."""
    first_rate: float | None
    """Share of single answers, ties aside, for the reply shown first; 0.5 is no taste for place."""
    calls: int
    cached: int
    categories: dict[str, Preference] = {}
    verdicts: tuple[PairVerdict, ...] = ()


def pairs_of(
    project: Project, a: RunFolder, b: RunFolder, *, limit: int | None = None
) -> tuple[list[Pair], Catalogue]:
    """The items that both runs finished, with both trajectories, and the world they ran in.

    Raises `Stale` when the runs are of other items than each other's or the evalset's today.
    """
    one, other = a.config(), b.config()
    _same_items(one, other)
    evalset = load_evalset(project, one.evalset.name, split=one.evalset.split)
    if evalset.ref.digest != one.evalset.digest:
        raise Stale(f"the items of `{evalset.header.name}` changed since run `{a.id}`")
    first = {(t.item_id, t.repeat): t for t in a.trajectories()}
    second = {(t.item_id, t.repeat): t for t in b.trajectories()}
    found: list[Pair] = []
    for item in evalset.items:
        repeat = 0
        while (item.id, repeat) in first and (item.id, repeat) in second:
            found.append((item, first[item.id, repeat], second[item.id, repeat]))
            repeat += 1
    if not found:
        raise UsageError(f"runs `{a.id}` and `{b.id}` have no finished item in common")
    return found[:limit], evalset.world


def _same_items(one: RunConfig, other: RunConfig) -> None:
    if (one.evalset.name, one.evalset.digest) != (other.evalset.name, other.evalset.digest):
        raise Stale(
            f"runs `{one.id}` and `{other.id}` are of other items",
            hint="compare two runs of one evalset and split",
        )


async def compare_pairs(
    judge: PairJudge,
    pairs: Sequence[Pair],
    world: Catalogue,
    *,
    concurrency: int,
    observe: Callable[[PairVerdict], None] | None = None,
) -> list[PairVerdict]:
    """The panel's verdict on every pair, so many pairs at a time; `observe` sees each at once."""
    queue, found = iter(pairs), list[PairVerdict]()

    async def work() -> None:
        for item, a, b in queue:
            verdict = await judge.compare(item, a, b, world)
            found.append(verdict)
            if observe is not None:
                observe(verdict)

    await together([work() for _ in range(min(concurrency, len(pairs)))])
    return found


def pair_report(judge: str, a: str, b: str, verdicts: Iterable[PairVerdict]) -> PairReport:
    """Shares, flips and the exact test over all pairs and per category."""
    kept = tuple(sorted(verdicts, key=lambda v: (v.item_id, v.repeat)))
    votes = [v for verdict in kept for v in verdict.votes if v.preferred is not None]
    flips = sum(v.flipped for v in votes)
    answers = [o for verdict in kept for v in verdict.votes for o in v.orders]
    shares = [s for o in answers if (s := o.scores.get("first")) is not None]
    clear = [s for s in shares if s != 0.5]
    names = sorted({v.category for v in kept if v.category})
    return PairReport(
        judge=judge,
        a=a,
        b=b,
        pairs=len(kept),
        unscored=sum(v.preferred is None for v in kept),
        preference=_preference(kept),
        flips=flips,
        votes=len(votes),
        flip_rate=flips / len(votes) if votes else None,
        first_rate=sum(clear) / len(clear) if clear else None,
        calls=sum(o.calls for o in answers if not o.cached),
        cached=sum(o.cached for o in answers),
        categories={name: _preference([v for v in kept if v.category == name]) for name in names},
        verdicts=kept,
    )


def _preference(verdicts: Sequence[PairVerdict]) -> Preference:
    sides = [v.preferred for v in verdicts]
    return preference(sides.count("a"), sides.count("b"), sides.count("tie"))
