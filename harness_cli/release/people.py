"""Who made an edit, and who approved it: the same person never counts for both."""

from collections.abc import Iterable

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.records.canonical import canonical_json
from harness_cli.records.manifest import Approval
from harness_cli.release.ssh import APPROVAL, Checked, Trust, check
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo

FORM = "--format=%P%x00%an <%ae>%x00%cn <%ce>%x00%(trailers:key=Reviewed-by,valueonly)%x01"


def authors(project: Project, base: str | None, commit: str | None) -> tuple[str, ...] | None:
    """Authors, committers and reviewers of the harness's commits after `base`, up to `commit`.

    Without a base, of all of them but the repository's first, which brings the base harness and is
    no edit. None where git does not know the commit.
    """
    if commit is None:
        return None
    repo = Repo.open(project.harness)
    folder = repo.relative(project.harness).as_posix()
    known = base is not None and repo.ask("cat-file", "-e", f"{base}^{{commit}}") is not None
    span = f"{base}..{commit}" if known else commit
    try:
        told = repo.run("--literal-pathspecs", "log", FORM, span, "--", folder)
    except HarnessError:
        return None
    found: dict[str, None] = {}
    for entry in told.decode("utf-8", "replace").split("\x01"):
        parts = entry.strip("\n").split("\0")
        if len(parts) == 4 and parts[0]:  # the first commit has no parents
            reviewers = parts[3].splitlines()
            found.update(dict.fromkeys(n for n in (*parts[1:3], *reviewers) if n.strip()))
    return tuple(sorted(found))


def names_of(person: str) -> set[str]:
    """What a person goes by: `Ann <a@b>` by either part, whatever the case."""
    name, _, mail = person.partition("<")
    return {part.strip(" >").casefold() for part in (name, mail) if part.strip(" >")}


def is_author(person: str, made_by: Iterable[str]) -> bool:
    """Whether a person had a part in the edit."""
    mine = names_of(person)
    return any(mine & names_of(author) for author in made_by)


def approval_payload(approval: Approval) -> bytes:
    """What an approval's signature covers: all of it but the signature."""
    plain = msgspec.to_builtins(approval)
    del plain["signature"]
    return canonical_json(plain)


def check_approval(approval: Approval, trust: Trust) -> Checked:
    """Whether the person that an approval names signed it."""
    if not approval.signature:
        return Checked(None, "it is not signed")
    found = check(approval_payload(approval), approval.signature.encode(), APPROVAL, trust)
    if found.good and found.principal != approval.by:
        return Checked(None, f"{found.principal} signed it, not {approval.by}")
    return found


def signed_keys(approvals: Iterable[Approval], trust: Trust) -> dict[str, str]:
    """Signature → the key that made it, of every approval that the named person signed."""
    found = {}
    for approval in approvals:
        done = check_approval(approval, trust)
        if done.good:
            found[approval.signature] = done.key
    return found
