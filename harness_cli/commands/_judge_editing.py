"""What `harness diagnose --judge` and `harness edit --judge` do with their options."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from harness_cli.commands._diagnosis import show_diagnosis
from harness_cli.commands._show import note
from harness_cli.evolution.failure import Failure
from harness_cli.evolution.judge_session import (
    ExaminedJudge,
    chosen_labels,
    diagnose_examined,
    editable,
    examine_judge,
    ground_of_judge,
    propose_for_judge,
)
from harness_cli.evolution.judged import diagnosis_path
from harness_cli.records.diagnosis import Proposal
from harness_cli.store.project import Project


def examined(project: Project, name: str, labels: Path | None) -> ExaminedJudge:
    """A judge on labels: those of a file, of its last diagnosis, or of the calibration set."""
    return asyncio.run(examine_judge(project, name, chosen_labels(project, name, labels)))


def diagnose(
    project: Project, name: str, labels: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Cluster the disagreements of a judge, keep and show them."""
    seen = examined(project, name, labels)
    made = diagnose_examined(project, seen)
    show_diagnosis(made, as_json=as_json, quiet=quiet)
    if not (quiet or as_json):
        note(f"\nwritten: {diagnosis_path(project, name)}")
        if seen.folder is not None:
            note(f"next: `harness edit --judge {name}` proposes rules for its rubrics")


def propose(
    project: Project, name: str, policy: str | None, *, quiet: bool
) -> tuple[Proposal, Mapping[str, Failure]]:
    """A proposal for a judge's harness, and the failures by id. Refuses a judge that is code."""
    editable(project, name)
    seen = examined(project, name, None)
    diagnosis = diagnose_examined(project, seen)
    ground = ground_of_judge(seen, diagnosis)
    made = asyncio.run(propose_for_judge(project, ground, policy=policy))
    for cluster, why in () if quiet else made.dropped:
        note(f"not proposed: {cluster}: {why}")
    if not made.proposal.edits and not quiet:
        note(f"judge `{name}`: {made.proposal.note}")
    return made.proposal, {f.item_id: f for f in ground.failures}
