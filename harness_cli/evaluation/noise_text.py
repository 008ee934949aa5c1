"""A noise floor in rows and words."""

from harness_cli.evaluation.comparison_text import chance, percent
from harness_cli.records.noise import GateOutlook, Noise

COLUMNS = ("metric", "mean %", "ties %", "sd of Δ", "noise ± points", "sees Δ of", "least p", "n")
GATE_COLUMNS = ("gate", "metric", "margin", "n", "can pass", "chance if equal", "n for 80 %")


def metric_rows(noise: Noise) -> list[tuple[str, ...]]:
    """One row a metric."""
    of = noise.evalset.n if noise.limit is None else min(noise.limit, noise.evalset.n)
    return [
        (
            m.metric, percent(m.mean), percent(m.tie_rate), f"{m.sd:.3f}",
            f"{100 * m.interval.high:.2f}",
            "–" if m.detectable is None or m.detectable > 1 else f"{100 * m.detectable:.2f}",
            chance(m.attainable_p), f"{m.items} of {of}",
        )
        for m in noise.metrics
    ]  # fmt: skip


def gate_rows(noise: Noise) -> list[tuple[str, ...]]:
    """One row a gate that rests on a difference."""
    return [
        (
            g.gate, g.metric, f"{g.margin:g}", str(g.n), "yes" if g.can_pass else "no",
            percent(g.power), "–" if g.needed is None else str(g.needed),
        )
        for g in noise.gates
    ]  # fmt: skip


def title(noise: Noise) -> str:
    """What was set against what."""
    if len(noise.runs) == 1:
        return f"A/A: the repeats of {noise.runs[0]} against each other"
    return f"A/A: {' and '.join(noise.runs)} differ by their seeds alone"


def remarks(noise: Noise) -> list[str]:
    """What the table does not say."""
    found = []
    if noise.same_rollouts == 1:
        found.append(
            "every rollout was repeated word for word: this policy has no noise of its own, and "
            "one changed item is a change"
        )
    found += [
        f"gate {g.gate}: {g.n} items decide nothing, it wants at least {g.minimum_n}"
        if g.n < g.minimum_n
        else f"gate {g.gate}: {g.n} items cannot pass a margin of {g.margin:g} on {g.metric} even "
        f"without a difference; about {g.needed} could"
        for g in noise.gates
        if not g.can_pass
    ]
    return found


def forecast_line(gate: GateOutlook) -> str:
    """One gate before its run: the chance that an equal candidate passes, and the n for 80 %."""
    none = (
        "fewer than it wants, no chance" if gate.n < gate.minimum_n else "no chance even without Δ"
    )
    chance_of = f"{100 * gate.power:.0f} %" if gate.can_pass else none
    needed = "" if gate.needed is None else f", n = {gate.needed} for 80 %"
    return (
        f"noise: {gate.gate} on {gate.n} items within {gate.margin:g}: {chance_of} that an equal "
        f"candidate passes{needed}"
    )
