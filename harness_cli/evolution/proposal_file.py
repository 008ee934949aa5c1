"""`proposal.yaml`: made, written, read. People decide in it: YAML, with a head that says how."""

import secrets
import time
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evolution.ops import Files, after, apply_ops
from harness_cli.records.canonical import digest, write_atomic
from harness_cli.records.diagnosis import Edit, Op, Proposal
from harness_cli.records.reader import dump_yaml, read_yaml

HEAD = """\
# A proposal to edit the harness. Decide each operation by giving it
#   decision: {state: accept, by: your name}      or
#   decision: {state: reject, by: your name, reason: why}
# To change an operation, edit it and give it `state: modify`. Then:
#   harness edit apply FILE
"""


def new_proposal(
    edits: tuple[Edit, ...],
    *,
    base: str,
    base_commit: str | None,
    diagnosis: str,
    proposer: str,
    note: str = "",
) -> Proposal:
    """A proposal with its own nonce, named by its content."""
    name = digest([base, diagnosis, msgspec.to_builtins(edits)])[:10]
    return Proposal(
        id=f"p-{name}",
        base=base,
        base_commit=base_commit,
        nonce=secrets.token_hex(16),
        diagnosis=diagnosis,
        proposer=proposer,
        created=now(),
        note=note,
        edits=edits,
    )


def now() -> str:
    """The time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def write_proposal(path: Path, proposal: Proposal) -> None:
    """Write whole or not at all."""
    write_atomic(path, (HEAD + dump_yaml(proposal)).encode())


def read_proposal(path: Path) -> Proposal:
    """A proposal from its file. Raises `BadFile` with file, line and the nearest known key."""
    proposal = read_yaml(path, Proposal, name=path.name)
    if proposal.schema != 1:
        raise BadFile(f"{path.name}: schema {proposal.schema} is not known", hint="this is 1")
    names = [edit.id for edit in proposal.edits]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadFile(f"{path.name}: the edit id `{twice[0]}` stands twice")
    return proposal


def hunk_id(edit: Edit, place: int) -> str:
    """What a hunk is called on the command line: the edit, and its place when it has several."""
    return edit.id if len(edit.ops) == 1 else f"{edit.id}#{place + 1}"


def hunks(proposal: Proposal) -> list[tuple[str, Edit, Op]]:
    """Every hunk with its name and edit, in order."""
    return [(hunk_id(e, i), e, op) for e in proposal.edits for i, op in enumerate(e.ops)]


def chosen_ops(proposal: Proposal) -> list[Op]:
    """The operations that were accepted, as they are or modified."""
    return [op for _, _, op in hunks(proposal) if op.decision.state in ("accept", "modify")]


def preview(
    files: Files, earlier: list[Op], op: Op
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """What one operation changes after the earlier ones: path → bytes before and after."""
    before = after(files, apply_ops(files, earlier))
    return {path: (before.get(path), data) for path, data in apply_ops(before, [op]).items()}
