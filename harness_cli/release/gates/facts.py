"""What the gates look at: the candidate's runs, the incumbent's, and the state of the project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_cli.evaluation.repeats import majority_of
from harness_cli.records.counting import counted
from harness_cli.records.gates import Gate, GateResult, Outcome, declared
from harness_cli.records.manifest import Approval, EvidenceLine
from harness_cli.release.evidence import RunEvidence

Drift = tuple[str, ...] | str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a gate may rest on, gathered before the first gate is asked."""

    runs: Mapping[str, RunEvidence] = field(default_factory=dict)
    """Gate name → the candidate's run for it."""
    incumbent_runs: Mapping[str, RunEvidence] = field(default_factory=dict)
    base_runs: Mapping[str, RunEvidence] = field(default_factory=dict)
    """Runs of the base policy of a capability gate that names one."""
    incumbent: str | None = None
    """Manifest in force, if any."""
    at: str = ""
    """When it is decided; how old evidence is, is counted from here."""
    subject: str = ""
    """Digest of the candidate pair: what an approval speaks of."""
    approvals: tuple[Approval, ...] = ()
    authors: tuple[str, ...] = ()
    """Who made the edit since the incumbent: their own approval counts for nothing."""
    signers: frozenset[str] = frozenset()
    """Names in the allowed signers: an approval in such a name counts by signature only."""
    signed: Mapping[str, str] = field(default_factory=dict)
    """Good signatures of approvals → the key that made them."""
    drift: Drift = ()
    """Tools whose servers list something else than the lock; a text: why that could not be found
    out; None when not asked."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Gate name → what broke while its evidence was read."""
    provenance: tuple[str, ...] = ()
    """What keeps the candidate from being a committed, whole, reproducible state."""
    judge: Mapping[str, Any] = field(default_factory=dict)
    """name, id, the `standing` of its calibration, its `changes` since, and the record."""


def result(
    gate: Gate, outcome: Outcome, summary: str, *, needs: str = "", **numbers: Any
) -> GateResult:
    """A gate's answer under its own name."""
    return GateResult(
        name=gate.name,
        kind=gate.kind,
        mode=gate.mode,
        outcome=outcome,
        summary=summary,
        numbers=numbers,
        needs=needs,
    )


def missing_run(gate: Gate) -> GateResult:
    """No run to decide on: INCONCLUSIVE, with the command that makes one."""
    split = f" --split {gate.split}" if gate.split else ""
    timed = gate.kind == "latency"
    return result(
        gate,
        "INCONCLUSIVE",
        f"no complete run of `{gate.evalset}` by this pair"
        + (f", {counted(declared(gate), 'request')} at a time" if timed else ""),
        needs=f"harness eval {gate.evalset}{split}{in_time(gate)}",
    )


def in_time(gate: Gate) -> str:
    """The options of `harness eval` that time a latency gate's evalset as it is declared."""
    if gate.kind != "latency":
        return ""
    return f" --profile replay --concurrency {declared(gate)}"


def broken(gate: Gate, run: RunEvidence) -> GateResult | None:
    """INCONCLUSIVE where a run is unfinished, or too much of it is unscored or errored."""
    if not run.complete:
        return result(
            gate,
            "INCONCLUSIVE",
            f"run `{run.run}` is not complete",
            needs=f"harness eval --resume {run.run}",
        )
    if run.config is not None and run.config.excluded:
        return result(
            gate,
            "INCONCLUSIVE",
            f"run `{run.run}` decides nothing: {run.config.excluded}",
            needs="an evalset that this policy had no part in",
        )
    for state, most in (("unscored", gate.max_unscored), ("errored", gate.max_errored)):
        count = sum(line.state == state for line in run.lines)
        share = count / max(run.planned, 1)
        if share > most:
            return result(
                gate,
                "INCONCLUSIVE",
                f"{count} of {run.planned} {state}, more than {most:.0%}",
                needs=f"harness runs show {run.run}",
                run=run.run,
            )
    return None


def score(line: EvidenceLine, metric: str) -> float | None:
    """A line's score; `passed` is its state. Errored counts as 0, unscored as nothing."""
    if line.state == "errored":
        return 0.0
    if metric == "passed":
        return None if line.state == "unscored" else float(line.state == "passed")
    return line.scores.get(metric)


def scores_by_item(run: RunEvidence, metric: str) -> dict[str, float]:
    """Item id → mean score over its repeats, for items with any score.

    `passed` over repeats is the item's one verdict of k of n: 1 where it passed often enough.
    """
    grouped: dict[str, list[float]] = {}
    for line in run.lines:
        value = score(line, metric)
        if value is not None:
            grouped.setdefault(line.item_id, []).append(value)
    if metric == "passed" and run.repeat > 1:
        need = run.need or majority_of(run.repeat)
        return {item: float(sum(values) >= need) for item, values in grouped.items()}
    return {item: sum(values) / len(values) for item, values in grouped.items()}
