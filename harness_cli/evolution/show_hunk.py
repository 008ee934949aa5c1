"""A hunk as a reviewer sees it: where it belongs, why, the diff, the cases. Text only."""

from collections.abc import Iterator, Mapping, Sequence

from harness_cli.errors import HarnessError
from harness_cli.evolution.failure import Failure
from harness_cli.evolution.ops import Files
from harness_cli.evolution.proposal_file import hunks, preview
from harness_cli.evolution.text_file import TextFile
from harness_cli.evolution.unified import make_diff
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Case, Edit, Op, Proposal

_RED, _GREEN, _CYAN, _BOLD, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"


def diff_of(files: Files, earlier: Sequence[Op], op: Op) -> str:
    """What one operation changes, as a unified diff; a move is told in words.

    Raises `BadFile` when it does not apply after the earlier ones.
    """
    if op.op == "move":
        return f"rename {op.path} => {op.to}\n"
    made = []
    for path, (old, new) in preview(files, list(earlier), op).items():
        texts = [None if data is None else TextFile.of(data, name=path).text for data in (old, new)]
        made.append(make_diff(texts[0], texts[1], path))
    return "".join(made) or "(no change)\n"


def visible(text: str) -> str:
    """Text of viewers and models on one line, its control characters made visible."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)


def paint(diff: str, *, colour: bool) -> str:
    """The diff with git's colours, control characters of its content made visible."""
    out = []
    for line in diff.split("\n"):
        clean = visible(line)
        mark = {"+": _GREEN, "-": _RED, "@": _CYAN}.get(clean[:1], "")
        if clean.startswith(("+++", "---")):
            mark = _BOLD
        out.append(f"{mark}{clean}{_PLAIN}" if colour and mark else clean)
    return "\n".join(out)


def head_of(name: str, edit: Edit, op: Op, place: int, total: int) -> Iterator[str]:
    """The lines above a diff: which hunk, why, what it promises."""
    yield visible(f"({place}/{total}) {name}  {edit.module}")
    yield visible(f"  why: {edit.rationale}")
    if edit.predicted_fixes:
        named = ", ".join(edit.classes) or "no class"
        yield visible(f"  should fix: {counted(len(edit.predicted_fixes), 'item')} ({named})")
    if edit.risks:
        yield visible(f"  risk: {edit.risks}")
    if op.placed is not None:
        yield f"  a SUGGESTION by {op.placed:.0%} likeness: what it searched is not in the file"


def cases_of(
    edit: Edit, failures: Mapping[str, Failure], cases: Mapping[str, Case]
) -> Iterator[str]:
    """The failing cases behind an edit: what was said, what went wrong, at which step."""
    shown = 0
    for item in edit.predicted_fixes:
        failure, case = failures.get(item), cases.get(item)
        if failure is None and case is None:
            continue
        comment = failure.seen.comment if failure else case.comment if case else ""
        reply = failure.reply if failure else case.reply if case else ""
        step = failure.leading.step if failure and failure.leading else case.step if case else None
        yield visible(f"  {item}" + ("" if step is None else f" (step {step})"))
        yield visible(f"    viewer: {' '.join(comment.split())[:200]}")
        yield visible(f"    reply:  {' '.join(reply.split())[:200]}")
        for o in failure.observations[:2] if failure else ():
            yield visible(f"    {o.key}" + (f": {o.note}" if o.note else ""))
        shown += 1
        if shown == 5:
            return
    if not shown:
        yield "  no case at hand: `harness show run` has them"


def as_text(proposal: Proposal, files: Files | None, *, colour: bool) -> Iterator[str]:
    """The whole proposal for reading; without files (a base that is gone) the operations alone."""
    yield f"proposal {proposal.id} by {proposal.proposer}, from diagnosis {proposal.diagnosis}"
    yield f"base harness {proposal.base[:12]}, made {proposal.created}"
    listed = hunks(proposal)
    if proposal.note or not listed:
        yield visible(proposal.note or "it holds no edits")
    earlier: list[Op] = []
    for place, (name, edit, op) in enumerate(listed, 1):
        yield ""
        yield from head_of(name, edit, op, place, len(listed))
        d = op.decision
        by = f" by {d.by}" + (" (script)" if d.script else "") if d.by else ""
        yield visible(f"  decision: {d.state}{by}" + (f": {d.reason}" if d.reason else ""))
        try:
            if files is None:
                raise HarnessError("the base harness is not at hand")
            yield paint(diff_of(files, earlier, op), colour=colour).rstrip("\n")
        except HarnessError as exc:
            yield f"  {op.op} {op.path}: {exc}"
            continue
        if d.state != "reject":
            earlier.append(op)
