"""The business regression gate and the general-capability gate: non-inferiority, paired by item."""

from math import ceil
from typing import Any

import msgspec

from harness_cli.records.counting import counted
from harness_cli.records.gates import Gate, GateResult
from harness_cli.release.evidence import RunEvidence
from harness_cli.release.gates.facts import Facts, broken, missing_run, result, scores_by_item
from harness_cli.stats.distributions import normal_quantile
from harness_cli.stats.multiple import MIN_ITEMS, holm
from harness_cli.stats.paired import Paired, paired, sign_flip_p

ALPHA = 0.05


def check(gate: Gate, facts: Facts) -> GateResult:
    """PASS when the 95 % interval of candidate − incumbent lies above −margin (METHODS §3).

    FAIL when it lies below, when a must-pass item that passed fails now, when a category got worse
    after Holm, or when the mean is under the floor. Otherwise INCONCLUSIVE, with the n that would
    decide. A capability gate that names a base policy holds against that one as well.
    """
    run = facts.runs.get(gate.name)
    if run is None:
        return missing_run(gate)
    if stopped := broken(gate, run):
        return stopped
    new = scores_by_item(run, gate.metric)
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
    answer = joined(before(gate, facts, run, new, mean), base(gate, facts, run, new))
    failing = must_pass_failing(gate, run)
    if failing and answer.outcome != "FAIL":
        told = f"must-pass items fail: {', '.join(failing[:5])}"
        return result(gate, "FAIL", told, **answer.numbers, must_pass_failing=len(failing))
    return answer


def before(
    gate: Gate, facts: Facts, run: RunEvidence, new: dict[str, float], mean: float
) -> GateResult:
    """Against the incumbent, if there is one."""
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


def base(gate: Gate, facts: Facts, run: RunEvidence, new: dict[str, float]) -> GateResult | None:
    """Against the base policy of a capability gate; None where it names none."""
    if gate.kind != "capability" or gate.base_policy is msgspec.UNSET:
        return None
    old = facts.base_runs.get(gate.name)
    if old is None:
        return result(
            gate,
            "INCONCLUSIVE",
            f"no run of the base policy `{gate.base_policy}` on `{gate.evalset}`",
            needs="harness promote without --no-run evaluates it",
        )
    return against(gate, run, new, old, "base policy")


WORST = ("FAIL", "INCONCLUSIVE", "PASS")


def joined(incumbent: GateResult, base: GateResult | None) -> GateResult:
    """Two comparisons as one answer: the worse outcome, both in words, both with their numbers."""
    if base is None:
        return incumbent
    worse = min((incumbent, base), key=lambda r: WORST.index(r.outcome))
    return msgspec.structs.replace(
        incumbent,
        outcome=worse.outcome,
        summary=f"{incumbent.summary}; base policy: {base.summary}",
        needs=worse.needs,
        numbers={**incumbent.numbers, **{f"base_{k}": v for k, v in base.numbers.items()}},
    )


def against(
    gate: Gate, run: RunEvidence, new: dict[str, float], old: RunEvidence, whose: str = "incumbent"
) -> GateResult:
    """The paired comparison with the incumbent's run, or the base policy's."""
    for what, mine, theirs in (
        ("evalset", run.evalset_digest, old.evalset_digest),
        ("judge", run.judge_id, old.judge_id),
    ):
        if mine != theirs:
            return result(
                gate,
                "INCONCLUSIVE",
                f"the {whose} was measured with another {what}",
                needs=f"the {whose} evaluated again under the same one",
            )
    earlier = scores_by_item(old, gate.metric)
    items = sorted(new.keys() & earlier.keys())
    if len(items) < gate.minimum_n:
        return result(
            gate,
            "INCONCLUSIVE",
            f"{counted(len(items), 'item')} in common with the {whose}, "
            f"fewer than {gate.minimum_n}",
            needs=f"n = {gate.minimum_n} on the same items",
            n=len(items),
        )
    difference = paired([new[i] - earlier[i] for i in items])
    mean, low, high = difference.mean, difference.low, difference.high
    if mean is None or low is None or high is None:
        return missing_run(gate)
    broke = sorted(i for i in items if new[i] < earlier[i])
    protected = must_pass_broken(gate, run, broke)
    numbers: dict[str, Any] = {
        "n": len(items),
        "delta": round(mean, 6),
        "low": round(low, 6),
        "high": round(high, 6),
        "p_le_0": round(difference.p_le_0 or 0.0, 6),
        "margin": gate.margin,
        "fixed": sum(new[i] > earlier[i] for i in items),
        "broken": len(broke),
    }
    worse = worse_categories(gate, run, {i: new[i] - earlier[i] for i in items})
    if worse:
        numbers["worse_categories"] = worse
    shown = f"Δ {mean:+.4f} [{low:+.4f}, {high:+.4f}]"
    refused = _refused(gate, protected, worse, broke)
    if refused:
        return result(gate, "FAIL", refused, **numbers)
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


def _refused(
    gate: Gate, protected: list[str], worse: dict[str, dict[str, float]], broke: list[str]
) -> str:
    """What no mean makes good: a must-pass item, a category, too many items; else empty."""
    if protected:
        return f"must-pass items broke: {', '.join(protected[:5])}"
    if worse:
        named = ", ".join(f"{c} {d['delta']:+.4f} (p {d['p_holm']:.4f})" for c, d in worse.items())
        return f"worse after Holm: {named}"
    if gate.max_regressed is not None and len(broke) > gate.max_regressed:
        return f"{counted(len(broke), 'item')} broke, more than {gate.max_regressed}"
    return ""


def worse_categories(
    gate: Gate, run: RunEvidence, differences: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Categories that got worse, Holm-adjusted over those with enough items (METHODS §3).

    Of a business gate only: a capability is one thing.
    """
    if gate.kind != "regression":
        return {}
    grouped: dict[str, list[float]] = {}
    category = {line.item_id: line.category for line in run.lines}
    for item, difference in differences.items():
        grouped.setdefault(category[item], []).append(difference)
    names = sorted(name for name, values in grouped.items() if len(values) >= MIN_ITEMS)
    adjusted = holm([sign_flip_p(grouped[name]) for name in names])
    found = {}
    for name, p in zip(names, adjusted, strict=True):
        mean = sum(grouped[name]) / len(grouped[name])
        if p < ALPHA and mean < 0:
            found[name] = {"delta": round(mean, 6), "p_holm": round(p, 6)}
    return found


def must_pass_items(gate: Gate, run: RunEvidence) -> set[str]:
    """Items under a must-pass tag, category or id."""
    return {
        line.item_id
        for line in run.lines
        if {line.category, line.item_id, *line.tags} & set(gate.must_pass)
    }


def must_pass_broken(gate: Gate, run: RunEvidence, broke: list[str]) -> list[str]:
    """Of the items that got worse, those that must pass."""
    protected = must_pass_items(gate, run)
    return [item for item in broke if item in protected]


def must_pass_failing(gate: Gate, run: RunEvidence) -> list[str]:
    """Must-pass items whose verdict (over repeats: k of n) is no pass; unscored is none either."""
    protected = must_pass_items(gate, run)
    if not protected:
        return []
    passed = scores_by_item(run, "passed")
    return sorted(item for item in protected if passed.get(item, 0.0) < 1.0)


def n_that_decides(difference: Paired, margin: float) -> int | None:
    """Items at which the interval would clear −margin if mean and spread stay as they are.

    n = ⌈(z₀.₉₇₅ · sd / (Δ + margin))²⌉ by the normal approximation; None when Δ ≤ −margin, where
    more items only make a FAIL.
    """
    if difference.mean is None or difference.sd is None or difference.mean <= -margin:
        return None
    return ceil((normal_quantile(0.975) * difference.sd / (difference.mean + margin)) ** 2)
