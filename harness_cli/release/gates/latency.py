"""The latency gate: attainment of the end-to-end bound on fresh requests."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from harness_cli.records.counting import counted
from harness_cli.records.gates import Gate, GateResult, declared
from harness_cli.release.gates.facts import Facts, broken, in_time, missing_run, result
from harness_cli.stats.intervals import clopper_pearson
from harness_cli.stats.percentiles import percentile, percentile_interval

WARM_UP = "warm-up"


def check(gate: Gate, facts: Facts) -> GateResult:
    """Attainment = share of *all* measured requests within the bound (METHODS §2, TR §4.3).

    A failed, fallen-back or suppressed request is a miss. Warm-ups are left out: the items with
    the tag `warm-up`, or the first `warm_up` lines where none has it.
    """
    run = facts.runs.get(gate.name)
    if run is None:
        return missing_run(gate)
    if not run.fresh:
        return result(
            gate,
            "INCONCLUSIVE",
            "the run replayed answers; latency takes fresh samples only",
            needs=f"harness eval {gate.evalset}{in_time(gate)}",
        )
    if run.concurrency not in ((), (declared(gate),)):
        many = " and ".join(map(str, run.concurrency))
        return result(
            gate,
            "INCONCLUSIVE",
            f"run `{run.run}` had {many} requests at a time, the gate declares {declared(gate)}",
            needs=f"harness eval {gate.evalset}{in_time(gate)}",
        )
    if not run.complete and (stopped := broken(gate, run)):
        return stopped
    measured = without_warm_ups(list(run.lines), gate.warm_up)
    if len(measured) < gate.minimum_n:
        return result(
            gate,
            "INCONCLUSIVE",
            f"{counted(len(measured), 'measured request')}, fewer than {gate.minimum_n}",
            needs=f"n = {gate.minimum_n}",
            n=len(measured),
        )
    hits = sum(
        line.state != "errored"
        and not line.fell_back
        and line.wall_s is not None
        and line.wall_s <= gate.bound_s
        for line in measured
    )
    walls = sorted(line.wall_s for line in measured if line.wall_s is not None)
    attained = hits / len(measured)
    share = clopper_pearson(hits, len(measured))
    low, high = percentile_interval(walls, 95)
    numbers: dict[str, Any] = {
        "n": len(measured),
        "within": hits,
        "attainment": round(attained, 4),
        "attainment_low": round(share.low, 4),
        "attainment_high": round(share.high, 4),
        "p50_s": percentile(walls, 50),
        "p95_s": percentile(walls, 95),
        "p95_low_s": low,
        "p95_high_s": high,
        "max_s": walls[-1] if walls else None,
        "bound_s": gate.bound_s,
    }
    if gate.concurrency is not msgspec.UNSET:
        numbers["concurrency"] = gate.concurrency
    told = f"{hits} of {len(measured)} within {gate.bound_s:g} s"
    if attained < gate.attainment:
        summary = f"{told} (fewer than {gate.attainment:.0%} needed)"
        return result(gate, "FAIL", summary, **numbers)
    spread = _spread(numbers)
    if gate.p95_s is not msgspec.UNSET and (decided := _p95(gate, gate.p95_s, numbers, spread)):
        return decided
    return result(
        gate, "PASS", f"{told} (at least {gate.attainment:.0%} needed), {spread}", **numbers
    )


class Tagged(Protocol):
    """An item, or a line of evidence."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        ...


T = TypeVar("T", bound=Tagged)


def without_warm_ups(found: Sequence[T], warm_up: int) -> Sequence[T]:
    """Without those that are tagged as warm-ups, or without the first where none is."""
    cold = [one for one in found if WARM_UP not in one.tags]
    return cold if len(cold) < len(found) else found[warm_up:]


def _spread(numbers: dict[str, Any]) -> str:
    """The 95th percentile with its interval, in words."""
    ends = ("p95_low_s", "p95_high_s")
    low, high = ("?" if numbers[end] is None else f"{numbers[end]:.2f}" for end in ends)
    return (
        "P95 unknown"
        if numbers["p95_s"] is None
        else f"P95 {numbers['p95_s']:.2f} [{low}, {high}] s"
    )


def _p95(gate: Gate, bound: float, numbers: dict[str, Any], spread: str) -> GateResult | None:
    """FAIL or INCONCLUSIVE where the percentile's interval is not below the bound; else None."""
    low, high = numbers["p95_low_s"], numbers["p95_high_s"]
    if high is not None and high <= bound:
        return None
    if low is not None and low > bound:
        return result(gate, "FAIL", f"{spread} is above {bound:g} s", **numbers)
    told = f"{spread} does not lie below {bound:g} s"
    return result(gate, "INCONCLUSIVE", told, needs="more samples", **numbers)
