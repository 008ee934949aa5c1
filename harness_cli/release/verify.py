"""`manifest verify`: every bound digest made anew from the repository. No network, no key."""

from collections.abc import Iterator
from pathlib import Path

from harness_cli.errors import HarnessError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.harness.load import load_state
from harness_cli.records.manifest import Manifest
from harness_cli.release.channels import read_manifest
from harness_cli.release.gather import bound_lines
from harness_cli.release.manifest import (
    Check,
    check_evalsets,
    check_evidence,
    check_harness,
    check_shape,
)
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


def verify(project: Project, name: str) -> tuple[Manifest, list[Check]]:
    """A manifest and everything that was looked at.

    Harness and evalsets are read at the bound commit, so a later edit of either does not unmake a
    release; the evidence is the committed file beside the manifest.
    """
    manifest = read_manifest(project.manifests, name)
    checks = check_shape(manifest, name)
    commit = manifest.predicate.harness.get("commit")
    try:
        state = load_state(project, commit)
    except HarnessError as exc:
        checks.append(Check("harness", "wrong", str(exc)))
    else:
        checks += check_harness(manifest, state)
    checks += check_evalsets(manifest, dict(evalset_digests(project, manifest)))
    path = project.manifests / "evidence" / f"{name}.jsonl.zst"
    try:
        lines = bound_lines(project, manifest) if path.is_file() else None
        checks += check_evidence(manifest, lines)
    except HarnessError as exc:
        checks.append(Check("evidence", "wrong", str(exc)))
    return manifest, checks


def evalset_digests(project: Project, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Digests of the bound evalsets and their catalogue, from a checkout of the bound commit."""
    commit = manifest.predicate.harness.get("evalsets_commit")
    repo = Repo.open(project.evalsets)
    try:
        tree = repo.worktree(str(commit))
        with tree as path:
            there = Project.read(Path(path) / repo.relative(project.root))
            for bound in manifest.predicate.evidence:
                key = f"{bound.evalset}/{bound.split}" if bound.split else bound.evalset
                evalset = load_evalset(
                    there,
                    bound.evalset,
                    split=bound.split,
                    reason=f"verify {manifest.predicate.id}",
                )
                yield key, evalset.digest
                yield "catalogue", evalset.world.digest
    except HarnessError:
        return


def verified(checks: list[Check]) -> bool:
    """Nothing was found wrong. What could not be re-checked is said, and is no failure."""
    return all(check.outcome != "wrong" for check in checks)
