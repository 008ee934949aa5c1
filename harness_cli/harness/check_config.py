"""`harness.yaml`: every wrong key at once, and names that must answer to something."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from harness_cli.errors import UsageError
from harness_cli.harness.findings import Finding, of_error
from harness_cli.harness.reading import read_record
from harness_cli.harness.roles import GROUNDED, role_problems
from harness_cli.records.config import JudgeConfig, ProjectConfig
from harness_cli.records.reader import line_of, text_of
from harness_cli.store.project import FILE, PROFILES, read_config


def check_config(root: Path) -> tuple[ProjectConfig, list[Finding]]:
    """The settings (defaults where they cannot be read) and what is wrong with them."""
    data = (root / FILE).read_bytes()
    config, findings = read_record(data, ProjectConfig, FILE, "config/file")
    if config is None:
        return ProjectConfig(), findings
    text = text_of(data, name=FILE)
    try:
        read_config(root / FILE)
    except UsageError as exc:  # what only the reader knows: values that look like keys
        findings.append(of_error(exc, FILE, "config/secret"))
    for at, message, fix in [*_names(config), *_judges(root, config)]:
        line = line_of(text, at)
        findings.append(Finding(path=FILE, line=line, rule="config/name", message=message, fix=fix))
    for at, level, message, fix in role_problems(config):
        line = line_of(text, at)
        findings.append(
            Finding(
                path=FILE, line=line, level=level, rule="config/roles", message=message, fix=fix
            )
        )
    return config, findings


def _names(config: ProjectConfig) -> Iterator[tuple[str, str, str]]:
    """(place, message, fix) of every name that nothing answers to."""
    policies, judges = config.policies, config.judges
    yield from _known("$.policy", "policy", config.policy, policies)
    for name, policy in policies.items():
        if policy.fallback is not None:
            at = f"$.policies.{name}.fallback"
            yield from _known(at, "policy", policy.fallback, policies)
        if policy.kind == "openai" and not policy.base_url:
            fix = "add `base_url: https://…/v1`"
            yield f"$.policies.{name}", f"policy `{name}` has no `base_url`", fix
    for name, judge in judges.items():
        for member in judge.panel:
            yield from _known(f"$.judges.{name}.panel", "policy", member, [*policies, GROUNDED])
    for role, name in config.roles.items():
        yield from _known(f"$.roles.{role}", "policy or judge", name, [*policies, *judges])
    for name in config.limits:
        yield from _known(f"$.limits.{name}", "limits profile", name, [*PROFILES, *config.limits])


def _judges(root: Path, config: ProjectConfig) -> Iterator[tuple[str, str, str]]:
    """Panels that cannot vote, folders of judges that are not there."""
    for name, judge in config.judges.items():
        yield from _panel(name, judge)
        if judge.harness is not None and not (root / judge.harness).is_dir():
            message = f"judge `{name}`: no folder `{judge.harness}`"
            yield f"$.judges.{name}.harness", message, f"`{config.harness}/judges/<name>`"


def _panel(name: str, judge: JudgeConfig) -> Iterator[tuple[str, str, str]]:
    at, members = f"$.judges.{name}", judge.panel
    if judge.kind == "grounded":
        if members:
            yield at, f"judge `{name}` is grounded and has no panel", "take `panel` or `kind` out"
        return
    if not members:
        yield at, f"judge `{name}` has no panel", "`panel: [policy, …]`"
    for member in sorted({m for m in members if members.count(m) > 1}):
        yield f"{at}.panel", f"`{member}` would vote twice", "name each member once"
    if judge.quorum is not None and judge.quorum > len(members):
        message = f"a quorum of {judge.quorum} of {len(members)} members"
        yield f"{at}.quorum", message, f"at most {len(members)}"


def _known(at: str, kind: str, name: str, known: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    names = sorted(known)
    if name not in names:
        near = get_close_matches(name, names, n=1)
        fix = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(names)}"
        yield at, f"no {kind} named `{name}`", fix
