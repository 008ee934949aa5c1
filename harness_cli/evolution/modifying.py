"""What a reviewer makes of a hunk by editing the file that it results in."""

from collections.abc import Sequence

import msgspec

from harness_cli.evolution.ops import Files, after, apply_ops
from harness_cli.evolution.proposal_file import now
from harness_cli.evolution.text_file import TextFile
from harness_cli.evolution.unified import make_diff
from harness_cli.records.diagnosis import Decision, Op


def proposed_text(files: Files, earlier: Sequence[Op], op: Op) -> str | None:
    """The file as the hunk leaves it after the earlier ones; None where it leaves no text.

    Raises `BadFile` when it does not apply.
    """
    data = apply_ops(after(files, apply_ops(files, earlier)), [op]).get(op.path)
    return None if data is None else TextFile.of(data, name=op.path).text


def modified(files: Files, earlier: Sequence[Op], op: Op, edited: str, *, by: str) -> Op:
    """The operation that leaves the file as edited; rejected where that takes the change back."""
    old = after(files, apply_ops(files, earlier)).get(op.path)
    decision = Decision(state="modify", by=by, at=now())
    if old is None:
        return Op(op="write", path=op.path, text=edited, decision=decision)
    was = TextFile.of(old, name=op.path).text
    if edited == was:
        gone = msgspec.structs.replace(decision, state="reject", reason="edited away")
        return msgspec.structs.replace(op, decision=gone)
    diff = make_diff(was, edited, op.path)
    return Op(op="unified-diff", path=op.path, text=diff, decision=decision)
