"""`manifest verify`: every bound digest made anew from the repository. No network, no key."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.uncollected import uncollected
from harness_cli.harness.load import load_state
from harness_cli.records.canonical import digest, sha256
from harness_cli.records.manifest import Manifest
from harness_cli.release.archiving import Begun, archive_path, begun
from harness_cli.release.bound_calibration import check_calibration, judge_trees
from harness_cli.release.bound_settings import check_settings
from harness_cli.release.channels import read_manifest
from harness_cli.release.checks import Check, compared
from harness_cli.release.clock import check_dates, now
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gather import bound_lines
from harness_cli.release.manifest import (
    check_evalsets,
    check_evidence,
    check_harness,
    check_shape,
)
from harness_cli.release.people import authors, signed_keys
from harness_cli.release.reading import raw
from harness_cli.release.replaying import Evalsets, Lines, check_rollouts
from harness_cli.release.signing import check_signatures, read_signed, trust_of
from harness_cli.release.ssh import Trust, principals
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.tree import EXECUTABLE, FILE, Entry


def verify(
    project: Project, name: str, trust: Trust | None = None, rollouts: Path | None = None
) -> tuple[Manifest, list[Check]]:
    """A manifest and everything that was looked at.

    Harness and evalsets are read at the bound commit, so a later edit of either does not unmake a
    release; the evidence is the committed file beside the manifest. `rollouts` is an archive of
    what was said, or a folder of runs; by default the archive beside the manifest, where there is
    one. Raises `BadFile` for a manifest that cannot be read at all, `UnknownName` for one that is
    not there, and `UsageError` where `rollouts` names nothing.
    """
    if rollouts is not None and not rollouts.exists():
        raise UsageError(f"no archive and no folder of runs `{rollouts}`")
    own = archive_path(project, name)
    rollouts = rollouts or (own if own.is_file() else None)
    trust = trust or trust_of(project)
    with uncollected(), ExitStack() as stack:
        manifest = read_manifest(project.manifests, name)
        runs = {evidence.run for evidence in manifest.predicate.evidence}
        archive = stack.enter_context(begun(rollouts, runs)) if rollouts else None
        return manifest, _checks(project, manifest, name, trust, archive)


def _checks(
    project: Project, manifest: Manifest, name: str, trust: Trust, archive: Begun | None
) -> list[Check]:
    found = read_signed(project, name)
    checks = check_shape(manifest, name, raw(found.data, name=f"{name}.json"))
    checks += check_signatures(project, found, trust)
    checks.append(check_order(project, manifest))
    commit = manifest.predicate.harness.get("commit")
    try:
        state = load_state(project, commit)
    except HarnessError as exc:
        checks.append(Check("harness", "wrong", str(exc)))
    else:
        checks += check_harness(manifest, state)
    evidence, lines = evidence_checks(project, manifest, trust)
    try:
        with evalsets_at(project, manifest) as there:
            evalsets = bound_evalsets(there, manifest)
            checks += check_evalsets(manifest, evalset_digests(evalsets))
            checks += check_calibration(manifest, there, judge_trees(project, commit))
            evidence += check_rollouts(manifest, lines or {}, evalsets, archive)
    except HarnessError as exc:
        checks.append(Check("evalsets", "wrong", str(exc)))
    try:
        checks += check_settings(project, manifest)
    except HarnessError as exc:
        checks.append(Check("gate file", "wrong", str(exc)))
    return checks + evidence


def check_all(
    project: Project, name: str, trust: Trust | None = None, rollouts: Path | None = None
) -> list[Check]:
    """The checks of a manifest; one that cannot be read is a check that went wrong."""
    try:
        return verify(project, name, trust, rollouts)[1]
    except BadFile as exc:
        return [Check("manifest", "wrong", str(exc))]


def evidence_checks(
    project: Project, manifest: Manifest, trust: Trust
) -> tuple[list[Check], Lines | None]:
    """The evidence file, the gates decided again on it, and who approved; and the file's lines."""
    bound = manifest.predicate
    path = project.manifests / "evidence" / f"{bound.id}.jsonl.zst"
    checks, lines = list[Check](), None
    if bound.evidence_file_sha256 and path.is_file():
        sha = sha256(path.read_bytes())
        checks.append(Check("evidence file", *compared(sha, bound.evidence_file_sha256)))
    standing, told = standing_of_people(project, manifest, trust)
    checks.append(told)
    try:
        lines = bound_lines(project, manifest) if path.is_file() else None
        checks += check_evidence(manifest, lines, standing)
    except HarnessError as exc:
        checks.append(Check("evidence", "wrong", str(exc)))
    return checks, lines


def standing_of_people(
    project: Project, manifest: Manifest, trust: Trust
) -> tuple[Facts | None, Check]:
    """What the approvals gate is decided on, and whether the bound authors are git's."""
    what, bound = "authors", manifest.predicate
    if bound.authors is None:
        return None, Check(what, "not re-checked", "an older version bound none")
    signed = [a for a in bound.approvals if a.signature]
    asked = any(g.kind == "approvals" and g.public is True for g in bound.gate_settings)
    if (signed or asked) and trust.allowed is None:
        told = "signed approvals need a file of allowed signers"
        return None, Check(what, "not re-checked", told)
    known = {p.stem for p in project.manifests.glob("*.json")}
    before = read_manifest(project.manifests, bound.incumbent) if bound.incumbent in known else None
    base = str(before.predicate.harness.get("commit")) if before else None
    found = authors(project, base, bound.harness.get("commit"))
    standing = Facts(
        subject=digest({"policy": bound.policy["id"], "harness": bound.harness["tree"]}),
        approvals=bound.approvals,
        authors=bound.authors,
        signers=frozenset(principals(trust.allowed)) if trust.allowed else frozenset(),
        signed=signed_keys(signed, trust),
    )
    if found is None or (bound.incumbent and before is None):
        return standing, Check(what, "not re-checked", "their commits are not here")
    if found != bound.authors:
        told = (
            f"git names {', '.join(found) or 'nobody'}, not {', '.join(bound.authors) or 'nobody'}"
        )
        return standing, Check(what, "wrong", told)
    return standing, Check(what, "verified", ", ".join(found) or "no edit since the base")


def check_order(project: Project, manifest: Manifest) -> Check:
    """Its dates, beside its incumbent's and today's."""
    name = manifest.predicate.incumbent
    known = {p.stem for p in project.manifests.glob("*.json")}
    before = read_manifest(project.manifests, name).predicate if name in known else None
    return check_dates(manifest.predicate, before, now())


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


def bound_evalsets(there: Project, manifest: Manifest) -> Evalsets:
    """The evalsets that the evidence is of, each read once.

    Raises `HarnessError` where their files do not load.
    """
    wanted = dict.fromkeys((run.evalset, run.split) for run in manifest.predicate.evidence)
    reason = f"verify {manifest.predicate.id}"
    return {
        (name, split): load_evalset(there, name, split=split, reason=reason)
        for name, split in wanted
    }


def evalset_digests(evalsets: Evalsets) -> dict[str, str]:
    """Digests of evalsets and their catalogue, made anew."""
    found = {}
    for (name, split), evalset in evalsets.items():
        found[f"{name}/{split}" if split else name] = evalset.digest
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
