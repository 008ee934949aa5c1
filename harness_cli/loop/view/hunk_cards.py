"""What the review page shows of each hunk: why, the diff, the failing cases, the text to edit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_cli.errors import HarnessError
from harness_cli.evolution.apply import base_files
from harness_cli.evolution.classes import load_classes
from harness_cli.evolution.describe import label_of
from harness_cli.evolution.failure import Failure, Observation
from harness_cli.evolution.modifying import proposed_text
from harness_cli.evolution.proposal_file import hunks
from harness_cli.evolution.session import choose_run, examine, read_diagnosis
from harness_cli.evolution.show_hunk import diff_of, visible
from harness_cli.records.diagnosis import Cluster, Edit, Op, Proposal
from harness_cli.store.project import Project

CASES = 5
KINDS = {"+": "added", "-": "removed", "@": "place"}
ROLES = {
    "skills": "a skill: what the agent reads before it answers one kind of comment",
    "tools": "a tool: how the agent is told of something that it can look up or do",
    "prompts": "the prompt: what the agent is told at every comment",
    "hooks": "a hook: a check that runs while the agent answers",
    "judges": "a judge: by what it grades the agent's replies",
    "fallback.md": "the prompt of the short route for when time runs out",
    "replies.yaml": "what is said when nothing better can be",
}
"""What a reviewer who never saw a harness should know of a file, by the first part of its path."""
SAID = {"accept": "accepted", "modify": "accepted as edited", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class Background:
    """What lies behind a proposal: its base's files and the failures it came from."""

    files: Mapping[str, bytes] | None
    """None when the base is not in this repository."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    items: int = 0
    """How many items the run holds, passed and failed."""
    evalset: str = ""
    classes: Mapping[str, Cluster] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)
    """Of the classes that people own, by id."""


def background(project: Project, proposal: Proposal) -> Background:
    """Read once per proposal. A run that is gone leaves the page without cases, the diffs stay."""
    files = base_files(project, proposal)
    if files is None:
        return Background(None)
    try:
        run = choose_run(project, proposal.diagnosis)
        material = examine(project, run).material
        diagnosis = read_diagnosis(run)
        definitions = {c.id: c.definition for c in load_classes(project.harness)}
    except HarnessError:
        return Background(files)
    return Background(
        files,
        {f.item_id: f for f in material.failures},
        len(material.seen),
        diagnosis.evalset if diagnosis else "",
        {c.id: c for c in diagnosis.clusters} if diagnosis else {},
        definitions,
    )


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
                "part": edit.ops.index(op) + 1,
                "role": ROLES.get(op.path.split("/")[0], "a file of the harness"),
                "classes": list(_classes(edit, behind)),
                "said": SAID.get(op.decision.state, "undecided"),
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
            "comment": _flat(failure.seen.comment),
            "reply": _flat(failure.reply),
            "facts": [visible(_fact(o)) for o in failure.observations[:3]],
        }


def _flat(text: str) -> str:
    return visible(" / ".join(text[:400].splitlines()))


def _fact(observation: Observation) -> str:
    """What went wrong, as a reader would say it."""
    loaded, _, belongs = observation.detail.partition(">")
    if observation.kind == "wrong_skill" and belongs:
        return f"it went by `{loaded}`, where `{belongs}` belongs"
    note = observation.note.replace("``", "").strip()
    return label_of(observation.key) + (f": {note}" if note else "")


def _classes(edit: Edit, behind: Background) -> Iterator[str]:
    """The kinds of failure an edit is meant for: name, size, what is meant by it."""
    for name in edit.classes:
        known = behind.classes.get(name)
        if known is None:
            yield name
            continue
        size = f"{known.label}: {known.size} of {len(behind.failures)} failures"
        meant = behind.definitions.get(name) or known.explanation
        yield size + (f". {meant}" if meant else "")
