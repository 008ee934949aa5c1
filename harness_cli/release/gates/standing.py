"""Gates on how the candidate stands rather than how it scores: judge, tools, provenance, people."""

from harness_cli.records.gates import Gate, GateResult
from harness_cli.release.gates.facts import Facts, result


def judge(gate: Gate, facts: Facts) -> GateResult:
    """The judge is one this channel accepts, or is calibrated above the floors (METHODS §3).

    An uncalibrated judge makes the gates advisory: they say so and do not pass.
    """
    name = str(facts.judge.get("name", ""))
    if name and name in gate.accept_judges:
        return result(
            gate, "PASS", f"`{name}` is accepted on this channel", id=facts.judge.get("id")
        )
    agreement = facts.judge.get("agreement")
    if not agreement:
        return result(
            gate,
            "INCONCLUSIVE",
            f"judge `{name or 'none'}` is not calibrated",
            needs="harness judge agree with human labels",
        )
    short = {
        metric: (agreement.get(metric), floor)
        for metric, floor in gate.agreement.items()
        if (agreement.get(metric) or 0.0) < floor
    }
    if short:
        said = ", ".join(f"{m} {got} < {floor:g}" for m, (got, floor) in short.items())
        return result(gate, "FAIL", f"agreement with people is too low: {said}")
    return result(gate, "PASS", f"`{name}` agrees with people", **dict(agreement))


def tools(gate: Gate, facts: Facts) -> GateResult:
    """The MCP servers still list what the lock says."""
    if facts.drift is None:
        return result(
            gate, "INCONCLUSIVE", "the servers were not asked", needs="harness tools check"
        )
    if facts.drift:
        return result(
            gate,
            "DRIFT",
            f"drifted from the lock: {', '.join(facts.drift[:5])}",
            needs="harness tools lock, then evaluate again",
        )
    return result(gate, "PASS", "servers list what the lock says")


def provenance(gate: Gate, facts: Facts) -> GateResult:
    """The candidate is committed, whole and the one that was measured."""
    if facts.provenance:
        return result(gate, "FAIL", "; ".join(facts.provenance[:3]))
    return result(gate, "PASS", "committed state, complete fresh runs, inventory reconciled")


def approvals(gate: Gate, facts: Facts) -> GateResult:
    """Enough different named people approved exactly this pair."""
    named = sorted(
        {
            a.by
            for a in facts.approvals
            if a.subject == facts.subject and (not gate.approvers or a.by in gate.approvers)
        }
    )
    if len(named) < gate.approvals:
        return result(
            gate,
            "PENDING",
            f"{len(named)} of {gate.approvals} approvals",
            needs="harness promote --approve NAME",
        )
    return result(gate, "PASS", f"approved by {', '.join(named)}", by=named)
