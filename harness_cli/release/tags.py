"""The git tag `release/<id>`: names the commit that holds a manifest, signed where there is a key.

Made and checked by plumbing and ssh-keygen alone. `git verify-tag` asks the programs that the
repository's own configuration names, which whoever wrote the repository chose.
"""

from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import RepoError
from harness_cli.release.ssh import ARMOUR, GIT, Trust, check, sign
from harness_cli.store.commit import identity
from harness_cli.store.repo import Repo

PREFIX = "refs/tags/release/"
REAL = {"GIT_NO_REPLACE_OBJECTS": "1"}
"""Objects as they were signed: `git replace` puts another under the same id."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag object, read and not believed."""

    target: str
    """Id of the commit that it names."""
    kind: str
    name: str
    """Its own name, whatever ref leads to it."""
    payload: bytes
    """What a signature covers."""
    signature: bytes


def make_tag(repo: Repo, name: str, commit: str, message: str, key: Path | None) -> str:
    """The tag `release/<name>` on a commit; returns its object's id.

    Raises `RepoError` where the tag stands already.
    """
    who = repo.run("var", "GIT_COMMITTER_IDENT", env=identity(repo)).decode().strip()
    head = f"object {commit}\ntype commit\ntag release/{name}\ntagger {who}\n\n"
    payload = (head + message.strip() + "\n").encode()
    signed = payload + sign(payload, key, GIT) if key else payload
    made = repo.run("hash-object", "-t", "tag", "-w", "--stdin", data=signed).decode().strip()
    ref = PREFIX + name
    if repo.ask("rev-parse", "--verify", "--quiet", ref) not in (None, made):
        raise RepoError(f"the tag `release/{name}` stands already", hint=f"git show release/{name}")
    repo.run("update-ref", ref, made, "0" * len(made))
    return made


def read_tag(repo: Repo, name: str) -> Tag | None:
    """The tag object behind `release/<name>`; None where there is no such ref.

    Raises `RepoError` for a lightweight tag: a ref alone says nothing about who set it.
    """
    ref = PREFIX + name
    kind = repo.ask("cat-file", "-t", ref, env=REAL)
    if kind is None:
        return None
    if kind != "tag":
        raise RepoError(f"`release/{name}` is a lightweight tag: nobody vouches for it")
    data = repo.run("cat-file", "tag", ref, env=REAL)
    at = data.find(ARMOUR)
    payload, signature = (data[:at], data[at:]) if at >= 0 else (data, b"")
    head = payload.partition(b"\n\n")[0].decode("utf-8", "replace").splitlines()
    rows = dict(line.split(" ", 1) for line in head if " " in line)
    return Tag(
        target=rows.get("object", ""),
        kind=rows.get("type", ""),
        name=rows.get("tag", ""),
        payload=payload,
        signature=signature,
    )


def tag_problem(tag: Tag, name: str) -> str:
    """Why a tag is not the one of this release, signed or not; empty where it is."""
    if tag.name != f"release/{name}":
        return f"the ref leads to the tag `{tag.name}` of another release"
    if tag.kind != "commit":
        return f"it names a {tag.kind}, not a commit"
    if not tag.signature and b"-----BEGIN " in tag.payload:
        return "it carries a signature that is none of SSH"
    return ""


def tag_signer(tag: Tag, trust: Trust) -> tuple[str | None, str]:
    """(principal, problem) of a signed tag."""
    done = check(tag.payload, tag.signature, GIT, trust)
    return done.principal, done.problem
