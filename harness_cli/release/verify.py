"""`manifest verify`: every bound digest made anew from the repository. No network, no key."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.harness.load import load_state
from harness_cli.records.manifest import Manifest
from harness_cli.release.bound_calibration import check_calibration, judge_trees
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
from harness_cli.store.tree import EXECUTABLE, FILE, Entry


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
    try:
        with evalsets_at(project, manifest) as there:
            checks += check_evalsets(manifest, evalset_digests(there, manifest))
            checks += check_calibration(manifest, there, judge_trees(project, commit))
    except HarnessError as exc:
        checks.append(Check("evalsets", "wrong", str(exc)))
    path = project.manifests / "evidence" / f"{name}.jsonl.zst"
    try:
        lines = bound_lines(project, manifest) if path.is_file() else None
        checks += check_evidence(manifest, lines)
    except HarnessError as exc:
        checks.append(Check("evidence", "wrong", str(exc)))
    return manifest, checks


@contextmanager
def evalsets_at(project: Project, manifest: Manifest) -> Iterator[Project]:
    """The project with the evalsets of the bound commit, copied into a temporary folder.

    Verifying writes nothing into the repository. Raises `HarnessError` where the commit is not
    here.
    """
    repo = Repo.open(project.evalsets)
    with TemporaryDirectory(prefix="harness-verify-") as made:
        rev = str(manifest.predicate.harness.get("evalsets_commit"))
        write_files(repo.files(rev, project.evalsets), Path(made, "evalsets"))
        config = msgspec.structs.replace(project.config, evalsets="evalsets")
        yield replace(project, root=Path(made), config=config)


def evalset_digests(there: Project, manifest: Manifest) -> dict[str, str]:
    """Digests of the bound evalsets and their catalogue, made anew.

    Raises `HarnessError` where their files do not load.
    """
    found = {}
    for run in manifest.predicate.evidence:
        key = f"{run.evalset}/{run.split}" if run.split else run.evalset
        reason = f"verify {manifest.predicate.id}"
        evalset = load_evalset(there, run.evalset, split=run.split, reason=reason)
        found[key] = evalset.digest
        if evalset.world.digest:  # bare prompts have no catalogue
            found["catalogue"] = evalset.world.digest
    return found


def write_files(files: Mapping[str, Entry], folder: Path) -> None:
    """Plain files of a revision under `folder`; links and submodules are left out."""
    for name, entry in files.items():
        path = folder / name
        if entry.mode in (FILE, EXECUTABLE) and ".." not in path.parts:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.data)


def verified(checks: list[Check]) -> bool:
    """Nothing was found wrong. What could not be re-checked is said, and is no failure."""
    return all(check.outcome != "wrong" for check in checks)
