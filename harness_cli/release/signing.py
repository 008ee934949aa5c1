"""A manifest's signature and its tag: made at promotion, checked with no key and no network."""

import os
from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import RepoError, UsageError
from harness_cli.records.canonical import write_atomic
from harness_cli.release.checks import Check
from harness_cli.release.ssh import (
    GIT,
    MANIFEST,
    Trust,
    check,
    open_lines,
    read_signature,
    sign,
)
from harness_cli.release.tags import make_tag, read_tag, tag_problem, tag_signer
from harness_cli.store.blobs import batch
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo

ALLOWED, REVOKED = "allowed_signers", "revoked_signers"
KEY_VARIABLE = "HARNESS_SIGNING_KEY"
ALLOWED_VARIABLE = "HARNESS_ALLOWED_SIGNERS"
REVOKED_VARIABLE = "HARNESS_REVOKED_SIGNERS"


@dataclass(frozen=True, slots=True)
class Signed:
    """A manifest as it stands on disk."""

    name: str
    data: bytes
    signature: bytes
    """Empty where there is none."""


def trust_of(
    project: Project,
    allowed: Path | None = None,
    revoked: Path | None = None,
    at: str | None = None,
) -> Trust:
    """Whom to believe: a file that the caller or the environment names, else the repository's own.

    Raises `UsageError` for a named file that is not there.
    """
    allowed = allowed or _named(ALLOWED_VARIABLE)
    revoked = revoked or _named(REVOKED_VARIABLE)
    for path in (allowed, revoked):
        if path is not None and not path.is_file():
            raise UsageError(f"no file `{path}`", hint="ssh-keygen(1), ALLOWED SIGNERS")
    own, own_revoked = project.manifests / ALLOWED, project.manifests / REVOKED
    return Trust(
        allowed=allowed or (own if own.is_file() else None),
        revoked=revoked or (own_revoked if own_revoked.is_file() else None),
        at=at,
        required=allowed is not None or own.is_file(),
    )


def signing_key(option: Path | None) -> Path | None:
    """The key that the option or `HARNESS_SIGNING_KEY` names."""
    return option or _named(KEY_VARIABLE)


def _named(variable: str) -> Path | None:
    text = os.environ.get(variable)
    return Path(text).expanduser() if text else None


def signed_by(data: bytes, key: Path, trust: Trust, namespace: str) -> tuple[bytes, str]:
    """A signature and whose it is, as `trust` has it; empty where it lists nobody yet.

    Raises `UsageError` where `trust` would not take it: better now than at the first verifying.
    """
    made = sign(data, key, namespace)
    if trust.allowed is None:
        return made, ""
    found = check(data, made, namespace, trust)
    if found.principal is None:
        wanted = f'namespaces="{GIT},{MANIFEST},harness-approval"'
        raise UsageError(
            f"`{key.name}` may not sign here: {found.problem}",
            hint=f"a line of `{trust.allowed.name}`: NAME {wanted} ssh-ed25519 AAAA…",
        )
    return made, found.principal


def signature_path(project: Project, name: str) -> Path:
    """`manifests/<id>.json.sig`."""
    return project.manifests / f"{name}.json.sig"


def read_signed(project: Project, name: str) -> Signed:
    """A manifest's bytes beside its signature's."""
    path = signature_path(project, name)
    return Signed(
        name=name,
        data=(project.manifests / f"{name}.json").read_bytes(),
        signature=read_signature(path) if path.is_file() else b"",
    )


def write_signature(project: Project, name: str, signature: bytes) -> None:
    """The detached signature beside the manifest."""
    write_atomic(signature_path(project, name), signature)


def release_tag(project: Project, name: str, commit: str | None, key: Path | None) -> str | None:
    """The tag `release/<id>` on the commit that holds the manifest; None without a repository."""
    if commit is None:
        return None
    repo = Repo.open(project.manifests)
    return make_tag(repo, name, commit, f"release {name}", key)


def check_signatures(project: Project, found: Signed, trust: Trust) -> list[Check]:
    """The signature, the tag and the history of a manifest."""
    checks = [check_signature(found, trust)]
    try:
        repo = Repo.open(project.manifests)
    except RepoError:
        return [*checks, Check("release tag", "not re-checked", "this is no git repository")]
    path = repo.relative(project.manifests / f"{found.name}.json").as_posix()
    checks.append(check_tag(repo, path, found, trust))
    checks.append(check_history(repo, path, found))
    return checks


def check_signature(found: Signed, trust: Trust) -> Check:
    """The detached signature: by an allowed signer, for manifests, over these very bytes."""
    what = "signature"
    if not found.signature:
        if trust.required:
            told = f"not signed: harness manifest sign {found.name} --key KEY"
            return Check(what, "wrong", told)
        return Check(what, "not re-checked", "not signed, and no file of allowed signers")
    done = check(found.data, found.signature, MANIFEST, trust)
    if done.principal is None:
        return Check(what, "wrong", done.problem + _open(trust))
    return Check(what, "verified", f"{done.principal} with {done.key}")


def _open(trust: Trust) -> str:
    """A word on lines of the allowed signers that allow nothing, since they allow anything."""
    lines = open_lines(trust.allowed) if trust.allowed and trust.allowed.is_file() else []
    if not lines:
        return ""
    numbers = ", ".join(map(str, lines))
    return (
        f"; line {numbers} of `{trust.allowed.name if trust.allowed else ''}` names no namespaces"
    )


def check_tag(repo: Repo, path: str, found: Signed, trust: Trust) -> Check:
    """The tag of this release: its own name, its signer, and the manifest at its commit."""
    what = "release tag"
    try:
        tag = read_tag(repo, found.name)
    except RepoError as exc:
        return Check(what, "wrong", str(exc))
    if tag is None:
        return Check(what, "not re-checked", f"no tag `release/{found.name}` in this clone")
    problem = tag_problem(tag, found.name)
    if problem:
        return Check(what, "wrong", problem)
    if blob_at(repo, tag.target, path) != found.data:
        return Check(what, "wrong", f"commit {tag.target[:12]} holds another `{path}`")
    if not tag.signature:
        outcome = Check(what, "wrong", "nobody signed it")
        plain = Check(what, "verified", f"commit {tag.target[:12]} holds it; nobody signed the tag")
        return outcome if trust.required else plain
    principal, problem = tag_signer(tag, trust)
    if principal is None:
        return Check(what, "wrong", problem)
    return Check(what, "verified", f"signed by {principal} on commit {tag.target[:12]}")


def check_history(repo: Repo, path: str, found: Signed) -> Check:
    """A manifest is written once: what it says now is what its first commit said."""
    what = "history"
    if repo.shallow:
        return Check(what, "not re-checked", "this clone is shallow")
    asked = ("--literal-pathspecs", "log", "--diff-filter=A", "--format=%H", "HEAD", "--", path)
    added = (repo.ask(*asked) or "").split()
    if not added:
        return Check(what, "not re-checked", "not committed")
    first = added[-1]
    if blob_at(repo, first, path) != found.data:
        return Check(what, "wrong", f"it was edited since its commit {first[:12]}")
    return Check(what, "verified", f"unchanged since commit {first[:12]}")


def blob_at(repo: Repo, commit: str, path: str) -> bytes | None:
    """A file's bytes at a commit; None where it is not there. Raises `RepoError` where damaged."""
    name = f"{commit}:{path}"
    env = {"GIT_NO_REPLACE_OBJECTS": "1"}
    out = repo.run("cat-file", "--batch", data=f"{name}\n".encode(), env=env)
    if out.split(b"\n", 1)[0].split(b" ")[1:2] != [b"blob"]:
        return None
    return batch(out, [name], repo.object_format)[0]
