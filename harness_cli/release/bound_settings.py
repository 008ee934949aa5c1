"""The settings that a manifest binds, held against the files of its commit.

A manifest carries its gates, limits and the policy's settings itself. That they are what stood in
`gates.yaml` and `harness.yaml` is another matter: a gate file that nobody committed lets anything
through.
"""

from pathlib import Path
from typing import Any

import msgspec

from harness_cli import __version__
from harness_cli.errors import HarnessError, RepoError
from harness_cli.evaluation.calibrating import record_path
from harness_cli.models.identity import policy_id
from harness_cli.models.scripted import Script
from harness_cli.records.canonical import canonical_json, digest
from harness_cli.records.config import PolicyConfig, ProjectConfig
from harness_cli.records.gates import GatesFile
from harness_cli.records.manifest import Manifest
from harness_cli.records.reader import parse_yaml, read_text
from harness_cli.release.candidate import Pair
from harness_cli.release.checks import Check
from harness_cli.release.signing import blob_at
from harness_cli.store.project import FILE, Project
from harness_cli.store.repo import Repo


def uncommitted_settings(project: Project, pair: Pair) -> list[str]:
    """What decides a promotion of a pair and is not committed as it is, or as its run had it."""
    config = project.config.policies.get(pair.policy)
    script = config.script if config is not None and config.kind == "scripted" else None
    files = [project.gates, project.root / FILE, *([project.root / script] if script else ())]
    found = [fault for path in files for fault in _uncommitted(path)]
    if found or config is None:
        return found
    again = "since the run: evaluate again"
    if canonical_json(_stated(config)) != canonical_json(pair.policy_settings):
        found.append(f"the settings of `{pair.policy}` in `{FILE}` have changed {again}")
    elif script and _scripted_id(pair.policy, config, read_text(project.root / script)) != (
        pair.policy_id
    ):
        found.append(f"`{script}` has changed {again}")
    return found


def _uncommitted(path: Path) -> list[str]:
    try:
        repo = Repo.open(path.parent)
        if repo.dirty(path):
            return [f"`{path.name}` has uncommitted changes: commit them"]
        held = blob_at(repo, "HEAD", repo.relative(path).as_posix())
    except RepoError:
        return [f"`{path.name}` is in no git repository"]
    return [] if held is not None else [f"git ignores `{path.name}`: `git add -f` and commit it"]


def uncommitted_calibration(project: Project, gates: GatesFile, judge: str) -> list[str]:
    """A calibration that gates rest on is in git, as everything else that decides."""
    by_name = any(judge in g.accept_judges for g in gates.gates if g.kind == "judge")
    path = record_path(project, judge)
    if by_name or not path.is_file() or not Repo.open(path.parent).dirty(path):
        return []
    return [f"the calibration of `{judge}` is not committed: commit {path.name}"]


def check_settings(project: Project, manifest: Manifest) -> list[Check]:
    """Gates, limits and policy settings beside the files of the commit that was released."""
    bound = manifest.predicate
    gates = _file(project, manifest, project.gates)
    checks = [
        _beside(
            "gate file",
            bound.gate_settings,
            parse_yaml(gates, GatesFile, name=project.gates.name).gates if gates else None,
            project.gates.name,
        )
    ]
    text = _file(project, manifest, project.root / FILE)
    if text is None:
        return [*checks, Check("limits", "not re-checked", f"`{FILE}` is not in the bound commit")]
    then = Project(root=project.root, config=parse_yaml(text, ProjectConfig, name=FILE))
    limits = {profile: then.limits(profile) for profile in sorted(bound.thresholds)}
    checks.append(_beside("limits", bound.thresholds, limits, FILE, manifest))
    name = str(bound.policy.get("name"))
    found = then.config.policies.get(name)
    mine = bound.policy.get("settings", {})
    if found is None:
        told = f"`{FILE}` of the bound commit has no entry `{name}`"
        return [*checks, Check("policy settings", "not re-checked", told)]
    checks.append(_beside("policy settings", mine, _stated(found), FILE, manifest))
    if found.kind == "scripted" and found.script:
        checks.append(_script(project, manifest, name, found))
    return checks


def _script(project: Project, manifest: Manifest, name: str, config: PolicyConfig) -> Check:
    """A scripted policy is its file: the bound id is made of it."""
    what, file = "policy script", str(config.script)
    text = _file(project, manifest, project.root / file)
    if text is None:
        return Check(what, "not re-checked", f"`{file}` is not in the bound commit")
    bound = str(manifest.predicate.policy.get("id"))
    made = _scripted_id(name, config, text)
    if made == bound:
        return Check(what, "verified", f"`{file}` of the bound commit is {bound}")
    if manifest.predicate.versions.get("harness") != __version__:
        return Check(what, "not re-checked", f"another version named it: {bound}, now {made}")
    return Check(what, "wrong", f"`{file}` of the bound commit is {made}, not {bound}")


def _scripted_id(name: str, config: PolicyConfig, text: str) -> str:
    return policy_id(name, config, script=digest(parse_yaml(text, Script, name=str(config.script))))


def _stated(config: PolicyConfig) -> dict[str, Any]:
    """Settings of a policy as a run keeps them."""
    return {k: v for k, v in msgspec.to_builtins(config).items() if v is not None}


def _file(project: Project, manifest: Manifest, path: Path) -> str | None:
    """A file's text at the commit of the evalsets, which is where a promotion stood."""
    commit = str(manifest.predicate.harness.get("evalsets_commit"))
    try:
        repo = Repo.open(project.evalsets)
        where = repo.relative(path).as_posix()
    except (HarnessError, ValueError):
        return None
    data = blob_at(repo, commit, where)
    return None if data is None else data.decode("utf-8", "replace")


def _beside(
    what: str, bound: Any, found: Any, file: str, manifest: Manifest | None = None
) -> Check:
    """Equal to what the file says? Another version may know settings that the manifest has not."""
    if found is None:
        return Check(what, "not re-checked", f"`{file}` is not in the bound commit")
    one, two = msgspec.to_builtins(bound), msgspec.to_builtins(found)
    if manifest is not None and manifest.predicate.versions.get("harness") != __version__:
        one, two = _shared(one, two), _shared(two, one)
    if canonical_json(one) == canonical_json(two):
        return Check(what, "verified", f"as in `{file}` of the bound commit")
    return Check(what, "wrong", f"`{file}` of the bound commit says otherwise")


def _shared(a: Any, b: Any) -> Any:
    """What of `a` stands in `b` too, at every depth."""
    if isinstance(a, dict) and isinstance(b, dict):
        return {k: _shared(v, b[k]) for k, v in a.items() if k in b}
    return a
