"""The evaluations that would prove a pair which no manifest proves, and what they cost."""

from collections.abc import Sequence

from harness_cli.errors import HarnessError
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.records.gates import Gate, declared
from harness_cli.records.manifest import Manifest
from harness_cli.release.candidate import MEASURED, PROMOTE, Pair, read_gates, run_for
from harness_cli.release.costing import cost_text, estimate
from harness_cli.release.measure import Needed
from harness_cli.store.project import Project


def mixed_pair(policy: Manifest, harness: Manifest) -> Pair:
    """The policy of one manifest in the harness of another."""
    bound, tree = policy.predicate.policy, harness.predicate.harness
    return Pair(
        policy=str(bound.get("name", "")),
        policy_id=bound["id"],
        policy_settings=bound.get("settings", {}),
        harness_id=tree["tree"],
        commit=tree.get("commit"),
    )


def options_for(pair: Pair, gate: Gate) -> EvalOptions:
    """How a gate's run of a pair is made."""
    latency = gate.kind == "latency"
    return EvalOptions(
        evalset=gate.evalset,
        split=gate.split,
        policy=pair.policy,
        harness=pair.commit,
        profile="replay" if latency else "offline",
        concurrency=declared(gate) if latency else None,
        command=PROMOTE,
    )


def evaluations(project: Project, pair: Pair) -> list[Needed]:
    """The runs that the gates ask of a pair and that are not there."""
    return [
        Needed(gate=gate, role="candidate", options=options_for(pair, gate))
        for gate in read_gates(project).gates
        if gate.kind in MEASURED and run_for(project, gate, pair, None) is None
    ]


def proof_of(project: Project, pair: Pair) -> Sequence[str]:
    """Command by command, with their cost, what would prove a pair."""
    lines = []
    for need in evaluations(project, pair):
        try:
            cost = cost_text(estimate(project, need.options))
        except HarnessError as exc:
            cost = str(exc)
        lines.append(f"{need.command}  ({cost})")
    lines.append("harness promote RUN, with the run of the first of them")
    return lines
