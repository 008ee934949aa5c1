"""Gates on how the candidate stands rather than how it scores: tools, provenance, people."""

import msgspec

from harness_cli.records.counting import counted
from harness_cli.records.gates import Gate, GateResult
from harness_cli.records.manifest import Approval
from harness_cli.release.clock import age_days, too_old
from harness_cli.release.gates.facts import Facts, in_time, result
from harness_cli.release.people import is_author, names_of

UNSIGNED = "did not sign"


def aged(gate: Gate, facts: Facts, found: GateResult) -> GateResult:
    """A pass on evidence that is older than the gate takes is none."""
    if found.outcome != "PASS" or gate.max_age_days is msgspec.UNSET:
        return found
    run = facts.runs.get(gate.name)
    if run is not None:
        what, began = f"run `{run.run}`", run.started
        needs = f"harness eval {gate.evalset}{in_time(gate)}"
    elif gate.kind == "judge" and facts.judge.get("calibration"):
        what, began = "the judge's calibration", str(facts.judge["calibration"].get("at", ""))
        needs = f"harness judge calibrate --judge {facts.judge.get('name')}"
    else:
        return found
    if not too_old(gate, began, facts.at):
        return found
    age = age_days(began, facts.at)
    told = "of an unknown day" if age is None else f"{age:.1f} days old"
    summary = f"{what} is {told}, more than {gate.max_age_days:g}"
    return msgspec.structs.replace(found, outcome="INCONCLUSIVE", summary=summary, needs=needs)


def tools(gate: Gate, facts: Facts) -> GateResult:
    """The MCP servers still list what the lock says."""
    if facts.drift is None:
        return result(
            gate, "INCONCLUSIVE", "the servers were not asked", needs="harness tools check"
        )
    if isinstance(facts.drift, str):
        return result(gate, "ERROR", facts.drift, needs="harness tools check")
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
    """Enough different people approved exactly this pair, none of them who made the edit.

    A public channel takes two at least, by signature. Where the allowed signers name a person, only
    that person's signature says so. One key is one person, whatever names it goes by.
    """
    public = gate.public is True
    wanted = max(gate.approvals, 2) if public else gate.approvals
    people: dict[str, str] = {}
    set_aside = []
    for approval in facts.approvals:
        if approval.subject != facts.subject:
            continue
        problem = _uncounted(gate, facts, approval)
        if problem:
            set_aside.append(f"{approval.by} {problem}")
        else:
            one = facts.signed.get(approval.signature) or min(names_of(approval.by), default="")
            people.setdefault(one, approval.by)
    named = sorted(people.values())
    aside = f"; not counted: {', '.join(sorted(set(set_aside)))}" if set_aside else ""
    if len(named) < wanted:
        sign = public or any(told.endswith(UNSIGNED) for told in set_aside)
        how = "harness promote approve --sign KEY" if sign else "harness promote --approve NAME"
        told = f"{len(named)} of {counted(wanted, 'approval')}{aside}"
        return result(gate, "PENDING", told, needs=how)
    return result(gate, "PASS", f"approved by {', '.join(named)}{aside}", by=named)


def _uncounted(gate: Gate, facts: Facts, approval: Approval) -> str:
    """Why an approval of this pair counts for nothing; empty where it counts."""
    if gate.approvers and approval.by not in gate.approvers:
        return "is no approver of this gate"
    if is_author(approval.by, facts.authors):
        return "had a part in the edit"
    if approval.signature in facts.signed:
        return ""
    if approval.signature:
        return "has a signature that does not hold"
    if gate.public is True or approval.by in facts.signers:
        return UNSIGNED
    return ""
