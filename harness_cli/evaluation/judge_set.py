"""Calibration sets: replies to the items of another evalset, for judges and never for a policy."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import Evalset, load_evalset, load_header
from harness_cli.evaluation.survey import CanonicalLines, lines_of, stated_of
from harness_cli.judges.labels import Label, LabelledReply
from harness_cli.records.calibration import CORRUPTIONS, CandidateLine, CandidateReply
from harness_cli.records.canonical import canonical_json
from harness_cli.records.counting import counted
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import parse_json
from harness_cli.store.project import Project

FILE = "candidates.jsonl"
DEFAULT = "judge_calibration"
ANNOTATOR = "construction"
"""Who the labels are by: nobody, they follow from how the replies were made."""


@dataclass(frozen=True, slots=True)
class JudgeSet:
    """A calibration set with the items it shares."""

    header: EvalsetHeader
    replies: tuple[LabelledReply, ...]
    items: Evalset
    digest: str
    """Binds header, candidates and the shared items."""
    split: str


def load_judge_set(project: Project, name: str = DEFAULT) -> JudgeSet:
    """The replies of a calibration set with their items.

    Raises `UsageError` for an evalset of another role, `BadFile` with the place of a line that is
    wrong, names an item that the shared evalset has not, or labels what it cannot.
    """
    header = load_header(project, name)
    if header.role != "judge" or header.items_of is None:
        raise UsageError(
            f"`{name}` is an evalset for policies, it calibrates no judge",
            hint=f"`harness judge calibrate` uses `{DEFAULT}`",
        )
    split = next(iter(header.splits), "dev")
    items = load_evalset(project, header.items_of, split=split)
    path = project.evalsets / name / FILE
    shown = str(path.relative_to(project.root))
    if not path.is_file():
        raise BadFile(f"no file `{shown}`", hint="a calibration set is evalset.yaml and this")
    known = {item.id: item for item in items.items}
    lines, frozen = read_candidates(path, known, shown=shown)
    if header.splits.get(split) != len(lines):
        raise BadFile(
            f"{shown}: {counted(len(lines), 'item')}, evalset.yaml says {header.splits.get(split)}"
        )
    if header.digests and header.digests.get(split) != frozen:
        raise BadFile(
            f"{shown}: it has changed: its digest is {frozen}, evalset.yaml froze "
            f"{header.digests.get(split)}",
            hint="bring it back, or make it anew: python -m harness_cli.simulator.calibration",
        )
    bound = {"header": stated_of(header), "candidates": frozen, "items": items.digest}
    return JudgeSet(
        header=header,
        replies=tuple(_labelled(line, r, known) for line in lines for r in line.replies),
        items=items,
        digest=hashlib.sha256(canonical_json(bound)).hexdigest(),
        split=split,
    )


def read_candidates(
    path: Path, items: dict[str, Item], *, shown: str
) -> tuple[list[CandidateLine], str]:
    """The lines of `candidates.jsonl` and the SHA-256 of the canonical JSON of their list."""
    lines: list[CandidateLine] = []
    canonical = CanonicalLines()
    total: Any = hashlib.sha256(b"[")
    seen: set[str] = set()
    for number, text in lines_of(path):
        line = parse_json(text, CandidateLine, name=f"{shown}:{number}")
        fault = _fault(line, items, seen)
        if fault:
            raise BadFile(f"{shown}:{number}: {fault}")
        seen |= {line.item_id, *(r.id for r in line.replies)}
        total.update(b"," * bool(lines) + canonical.of(text))
        lines.append(line)
    if not lines:
        raise BadFile(f"{shown}: there are no candidates")
    total.update(b"]")
    return lines, str(total.hexdigest())


def _fault(line: CandidateLine, items: dict[str, Item], seen: set[str]) -> str | None:
    if line.item_id not in items:
        return f"item `{line.item_id}` is none of the shared evalset"
    for name in (line.item_id, *(r.id for r in line.replies)):
        if name in seen:
            return f"`{name}` stands twice"
    for reply in line.replies:
        if reply.effectiveness not in (0, 0.5, 1):
            return f"`{reply.id}`: effectiveness is 0, 0.5 or 1"
        if reply.corruption and reply.corruption not in CORRUPTIONS:
            return f"`{reply.id}`: no corruption `{reply.corruption}`: {', '.join(CORRUPTIONS)}"
    return None


def _labelled(line: CandidateLine, reply: CandidateReply, items: dict[str, Item]) -> LabelledReply:
    label = Label(
        annotator=ANNOTATOR,
        accuracy=reply.accuracy,
        effectiveness=reply.effectiveness,
        kinds=(reply.corruption,) if reply.corruption else (),
    )
    return LabelledReply(
        id=reply.id,
        reply=reply.reply,
        labels=(label,),
        item=items[line.item_id],
        item_id=line.item_id,
        calls=line.calls,
        corruption=reply.corruption,
        category=line.category,
        note=reply.change,
    )
