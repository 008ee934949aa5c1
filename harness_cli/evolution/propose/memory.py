"""Rejected edits, remembered: they are not proposed again without new evidence.

One line per rejection in `.harness/rejected.jsonl`. New evidence (choice): the edit now promises to
fix at least half as many items again as when it was rejected.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness_cli.evolution.proposal_file import now
from harness_cli.records.canonical import digest
from harness_cli.records.diagnosis import Edit, Proposal
from harness_cli.records.reader import parse_json
from harness_cli.store.appending import append_durably

FILE = Path(".harness") / "rejected.jsonl"
MORE = 1.5


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """One rejected edit."""

    signature: str
    edit: str
    module: str
    fixes: int
    reason: str = ""
    by: str = ""
    at: str = ""


def signature(edit: Edit) -> str:
    """What makes two edits the same idea: name and module, or the same operations."""
    return digest([edit.id, edit.module])


def content_signature(edit: Edit) -> str:
    """The operations alone, without what was decided about them."""
    plain = [msgspec.to_builtins(op) for op in edit.ops]
    return digest([{k: v for k, v in op.items() if k != "decision"} for op in plain])


def remember(root: Path, proposal: Proposal, *, measured: bool = False) -> int:
    """Append every edit that was rejected whole; returns how many.

    A person's no counts. A script's does not, unless it was `measured`: the gates' no on a run.
    """
    lost = [
        edit
        for edit in proposal.edits
        if edit.ops
        and all(op.decision.state == "reject" for op in edit.ops)
        and (measured or not any(op.decision.script for op in edit.ops))
    ]
    known = {(r.signature, r.fixes) for r in rejections(root)}
    rows = []
    for edit in lost:
        decision = edit.ops[0].decision
        for mark in (signature(edit), content_signature(edit)):
            if (mark, len(edit.predicted_fixes)) not in known:
                row = Rejection(
                    signature=mark,
                    edit=edit.id,
                    module=edit.module,
                    fixes=len(edit.predicted_fixes),
                    reason=decision.reason,
                    by=decision.by,
                    at=decision.at or now(),
                )
                rows.append(msgspec.json.encode(row) + b"\n")
    if rows:
        append_durably(root / FILE, b"".join(rows))
    return len(lost)


def rejections(root: Path) -> list[Rejection]:
    """Every rejection so far."""
    path = root / FILE
    if not path.exists():
        return []
    lines = path.read_bytes().splitlines()
    return [
        parse_json(line, Rejection, name=f"{FILE}:{n}") for n, line in enumerate(lines, 1) if line
    ]


def is_rejected(edit: Edit, known: Iterable[Rejection]) -> bool:
    """The same idea was rejected, and there is no new evidence for it."""
    marks = {signature(edit), content_signature(edit)}
    most = max((r.fixes for r in known if r.signature in marks), default=None)
    return most is not None and len(edit.predicted_fixes) < most * MORE
