"""The business regression gate and the general-capability gate: non-inferiority, paired by item."""

from math import ceil
from typing import Any

from harness_cli.records.counting import counted
from harness_cli.records.gates import Gate, GateResult
from harness_cli.release.evidence import RunEvidence
from harness_cli.release.gates.facts import Facts, broken, missing_run, result, scores_by_item
from harness_cli.stats.distributions import normal_quantile
from harness_cli.stats.paired import Paired, paired


def check(gate: Gate, facts: Facts) -> GateResult:
    """PASS when the 95 % interval of candidate − incumbent lies above −margin (METHODS §3).

    FAIL when it lies below, when a must-pass item that passed fails now, or when the mean is
    under the floor. Otherwise INCONCLUSIVE, with the n that would decide.
    """
    run = facts.runs.get(gate.name)
    if run is None:
        return missing_run(gate)
    if stopped := broken(gate, run):
        return stopped
    new = scores_by_item(run.lines, gate.metric)
    if len(new) < gate.minimum_n:
        return result(
            gate,
            "INCONCLUSIVE",
            f"{counted(len(new), 'scored item')}, fewer than {gate.minimum_n}",
            needs=f"n = {gate.minimum_n}",
            n=len(new),
        )
    mean = sum(new.values()) / len(new)
    if gate.floor is not None and mean < gate.floor:
        return result(
            gate,
            "FAIL",
            f"{gate.metric} {mean:.4f} is under the floor {gate.floor:g}",
            mean=round(mean, 6),
            n=len(new),
        )
    if facts.incumbent is None:
        return result(
            gate,
            "PASS",
            f"{gate.metric} {mean:.4f} on {counted(len(new), 'item')}; "
            "no incumbent to regress from",
            mean=round(mean, 6),
            n=len(new),
        )
    old = facts.incumbent_runs.get(gate.name)
    if old is None:
        return result(
            gate,
            "INCONCLUSIVE",
            f"no run of the incumbent `{facts.incumbent}` on `{gate.evalset}`",
            needs="harness promote without --no-run evaluates the incumbent",
        )
    return against(gate, run, new, old)


def against(gate: Gate, run: RunEvidence, new: dict[str, float], old: RunEvidence) -> GateResult:
    """The paired comparison with the incumbent's run."""
    for what, mine, theirs in (
        ("evalset", run.evalset_digest, old.evalset_digest),
        ("judge", run.judge_id, old.judge_id),
    ):
        if mine != theirs:
            return result(
                gate,
                "INCONCLUSIVE",
                f"the incumbent was measured with another {what}",
                needs="the incumbent evaluated again under the same one",
            )
    before = scores_by_item(old.lines, gate.metric)
    items = sorted(new.keys() & before.keys())
    if len(items) < gate.minimum_n:
        return result(
            gate,
            "INCONCLUSIVE",
            f"{counted(len(items), 'item')} in common with the incumbent, "
            f"fewer than {gate.minimum_n}",
            needs=f"n = {gate.minimum_n} on the same items",
            n=len(items),
        )
    difference = paired([new[i] - before[i] for i in items])
    mean, low, high = difference.mean, difference.low, difference.high
    if mean is None or low is None or high is None:
        return missing_run(gate)
    broke = sorted(i for i in items if new[i] < before[i])
    protected = must_pass_broken(gate, run, broke)
    numbers: dict[str, Any] = {
        "n": len(items),
        "delta": round(mean, 6),
        "low": round(low, 6),
        "high": round(high, 6),
        "p_le_0": round(difference.p_le_0 or 0.0, 6),
        "margin": gate.margin,
        "fixed": sum(new[i] > before[i] for i in items),
        "broken": len(broke),
    }
    shown = f"Δ {mean:+.4f} [{low:+.4f}, {high:+.4f}]"
    if protected:
        return result(gate, "FAIL", f"must-pass items broke: {', '.join(protected[:5])}", **numbers)
    if gate.max_regressed is not None and len(broke) > gate.max_regressed:
        return result(
            gate,
            "FAIL",
            f"{counted(len(broke), 'item')} broke, more than {gate.max_regressed}",
            **numbers,
        )
    if low >= -gate.margin:
        return result(
            gate,
            "PASS",
            f"{shown} on {counted(len(items), 'item')}, above −{gate.margin:g}",
            **numbers,
        )
    if high < -gate.margin:
        return result(
            gate,
            "FAIL",
            f"{shown} on {counted(len(items), 'item')}, below −{gate.margin:g}",
            **numbers,
        )
    wanted = n_that_decides(difference, gate.margin)
    return result(
        gate,
        "INCONCLUSIVE",
        f"{shown} on {counted(len(items), 'item')} straddles −{gate.margin:g}",
        needs=f"about n = {wanted}" if wanted else "a better candidate: no n decides this one",
        **numbers,
    )


def must_pass_broken(gate: Gate, run: RunEvidence, broke: list[str]) -> list[str]:
    """Of the items that got worse, those under a must-pass tag or category."""
    protected = {
        line.item_id
        for line in run.lines
        if line.category in gate.must_pass or set(line.tags) & set(gate.must_pass)
    }
    return [item for item in broke if item in protected]


def n_that_decides(difference: Paired, margin: float) -> int | None:
    """Items at which the interval would clear −margin if mean and spread stay as they are.

    n = ⌈(z₀.₉₇₅ · sd / (Δ + margin))²⌉ by the normal approximation; None when Δ ≤ −margin, where
    more items only make a FAIL.
    """
    if difference.mean is None or difference.sd is None or difference.mean <= -margin:
        return None
    return ceil((normal_quantile(0.975) * difference.sd / (difference.mean + margin)) ** 2)
