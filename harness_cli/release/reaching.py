"""Before spending: whether a gate has enough items to decide on, whatever they come to."""

import msgspec

from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.records.gates import Gate
from harness_cli.records.noise import GateOutlook
from harness_cli.release.candidate import MEASURED, planned, run_for
from harness_cli.release.costing import Cost
from harness_cli.release.gates.latency import without_warm_ups
from harness_cli.release.gather import Candidate


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """A measured gate beside the n that it has, or would have after the run that is missing."""

    gate: str
    n: int
    """Items, or measured requests of a latency gate."""
    minimum_n: int
    enough: bool
    margin: str
    """`decidable`, `undecidable` or `unknown`: what the noise floor says of a gate that compares
    with an incumbent or a base policy; empty where nothing is compared."""
    command: str = ""
    """What would make it known."""


def reach(
    candidate: Candidate, costs: dict[str, Cost], outlook: tuple[GateOutlook, ...]
) -> tuple[Reach, ...]:
    """Every measured gate, with the runs there are and those that `costs` (by gate) plans."""
    found = []
    floors = {o.gate: o for o in outlook}
    for gate in candidate.gates.gates:
        n = _n(candidate, gate, costs)
        if gate.kind not in MEASURED or n is None:
            continue
        margin = _margin(candidate, gate, floors.get(gate.name))
        split = f" --split {gate.split}" if gate.split else ""
        found.append(
            Reach(
                gate=gate.name,
                n=n,
                minimum_n=gate.minimum_n,
                enough=n >= gate.minimum_n,
                margin=margin,
                command=f"harness eval {gate.evalset}{split} --aa" if margin == "unknown" else "",
            )
        )
    return tuple(found)


def reach_line(found: Reach) -> str:
    """One gate in words."""
    told = f"n: {found.gate} has {found.n} of at least {found.minimum_n}"
    if not found.enough:
        return f"{told}: it cannot decide"
    said = {
        "decidable": "",
        "undecidable": ", but no n of this evalset tells a difference within its margin",
        "unknown": f"; what its margin tells is unknown without {found.command}",
    }
    return told + said.get(found.margin, "")


def _n(candidate: Candidate, gate: Gate, costs: dict[str, Cost]) -> int | None:
    """Items of the gate's run, made or planned; without warm-ups where requests are timed."""
    run = run_for(candidate.project, gate, candidate.pair, candidate.named)
    if gate.name in costs:
        n = costs[gate.name].rollouts
    elif run is None:
        return None
    else:
        n = planned(run.config()) // run.config().repeat
    if gate.kind != "latency" or gate.evalset is None:
        return n
    items = load_evalset(candidate.project, gate.evalset, split=gate.split, reason="plan").items
    if items.sealed:  # to look at an item would be an opening, and planning opens nothing
        return max(0, n - gate.warm_up)
    return len(without_warm_ups(list(items.first(n)), gate.warm_up))


def _margin(candidate: Candidate, gate: Gate, floor: GateOutlook | None) -> str:
    compares = candidate.incumbent is not None or gate.base_policy is not msgspec.UNSET
    if gate.kind == "latency" or not compares:
        return ""
    if floor is None:
        return "unknown"
    return "decidable" if floor.can_pass else "undecidable"
