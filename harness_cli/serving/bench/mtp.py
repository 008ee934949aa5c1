"""MTP off against on across concurrency: speed-up, the boundary, quality, tool calls (TR Table 17).

    found = compare(off, on, lossy)   # BenchRun lists, one or more runs at each concurrency

Speed-up and P95 are contrasts paired by case (`contrast.py`); several runs at a concurrency are
several contrasts, of which mean and range are given.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from harness_cli.records.bench import BenchRun
from harness_cli.serving.bench.contrast import Contrast, contrasts_of
from harness_cli.serving.bench.figures import Figures, figures
from harness_cli.stats.paired import Paired, paired
from harness_cli.stats.percentiles import AcrossRuns, across_runs

NEEDED: Final = 3.0
"""Rule of three: none of n items worse bounds the share of such items by 3/n at 95 %."""
P95_PAIRS: Final = 72
"""0.95^72 < 0.025: so many cases bound a P95 from above at 95 %."""
Gain = Literal["gains", "unclear", "none"]


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One concurrency: the rows of TR Table 17."""

    concurrency: int
    off: tuple[Figures, ...]
    on: tuple[Figures, ...]
    contrasts: tuple[Contrast, ...]
    speedup: AcrossRuns | None
    """Mean decode speed, on / off, of the pairs of runs."""
    p95: AcrossRuns | None
    """Wall P95, on / off."""
    gain: Gain
    """Whether P95 is better: its intervals are all below 1, none of them is below 1 at all, or
    the cases do not tell."""

    @property
    def no_better(self) -> bool:
        """P95 as it was measured is no lower with MTP, whatever the interval says."""
        return self.p95 is not None and self.p95.mean >= 1


class Validity(msgspec.Struct, frozen=True, kw_only=True):
    """Tool calls that were no valid JSON or did not fit the schema, of all tool calls."""

    arm: str
    concurrency: int
    calls: int
    malformed: int
    cases_gained: int = 0
    """Cases with a malformed call under this arm alone."""
    cases_lost: int = 0
    p: float | None = None
    """Of the run that differs most, times the runs that were looked at (Bonferroni): the same
    cases again are no new ones, so counts of several runs make no test of their own."""


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """Scores with MTP on against off on the same items: a verdict, not two bare numbers."""

    arm: str
    metric: str
    n: int
    off: float | None
    on: float | None
    difference: Paired
    margin: float
    lost: int = 0
    """Items that were scored without MTP and not with it: for the verdict each lost its score."""
    verdict: Literal["non-inferior", "inferior", "inconclusive"]


class MtpBench(msgspec.Struct, frozen=True, kw_only=True):
    """What `harness bench mtp` found."""

    schema: int = 1
    arm: str
    off: str
    on: str
    levels: tuple[Level, ...]
    boundary: int | None
    """The lowest concurrency from which on P95 was measured no lower; None where it was lower up
    to the highest one."""
    advice: tuple[str, ...]
    validity: tuple[Validity, ...] = ()
    quality: tuple[Quality, ...] = ()
    against_exact: tuple[Contrast, ...] = ()
    """Of the lossy arm: the same cases under exact thresholds, run by run."""


def compare(arm: str, off: Sequence[BenchRun], on: Sequence[BenchRun]) -> MtpBench:
    """`on` against `off` at each concurrency that both were measured at.

    Raises `UsageError` where two runs did not measure the same cases, or one arm has more runs.
    """
    levels = tuple(
        _level(c, _at(off, c), _at(on, c))
        for c in sorted({r.contract.concurrency for r in off})
        if _at(on, c)
    )
    boundary = _boundary(levels)
    return MtpBench(
        arm=arm,
        off=off[0].contract.policy if off else "",
        on=on[0].contract.policy if on else "",
        levels=levels,
        boundary=boundary,
        advice=tuple(_advice(levels, boundary)),
        validity=tuple(v for level in levels for v in _validity(arm, level)),
    )


def against_exact(exact: Sequence[BenchRun], lossy: Sequence[BenchRun]) -> tuple[Contrast, ...]:
    """What lossy thresholds give over exact ones, at each concurrency: both draft, so nothing but
    the thresholds differs."""
    levels = sorted({run.contract.concurrency for run in exact})
    return tuple(c for n in levels for c in contrasts_of(_at(exact, n), _at(lossy, n)))


def quality(
    arm: str,
    metric: str,
    off: Sequence[float],
    on: Sequence[float],
    margin: float,
    *,
    lost: int = 0,
) -> Quality:
    """Whether `on` is no worse than `off` by more than `margin`, on scores of the same items.

    Non-inferior: the lower end of the paired interval is above −margin, and where no item is worse
    there are enough of them to say so. Inferior: its upper end is below −margin. `lost` items that
    broke with MTP alone have no pair; they pull the lower end down by a whole score each.
    """
    difference = paired([b - a for a, b in zip(off, on, strict=True)])
    verdict: Literal["non-inferior", "inferior", "inconclusive"] = "inconclusive"
    low, high, n = difference.low, difference.high, difference.n
    if low is not None and high is not None:
        enough = difference.worse > 0 or n >= NEEDED / margin
        if (low * n - lost) / (n + lost) > -margin and enough:
            verdict = "non-inferior"
        elif high < -margin:
            verdict = "inferior"
    return Quality(
        arm=arm,
        metric=metric,
        n=n,
        off=sum(off) / n if n else None,
        on=sum(on) / n if n else None,
        difference=difference,
        margin=margin,
        lost=lost,
        verdict=verdict,
    )


def _at(runs: Sequence[BenchRun], concurrency: int) -> list[BenchRun]:
    return [run for run in runs if run.contract.concurrency == concurrency]


def _level(concurrency: int, off: Sequence[BenchRun], on: Sequence[BenchRun]) -> Level:
    found = tuple(contrasts_of(off, on))
    ratios = [c.wall_p95 for c in found if c.wall_p95.value is not None]
    gain: Gain = "unclear"
    # Resampling fewer than that many cases says nothing of their P95, however narrow it looks.
    told = all(c.pairs >= P95_PAIRS for c in found)
    mean = across_runs([r.value for r in ratios if r.value is not None])
    if told and ratios and all(r.low is not None and r.low >= 1 for r in ratios):
        gain = "none"
    elif told and ratios and all(r.high is not None and r.high < 1 for r in ratios):
        gain = "gains"
    return Level(
        concurrency=concurrency,
        off=tuple(figures(run) for run in off),
        on=tuple(figures(run) for run in on),
        contrasts=found,
        speedup=across_runs([c.decode.value for c in found if c.decode.value is not None]),
        p95=mean,
        gain=gain,
    )


def _boundary(levels: Sequence[Level]) -> int | None:
    """From the top: the levels that were no better; one that was better, or unknown, ends them."""
    boundary = None
    for level in reversed(levels):
        if not level.no_better:
            break
        boundary = level.concurrency
    return boundary


def _advice(levels: Sequence[Level], boundary: int | None) -> list[str]:
    """What to do at the boundary (TR App. F.1): MTP is a latency optimisation, no capacity."""
    if not levels:
        return ["no concurrency was measured with both"]
    said = []
    unknown = [level.concurrency for level in levels if level.p95 is None]
    unclear = [x.concurrency for x in levels if x.gain == "unclear" and x.p95 is not None]
    if len(unknown) == len(levels):
        pass
    elif boundary is None:
        worse = [f"C={level.concurrency}" for level in levels if level.no_better]
        beside = f"; no better at {', '.join(worse)} alone: measure those again" if worse else ""
        said.append(f"keep MTP up to C={levels[-1].concurrency}, the highest measured{beside}")
    elif boundary == levels[0].concurrency:
        said.append(_nowhere(levels))
    else:
        said += [
            f"from C={boundary} on P95 no longer gains: admit fewer requests to a replica and add "
            "replicas (serve.yaml `admission.per_replica`, `replicas`)",
            "or let the server draft less in larger batches: `mtp.adaptive` "
            "(--speculative-adaptive, SGLang 0.5.11 and later)",
        ]
    if unknown:
        listed = ", ".join(f"C={c}" for c in unknown)
        said.append(f"at {listed} there is no P95 of both: nothing is known of the gain there")
    if unclear:
        listed = ", ".join(f"C={c}" for c in unclear)
        said.append(
            f"at {listed} the interval of P95 holds 1 or comes of fewer than {P95_PAIRS} cases: "
            "more cases or runs would tell"
        )
    return said


def _nowhere(levels: Sequence[Level]) -> str:
    """At no concurrency was P95 lower: whether that is enough to serve without MTP."""
    if all(level.gain == "none" for level in levels):
        return "P95 gains nowhere: serve without MTP, or train the head (harness train mtp)"
    return (
        "P95 was lower nowhere, but its intervals do not exclude a gain: measure more cases or "
        "runs before MTP is given up"
    )


def _validity(arm: str, level: Level) -> list[Validity]:
    found = []
    for name, numbers in (("mtp off", level.off), (arm, level.on)):
        pairs = [c.malformed for c in level.contrasts] if name == arm else []
        found.append(
            Validity(
                arm=name,
                concurrency=level.concurrency,
                calls=sum(f.tool_calls for f in numbers),
                malformed=sum(f.malformed_calls for f in numbers),
                cases_gained=sum(m.gained for m in pairs),
                cases_lost=sum(m.lost for m in pairs),
                p=min(1.0, len(pairs) * min(m.p for m in pairs)) if pairs else None,
            )
        )
    return found
