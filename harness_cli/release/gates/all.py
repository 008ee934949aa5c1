"""Every gate kind by name, and the run over a gate file."""

from collections.abc import Callable, Collection, Mapping

from harness_cli.records.gates import Gate, GateResult, GatesFile
from harness_cli.release.gates import judging, latency, regression, standing
from harness_cli.release.gates.facts import Facts, result

KINDS: Mapping[str, Callable[[Gate, Facts], GateResult]] = {
    "latency": latency.check,
    "regression": regression.check,
    "capability": regression.check,
    "judge": judging.judge,
    "tools": standing.tools,
    "provenance": standing.provenance,
    "approvals": standing.approvals,
}


def run_gates(
    gates: GatesFile, facts: Facts, *, kinds: Collection[str] | None = None
) -> tuple[GateResult, ...]:
    """Every gate's answer, in the file's order, or those of some kinds only.

    A gate whose evidence could not be read says ERROR: it has not looked, so it decides nothing.
    """
    found = []
    for gate in gates.gates:
        if gate.name in facts.errors:
            found.append(result(gate, "ERROR", facts.errors[gate.name]))
        elif kinds is None or gate.kind in kinds:
            said = judging.advised(gate, gates, facts, KINDS[gate.kind](gate, facts))
            found.append(standing.aged(gate, facts, said))
    return tuple(found)
