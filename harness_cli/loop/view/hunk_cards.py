"""What the review page shows of each hunk: why, the diff, the failing cases, the text to edit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_cli.errors import HarnessError
from harness_cli.evolution.apply import base_files
from harness_cli.evolution.failure import Failure
from harness_cli.evolution.modifying import proposed_text
from harness_cli.evolution.proposal_file import hunks
from harness_cli.evolution.session import choose_run, examine
from harness_cli.evolution.show_hunk import diff_of, visible
from harness_cli.records.diagnosis import Edit, Op, Proposal
from harness_cli.store.project import Project

CASES = 5
KINDS = {"+": "added", "-": "removed", "@": "place"}


@dataclass(frozen=True, slots=True)
class Background:
    """What lies behind a proposal: its base's files and the failures it came from."""

    files: Mapping[str, bytes] | None
    """None when the base is not in this repository."""
    failures: Mapping[str, Failure] = field(default_factory=dict)


def background(project: Project, proposal: Proposal) -> Background:
    """Read once per proposal. A run that is gone leaves the page without cases, the diffs stay."""
    files = base_files(project, proposal)
    if files is None:
        return Background(None)
    try:
        seen = examine(project, choose_run(project, proposal.diagnosis))
        failures = {f.item_id: f for f in seen.material.failures}
    except HarnessError:
        failures = {}
    return Background(files, failures)


def earlier_ops(proposal: Proposal, name: str) -> list[Op]:
    """The hunks before one that were not rejected: what it is applied after."""
    earlier = []
    for other, _, op in hunks(proposal):
        if other == name:
            break
        if op.decision.state != "reject":
            earlier.append(op)
    return earlier


def cards(proposal: Proposal, behind: Background) -> list[dict[str, Any]]:
    """One card a hunk, in order; each knows the next one that is open."""
    listed = hunks(proposal)
    open_ = [name for name, _, op in listed if op.decision.state == "pending"]
    made = []
    for place, (name, edit, op) in enumerate(listed, 1):
        rest = [n for n in open_ if n != name]
        later = [n for n, _, _ in listed[place:] if n in rest]
        diff, text, problem = _diff(proposal, behind, name, op)
        made.append(
            {
                "name": name,
                "place": place,
                "total": len(listed),
                "edit": edit,
                "op": op,
                "decision": op.decision,
                "diff": diff,
                "text": text,
                "problem": problem,
                "cases": list(_cases(edit, behind.failures)),
                "next": (later or rest or [name])[0],
            }
        )
    return made


def _diff(
    proposal: Proposal, behind: Background, name: str, op: Op
) -> tuple[list[tuple[str, str]], str | None, str]:
    if behind.files is None:
        return [], None, f"{op.op} {op.path}: the base harness is not at hand"
    earlier = earlier_ops(proposal, name)
    try:
        lines = diff_of(behind.files, earlier, op).splitlines()
        text = proposed_text(behind.files, earlier, op)
    except HarnessError as exc:
        return [], None, f"{op.op} {op.path}: {exc}"
    return [(_kind(line), visible(line)) for line in lines], text, ""


def _kind(line: str) -> str:
    return "head" if line.startswith(("+++", "---")) else KINDS.get(line[:1], "same")


def _cases(edit: Edit, failures: Mapping[str, Failure]) -> Iterator[dict[str, Any]]:
    known = [failures[i] for i in edit.predicted_fixes if i in failures]
    for failure in known[:CASES]:
        yield {
            "item": failure.item_id,
            "comment": visible(failure.seen.comment[:400]),
            "reply": visible(failure.reply[:400]),
            "facts": [visible(f"{o.key} {o.note}".strip()) for o in failure.observations[:3]],
        }
