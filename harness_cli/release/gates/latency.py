"""The latency gate: attainment of the end-to-end bound on fresh requests."""

from typing import Any

from harness_cli.records.counting import counted
from harness_cli.records.gates import Gate, GateResult
from harness_cli.release.gates.facts import Facts, broken, missing_run, result

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
            needs=f"harness eval {gate.evalset} --profile replay",
        )
    if not run.complete and (stopped := broken(gate, run)):
        return stopped
    tagged = [line for line in run.lines if WARM_UP not in line.tags]
    measured = tagged if len(tagged) < len(run.lines) else list(run.lines)[gate.warm_up :]
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
    numbers: dict[str, Any] = {
        "n": len(measured),
        "within": hits,
        "attainment": round(attained, 4),
        "p50_s": percentile(walls, 0.50),
        "p95_s": percentile(walls, 0.95),
        "max_s": walls[-1] if walls else None,
        "bound_s": gate.bound_s,
    }
    passed = attained >= gate.attainment
    return result(
        gate,
        "PASS" if passed else "FAIL",
        f"{hits} of {len(measured)} within {gate.bound_s:g} s "
        f"({'at least' if passed else 'fewer than'} {gate.attainment:.0%} needed)",
        **numbers,
    )


def percentile(ordered: list[float], share: float) -> float | None:
    """The nearest-rank percentile of sorted values."""
    if not ordered:
        return None
    rank = max(1, -(-int(share * 1000) * len(ordered) // 1000))
    return ordered[rank - 1]
