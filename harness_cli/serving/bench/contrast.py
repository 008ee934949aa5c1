"""Two arms on the same cases: differences and ratios with intervals, paired by case.

    contrast(off, on)   # two BenchRun of one concurrency

Cases are resampled and keep their pairs, all their calls with them: a case with four calls weighs
as four calls in the mean decode speed, as it does in TR Table 17. Of ratios and percentiles the
seeded bootstrap's percentile interval is given (10,000 resamples, METHODS §3).
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness_cli.errors import UsageError
from harness_cli.records.bench import BenchRequest, BenchRun
from harness_cli.stats.binary import binomial_p
from harness_cli.stats.paired import McNemar, Paired, paired

RESAMPLES: Final = 10_000
Matrix = NDArray[np.float64]
Draws = NDArray[np.int64]


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """on / off with its 95 % interval; None where one of them is unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None
    off: float | None = None
    on: float | None = None


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """What the second arm changed against the first, over the cases both finished."""

    off: str
    on: str
    """Run ids."""
    concurrency: int
    pairs: int
    unpaired: tuple[str, ...] = ()
    """Cases that only one of them has a successful request for."""
    wall: Paired
    """Seconds, on − off, of each case."""
    wall_p95: Ratio
    ttft: Paired
    ttft_p95: Ratio
    decode: Ratio
    """Mean decode speed: the speed-up of TR Table 17."""
    decode_median: Ratio
    output: Paired
    """Completion tokens a request: where it moves, a decode speed is no like for like."""
    attainment: McNemar
    """Cases that came within the bound with one arm alone."""
    malformed: McNemar
    """Cases with a malformed tool call under one arm alone: 0 in `gained` is what should be."""


def contrasts_of(off: Sequence[BenchRun], on: Sequence[BenchRun]) -> list[Contrast]:
    """Run against run at one concurrency, in the order in which they were made.

    Raises `UsageError` where one side has more runs: which of them to leave out would be a choice.
    """
    if len(off) != len(on):
        level = (*on, *off)[0].contract.concurrency
        raise UsageError(
            f"C={level}: {len(on)} runs against {len(off)} cannot be paired",
            hint="name as many runs of each, one by one",
        )
    return [contrast(a, b) for a, b in zip(off, on, strict=True)]


def contrast(off: BenchRun, on: BenchRun, *, seed: int = 0) -> Contrast:
    """`on` against `off`. Raises `UsageError` where they did not measure the same cases."""
    _refuse(off, on)
    before = {request.item: request for request in off.measured}
    after = {request.item: request for request in on.measured}
    both = [
        (before[item], after[item])
        for item in before
        if item in after and before[item].success and after[item].success
    ]
    known = {request.item for pair in both for request in pair}
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, max(1, len(both)), (RESAMPLES, len(both)))
    a, b = [pair[0] for pair in both], [pair[1] for pair in both]
    shared = [item for item in before if item in after]
    return Contrast(
        off=off.contract.run,
        on=on.contract.run,
        concurrency=on.contract.concurrency,
        pairs=len(both),
        unpaired=tuple(sorted((before.keys() | after.keys()) - known)),
        wall=paired([y.wall_s - x.wall_s for x, y in both], seed=seed),
        wall_p95=_ratio(a, b, draws, _p95(lambda r: r.wall_s)),
        ttft=paired(_differences(both, _first), seed=seed),
        ttft_p95=_ratio(a, b, draws, _p95(_first)),
        decode=_ratio(a, b, draws, _mean_speed),
        decode_median=_ratio(a, b, draws, _median_speed),
        output=paired(_differences(both, _tokens), seed=seed),
        attainment=_discordant(
            [_within(before[i], off) for i in shared], [_within(after[i], on) for i in shared]
        ),
        malformed=_discordant(
            [before[i].malformed_calls > 0 for i in shared],
            [after[i].malformed_calls > 0 for i in shared],
        ),
    )


def _refuse(off: BenchRun, on: BenchRun) -> None:
    a, b = off.contract, on.contract
    for name in ("evalset_digest", "cases_digest", "warm_up", "concurrency", "harness_id"):
        if getattr(a, name) != getattr(b, name):
            raise UsageError(
                f"the runs `{a.run}` and `{b.run}` differ in {name.replace('_', ' ')}",
                hint="cases are paired only where everything but the arm is the same",
            )


Statistic = Callable[[Sequence[BenchRequest], Draws], tuple[float | None, Matrix]]
"""Requests and draws of their places → the value over all of them, and one for each draw."""


def _ratio(
    a: Sequence[BenchRequest], b: Sequence[BenchRequest], draws: Draws, of: Statistic
) -> Ratio:
    if not a:
        return Ratio(value=None)
    (off, offs), (on, ons) = of(a, draws), of(b, draws)
    if not off or on is None:
        return Ratio(value=None, off=off, on=on)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = ons / offs
    drawn = drawn[np.isfinite(drawn)]
    if not drawn.size:
        return Ratio(value=on / off, off=off, on=on)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Ratio(value=on / off, low=float(low), high=float(high), off=off, on=on)


def _p95(value: Callable[[BenchRequest], float | None]) -> Statistic:
    def of(requests: Sequence[BenchRequest], draws: Draws) -> tuple[float | None, Matrix]:
        values = np.array([_nan(value(request)) for request in requests])
        if np.isnan(values).any():
            return None, np.empty(0)
        rank = max(0, int(np.ceil(0.95 * len(values) - 1e-9)) - 1)  # nearest rank
        drawn = np.partition(values[draws], rank, axis=1)[:, rank]
        return float(np.sort(values)[rank]), drawn

    return of


def _mean_speed(requests: Sequence[BenchRequest], draws: Draws) -> tuple[float | None, Matrix]:
    sums = np.array([sum(_speeds(request)) for request in requests])
    counts = np.array([float(len(_speeds(request))) for request in requests])
    if not counts.sum():
        return None, np.empty(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    return float(sums.sum() / counts.sum()), drawn


def _median_speed(requests: Sequence[BenchRequest], draws: Draws) -> tuple[float | None, Matrix]:
    """The median over calls of the resampled cases: by weight, no case's calls are copied."""
    pairs = sorted((s, n) for n, request in enumerate(requests) for s in _speeds(request))
    if not pairs:
        return None, np.empty(0)
    speeds = np.array([s for s, _ in pairs])
    owner = np.array([n for _, n in pairs])
    drawn = np.empty(len(draws))
    for row, picked in enumerate(draws):
        weights = np.bincount(picked, minlength=len(requests))[owner].cumsum()
        drawn[row] = speeds[np.searchsorted(weights, weights[-1] / 2)] if weights[-1] else np.nan
    return float(np.median(speeds)), drawn


def _speeds(request: BenchRequest) -> list[float]:
    return [speed for call in request.calls if (speed := call.decode_tps)]


def _first(request: BenchRequest) -> float | None:
    return request.calls[0].ttft_s if request.calls else None


def _tokens(request: BenchRequest) -> float | None:
    counts = [call.output_tokens for call in request.calls if call.error is None]
    return None if None in counts else float(sum(c or 0 for c in counts))


def _differences(
    both: Sequence[tuple[BenchRequest, BenchRequest]],
    value: Callable[[BenchRequest], float | None],
) -> list[float]:
    pairs = [(value(x), value(y)) for x, y in both]
    return [y - x for x, y in pairs if x is not None and y is not None]


def _within(request: BenchRequest, run: BenchRun) -> bool:
    return request.success and not request.fell_back and request.wall_s <= run.contract.bound_s


def _discordant(before: Sequence[bool], after: Sequence[bool]) -> McNemar:
    gained = sum(y and not x for x, y in zip(before, after, strict=True))
    lost = sum(x and not y for x, y in zip(before, after, strict=True))
    p = binomial_p(gained, gained + lost) if gained + lost else 1.0
    return McNemar(gained=gained, lost=lost, p=p)


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value
