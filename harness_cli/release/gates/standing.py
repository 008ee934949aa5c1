"""Gates on how the candidate stands rather than how it scores: tools, provenance, people."""

from harness_cli.records.counting import counted
from harness_cli.records.gates import Gate, GateResult
from harness_cli.release.gates.facts import Facts, result


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
            f"{len(named)} of {counted(gate.approvals, 'approval')}",
            needs="harness promote --approve NAME",
        )
    return result(gate, "PASS", f"approved by {', '.join(named)}", by=named)
