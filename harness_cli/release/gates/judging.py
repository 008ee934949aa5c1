"""The judge gate, and what an untrusted judge does to the gates that rest on its grades.

A judge is trusted where a channel accepts it by name, or where its calibration is current, was made
on labels that the gate takes, and reaches the floors (METHODS §3). What it grades is advisory
otherwise: a gate on it says what it would say, and does not pass.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.records.calibration import Calibration
from harness_cli.records.gates import Gate, GateResult, GatesFile, Outcome
from harness_cli.release.gates.facts import Facts, result

KINDS = "kinds"
FLOORS = {"accuracy": 0.90, "effectiveness": 0.80, KINDS: 0.80}
"""Agreement below which a judge decides nothing (METHODS §3, choice). `kinds` is the least share of
each corruption that must be marked down where labels are by construction (choice): agreement over
such a set follows from how many replies of which kind it holds, and half of them are correct."""
LABELS = ("construction", "human")
"""Origins of labels that a gate takes where it names none: not those of the judge's own team."""
GRADED = frozenset({"accuracy", "effectiveness", "avg", "llm"})
"""Metrics that a judge gives; the others are computed from the trajectory."""
Doubt = tuple[Outcome, str, str]
"""Outcome, what is wrong, and what would mend it."""


def judge(gate: Gate, facts: Facts) -> GateResult:
    """The judge is one this channel accepts by name, or is calibrated above the floors."""
    name = str(facts.judge.get("name", ""))
    numbers = _numbers(facts.judge)
    if name and name in gate.accept_judges:
        told = f"`{name}` is accepted on this channel by name; it is {_told(facts.judge)}"
        return result(gate, "PASS", told, id=facts.judge.get("id"), **numbers)
    doubt = doubt_of(gate, facts.judge)
    if doubt is not None:
        outcome, summary, needs = doubt
        return result(gate, outcome, summary, needs=needs, **numbers)
    return result(gate, "PASS", f"`{name}` is {_told(facts.judge)}", **numbers)


def doubt_of(gate: Gate | None, found: Mapping[str, Any]) -> Doubt | None:
    """Why a judge is not trusted by a judge gate, or by the default one; None where it is."""
    name = str(found.get("name", "")) or "none"
    record = record_of(found)
    command = f"harness judge calibrate --judge {name}, then commit the record"
    if record is None:
        return "INCONCLUSIVE", f"judge `{name}` is not calibrated", command
    if found.get("standing") != "current":
        changes = "; ".join(str(c) for c in found.get("changes", ())) or "unknown how"
        return "INCONCLUSIVE", f"judge `{name}` changed since it was calibrated: {changes}", command
    wanted = gate.labels if gate and gate.labels is not msgspec.UNSET else LABELS
    if record.labels not in wanted:
        told = f"judge `{name}` is calibrated on labels of `{record.labels}`, not of "
        return "INCONCLUSIVE", told + " or ".join(wanted), f"{command}: --labels FILE"
    floors = (gate.agreement if gate else {}) or FLOORS
    said = _below(record, floors)
    if said:
        told = f"judge `{name}` agrees too little: {', '.join(said)}"
        return "FAIL", told, "another judge, or a better one"
    return None


def _below(record: Calibration, floors: Mapping[str, float]) -> list[str]:
    """Everything that lies below its floor, in words."""
    short = [
        f"{m} {record.agreement.get(m, 0.0):.4f} < {floor:g}"
        for m, floor in floors.items()
        if m != KINDS and record.agreement.get(m, 0.0) < floor
    ]
    least = floors.get(KINDS)
    if least is not None and record.labels == "construction":
        short += [
            f"{k.kind} marked down {k.caught} of {k.n} < {least:g}"
            for k in record.kinds
            if k.caught < least * k.n
        ]
    return short


def record_of(found: Mapping[str, Any]) -> Calibration | None:
    """The calibration among what is known of a judge."""
    plain = found.get("calibration")
    return None if plain is None else msgspec.convert(plain, Calibration)


def _numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    record = record_of(found)
    if record is None:
        return {}
    rounded = {f"agreement_{m}": round(v, 6) for m, v in record.agreement.items()}
    return {
        "calibration": found.get("standing"),
        "labels": record.labels,
        "n": record.n,
        "unscored": record.unscored,
        **rounded,
    }


def _told(found: Mapping[str, Any]) -> str:
    record = record_of(found)
    if record is None:
        return "not calibrated"
    agreed = ", ".join(f"{m} {v:.4f}" for m, v in record.agreement.items())
    of = {"construction": "by construction"}.get(record.labels, f"of `{record.labels}`")
    changed = "" if found.get("standing") == "current" else " before it changed"
    return f"calibrated{changed} on {record.n} labels {of}: agreement {agreed}"


def advised(gate: Gate, gates: GatesFile, facts: Facts, decided: GateResult) -> GateResult:
    """A gate's answer; INCONCLUSIVE where it would pass on an untrusted judge's grades."""
    if decided.outcome != "PASS" or not rests_on_judge(gate) or "standing" not in facts.judge:
        return decided
    name = str(facts.judge.get("name", ""))
    asked = [g for g in gates.gates if g.kind == "judge"]
    run = facts.runs.get(gate.name)
    if run is not None and run.judge_id not in ("", facts.judge.get("id")):
        doubt: Doubt | None = (
            "INCONCLUSIVE",
            f"the run was graded by {run.judge_id}, not by {facts.judge.get('id')}",
            "one judge for every run of a promotion",
        )
    elif any(name in g.accept_judges for g in asked):
        doubt = None
    else:
        doubt = doubt_of(asked[0] if asked else None, facts.judge)
    if doubt is None:
        return decided
    return msgspec.structs.replace(
        decided,
        outcome="INCONCLUSIVE",
        summary=f"advisory, {doubt[1]}; it would pass: {decided.summary}",
        needs=doubt[2],
    )


def rests_on_judge(gate: Gate) -> bool:
    """The gate's metric is a judge's grade, or counts items as passed by such grades."""
    if gate.kind not in ("regression", "capability"):
        return False
    return gate.metric in GRADED or (gate.kind == "regression" and gate.metric == "passed")
