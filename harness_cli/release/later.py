"""A manifest signed after the fact, and the tag that a killed promotion did not make."""

from pathlib import Path

import msgspec

from harness_cli.errors import HarnessError, RepoError
from harness_cli.release.channels import read_manifest
from harness_cli.release.commit import channels_locked
from harness_cli.release.signing import (
    read_signed,
    release_tag,
    signature_path,
    signed_by,
    trust_of,
    write_signature,
)
from harness_cli.release.ssh import MANIFEST
from harness_cli.release.tags import PREFIX
from harness_cli.store.checkin import commit_paths
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


class SignedLater(msgspec.Struct, frozen=True, kw_only=True):
    """What was made."""

    manifest: str
    by: str
    """The allowed signer; empty without a key, or where nobody is listed."""
    tag: str | None


def sign_later(project: Project, name: str, key: Path | None) -> SignedLater:
    """The signature of a manifest, committed, and its tag, on the commit that holds both.

    A tag that stands already is kept where it is unsigned and no key was given; with a key it is
    made anew on the same commit. Raises `HarnessError` where the commit holds another manifest.
    """
    read_manifest(project.manifests, name)
    by = ""
    with channels_locked(project, "harness manifest sign"):
        found = read_signed(project, name)
        if key is not None:
            signature, by = signed_by(found.data, key, trust_of(project), MANIFEST)
            write_signature(project, name, signature)
        try:
            repo = Repo.open(project.manifests)
        except RepoError:
            return SignedLater(manifest=name, by=by, tag=None)
        paths = [project.manifests / f"{name}.json", signature_path(project, name)]
        paths.append(project.manifests / "evidence" / f"{name}.jsonl.zst")
        sha = commit_paths(repo, [p for p in paths if p.is_file()], f"sign {name}")
        if (
            repo.run("cat-file", "blob", f"{sha}:{repo.relative(paths[0]).as_posix()}")
            != found.data
        ):
            raise HarnessError(f"commit {sha[:12]} holds another manifest `{name}`")
        if key is not None:
            repo.delete_ref(PREFIX + name)
        if repo.ask("rev-parse", "--verify", "--quiet", PREFIX + name) is None:
            release_tag(project, name, sha, key)
    return SignedLater(manifest=name, by=by, tag=f"release/{name}")
