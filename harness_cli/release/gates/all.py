"""Every gate kind by name, and the run over a gate file."""

from collections.abc import Callable, Mapping

from harness_cli.records.gates import Gate, GateResult, GatesFile
from harness_cli.release.gates import latency, regression, standing
from harness_cli.release.gates.facts import Facts

KINDS: Mapping[str, Callable[[Gate, Facts], GateResult]] = {
    "latency": latency.check,
    "regression": regression.check,
    "capability": regression.check,
    "judge": standing.judge,
    "tools": standing.tools,
    "provenance": standing.provenance,
    "approvals": standing.approvals,
}


def run_gates(gates: GatesFile, facts: Facts) -> tuple[GateResult, ...]:
    """Every gate's answer, in the file's order."""
    return tuple(KINDS[gate.kind](gate, facts) for gate in gates.gates)
