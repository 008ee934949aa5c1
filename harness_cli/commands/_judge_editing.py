"""What `harness diagnose --judge` and `harness edit --judge` do with their options."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from harness_cli.commands._diagnosis import show_diagnosis
from harness_cli.commands._show import note
from harness_cli.evaluation.labelled import constructed
from harness_cli.evolution.failure import Failure
from harness_cli.evolution.judge_session import (
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


def diagnose(
    project: Project,
    name: str,
    labels: Path | None,
    evalset: str,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Cluster the disagreements of a judge, keep and show them.

    Without a file of labels it is the calibration set, whatever was diagnosed before.
    """
    found = chosen_labels(project, name, labels, evalset) if labels else constructed(project)
    seen = asyncio.run(examine_judge(project, name, found))
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
    seen = asyncio.run(examine_judge(project, name, chosen_labels(project, name, None)))
    diagnosis = diagnose_examined(project, seen)
    ground = ground_of_judge(seen, diagnosis)
    made = asyncio.run(propose_for_judge(project, ground, policy=policy))
    for cluster, why in () if quiet else made.dropped:
        note(f"not proposed: {cluster}: {why}")
    if not made.proposal.edits and not quiet:
        note(f"judge `{name}`: {made.proposal.note}")
    return made.proposal, {f.item_id: f for f in ground.failures}
