"""The project a verb works in: `harness.yaml` found by walking up, and where things lie."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness_cli.errors import UnknownName, UsageError
from harness_cli.records.config import Limits, PolicyConfig, ProjectConfig
from harness_cli.records.reader import load_yaml, parse_yaml, read_text
from harness_cli.store.checkpoints import PREFIX, checkpoint_policy

FILE = "harness.yaml"
OVERRIDABLE = ("policy", "channel", "runs", "gates", "harness", "evalsets", "manifests")
"""Settings that `HARNESS_<NAME>` in the environment replaces."""
PROFILES = {
    "production": Limits(
        first_call_s=3.0,
        later_call_s=2.0,
        trajectory_s=10.0,
        end_to_end_s=15.0,
        enforce_end_to_end=True,
    ),
    "replay": Limits(end_to_end_s=15.0),
    # No model call is bounded here, the compact fallback's neither: a slow policy is slow, and what
    # it scores must not depend on how busy the machine is. The loop's own ceiling remains.
    "offline": Limits(fallback_s=Limits().call_ceiling_s),
}
"""The profiles of METHODS §1 (TR §6.2, §4.3); `limits` in harness.yaml replaces whole profiles."""

_CREDENTIALS = re.compile(r"://[^/\s:@\"']+:[^/\s@\"']+@")
_KEY = re.compile(r"(?:sk|pk|rk|ghp|gho|xox[abp]|hf|AKIA)[-_]?[A-Za-z0-9_-]{16,}")


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder and its settings."""

    root: Path
    config: ProjectConfig
    sources: Mapping[str, str] = field(default_factory=dict)
    """Setting → where its value comes from: environment, file or default."""

    @classmethod
    def find(cls, start: Path) -> "Project":
        """The project around `start`.

        Raises `UsageError` where no `harness.yaml` stands in `start` or above it.
        """
        here = start.resolve()
        if not here.is_dir():
            raise UsageError(f"no folder `{start}`")
        for folder in (here, *here.parents):
            if (folder / FILE).is_file():
                return cls.read(folder)
        raise UsageError(
            f"no `{FILE}` in `{here}` or above it",
            hint="`harness init` makes a project here; -C DIR names another folder",
        )

    @classmethod
    def read(cls, root: Path) -> "Project":
        """The project whose `harness.yaml` stands in `root`: environment over file over default."""
        config = read_config(root / FILE)
        written = set(load_yaml(read_text(root / FILE, name=FILE), name=FILE) or {})
        sources = {f: FILE if f in written else "default" for f in ProjectConfig.__struct_fields__}
        for name in OVERRIDABLE:
            value = os.environ.get(variable := f"HARNESS_{name.upper()}")
            if value:
                config = msgspec.structs.replace(config, **{name: value})
                sources[name] = variable
        return cls(root=root, config=config, sources=sources)

    @property
    def harness(self) -> Path:
        """The versioned harness."""
        return self.root / self.config.harness

    @property
    def evalsets(self) -> Path:
        """The evalsets and their catalogue."""
        return self.root / self.config.evalsets

    @property
    def manifests(self) -> Path:
        """Manifests, evidence and channels."""
        return self.root / self.config.manifests

    @property
    def runs(self) -> Path:
        """Run folders, git-ignored."""
        return self.root / self.config.runs

    @property
    def gates(self) -> Path:
        """The gate file."""
        return self.root / self.config.gates

    def policy(self, name: str | None = None) -> tuple[str, PolicyConfig]:
        """The policy of that name, or the project's default one; `checkpoint:NAME` needs no entry.

        Behind `checkpoint:` stands a registered name or a folder, relative to the project.
        """
        name = name or self.config.policy
        found = self.config.policies.get(name)
        if found is None and name.startswith(PREFIX):
            return name, checkpoint_policy(self.root, name.removeprefix(PREFIX))
        if found is None:
            raise UnknownName.of("policy", name, self.config.policies)
        return name, found

    def limits(self, profile: str) -> Limits:
        """The bounds of a profile."""
        known = {**PROFILES, **self.config.limits}
        if profile not in known:
            raise UnknownName.of("limits profile", profile, known)
        return known[profile]


def read_config(path: Path) -> ProjectConfig:
    """`harness.yaml` as a record; a value that looks like a key is refused."""
    text = read_text(path, name=path.name)
    for number, text_line in enumerate(text.splitlines(), 1):
        if _KEY.search(text_line):
            raise UsageError(
                f"{path.name}:{number}: this looks like a secret",
                hint="name an environment variable with `api_key_env` instead",
            )
        if _CREDENTIALS.search(text_line):
            raise UsageError(
                f"{path.name}:{number}: this address holds a password",
                hint="take it out; name an environment variable with `api_key_env` instead",
            )
    config = parse_yaml(text, ProjectConfig, name=path.name)
    if config.schema != 1:
        raise UsageError(f"{path.name}: schema {config.schema} is not known", hint="this is 1")
    return config
