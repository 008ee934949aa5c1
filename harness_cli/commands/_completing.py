"""What a shell offers for a value: names of this project, read as cheaply as a key press asks for.

Nothing here imports a room: settings are found by their lines, not by a YAML reader, and names are
those of folders and files. A value that is written in a way this does not see is not offered; the
verb itself takes it all the same. Never raises: a shell has no place for an error.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

FILE = "harness.yaml"
OFFERED = 100
"""Item ids a shell is offered at most: more is no choice, and a set may hold many thousands."""
Complete = Callable[[typer.Context, str], list[str]]


def run_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Runs, newest first, and `latest`."""
    runs = sorted((p.parent.name for p in _glob(ctx, "runs", "*/run.json")), reverse=True)
    return _fitting([*runs, "latest"], incomplete)


def evalset_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Folders with an `evalset.yaml`."""
    return _fitting(
        sorted(p.parent.name for p in _glob(ctx, "evalsets", "*/evalset.yaml")), incomplete
    )


def import_kinds(ctx: typer.Context, incomplete: str) -> list[str]:  # noqa: ARG001  typer's
    """What `evalset import` reads."""
    from harness_cli.evaluation.imports.kinds import KINDS

    return _fitting(KINDS, incomplete)


def item_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Items of the evalset that was named, or of all: the first hundred that fit, none sealed."""
    wanted = ctx.params.get("evalset")
    found: dict[str, None] = {}
    for path in sorted(_glob(ctx, "evalsets", "*/items.jsonl")):
        if wanted in (None, path.parent.name):
            sealed = _sealed(_text(path.with_name("evalset.yaml")))
            ids = _ids(path, incomplete, sealed)
            found |= dict.fromkeys(itertools.islice(ids, OFFERED - len(found)))
    return list(found)


def policy_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Policies of `harness.yaml`, and registered checkpoints."""
    root = _root(ctx)
    found = () if root is None else (root / ".harness" / "checkpoints").glob("*/checkpoint.json")
    made = sorted(f"checkpoint:{path.parent.name}" for path in found)
    return _fitting([*_keys(ctx, "policies"), *made], incomplete)


def training_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Training jobs that have begun."""
    root = _root(ctx)
    found = () if root is None else (root / ".harness" / "train").glob("*/state.json")
    return _fitting(sorted(path.parent.name for path in found), incomplete)


def judge_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Judges of `harness.yaml`."""
    return _fitting(_keys(ctx, "judges"), incomplete)


def judges_or_none(ctx: typer.Context, incomplete: str) -> list[str]:
    """Judges of `harness.yaml`, and `none`."""
    return _fitting([*_keys(ctx, "judges"), "none"], incomplete)


def profile_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The profiles of time bounds: those there always are, and the project's own."""
    return _fitting(
        dict.fromkeys(("offline", "production", "replay", *_keys(ctx, "limits"))), incomplete
    )


def split_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Splits of the evalsets' headers."""
    found: dict[str, None] = {}
    for header in _glob(ctx, "evalsets", "*/evalset.yaml"):
        found |= dict.fromkeys(_below(_text(header), "splits"))
    return _fitting(found, incomplete)


def channel_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Channels that were ever switched."""
    return _fitting(sorted(p.stem for p in _glob(ctx, "manifests", "channels/*.json")), incomplete)


def manifest_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Release manifests."""
    return _fitting(sorted(p.stem for p in _glob(ctx, "manifests", "*.json")), incomplete)


def skill_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Skills of the working files."""
    return _fitting(
        sorted(p.parent.name for p in _glob(ctx, "harness", "skills/*/SKILL.md")), incomplete
    )


def tool_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tools of the working files; those of MCP servers are in the lock, which is not read."""
    found = (p.stem for p in _glob(ctx, "harness", "tools/*.yaml"))
    return _fitting(sorted(n for n in found if n != "mcp"), incomplete)


def hook_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Hooks of the working files."""
    return _fitting(sorted(p.stem for p in _glob(ctx, "harness", "hooks/*.yaml")), incomplete)


def plain_descriptions() -> None:
    """Keep Typer from loading rich to take markup out of help texts that have none.

    It does so for every item that zsh and fish are offered; there is no setting for it (0.28).
    """
    from typer import _completion_classes

    _completion_classes._sanitize_help_text = lambda text: text


def words(*known: str) -> Complete:
    """A fixed choice."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:  # noqa: ARG001  typer's
        return _fitting(known, incomplete)

    return complete


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _root(ctx: typer.Context) -> Path | None:
    start: Any = ctx.params.get("directory") or "."
    try:
        here = Path(start).resolve()
        return next((f for f in (here, *here.parents) if (f / FILE).is_file()), None)
    except OSError:
        return None


def _glob(ctx: typer.Context, setting: str, pattern: str) -> Iterator[Path]:
    root = _root(ctx)
    if root is None:
        return
    defaults = {"harness": "harness_repo", "runs": ".harness/runs"}
    written = re.search(rf"^{setting}:[ \t]*([^\s#]+)", _text(root / FILE), re.MULTILINE)
    folder = (
        os.environ.get(f"HARNESS_{setting.upper()}")
        or (written and written[1].strip("'\""))
        or defaults.get(setting, setting)
    )
    try:
        yield from (root / folder).glob(pattern)
    except (OSError, ValueError):
        return


def _keys(ctx: typer.Context, section: str) -> list[str]:
    root = _root(ctx)
    return [] if root is None else _below(_text(root / FILE), section)


def _below(text: str, section: str) -> list[str]:
    """The keys of a mapping at the top level, in block style or on the line of its name."""
    block = re.search(
        rf"^{section}:[ \t]*(.*)\n((?:[ \t]+.*\n|[ \t]*#.*\n|\n)*)", text + "\n", re.MULTILINE
    )
    if block is None:
        return []
    if block[1].startswith("{"):
        flat = re.sub(r"\{[^{}]*\}", "", block[1][1:])
        return re.findall(r"(?:^|,)\s*['\"]?([\w.-]+)['\"]?\s*:", flat)
    rows = re.findall(r"^([ \t]+)['\"]?([\w.-]+)['\"]?:", block[2], re.MULTILINE)
    return [key for indent, key in rows if indent == rows[0][0]]


def _sealed(header: str) -> set[str]:
    block = re.search(r"^seal:(.*(?:\n[ \t]+.*)*)", header, re.MULTILINE)
    return set(re.findall(r"[\w.-]+", block[1])) - {"splits"} if block else set()


def _ids(path: Path, incomplete: str, sealed: set[str]) -> Iterator[str]:
    import json

    wanted = json.dumps(incomplete, ensure_ascii=False)[:-1]
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if wanted not in line:  # parsing costs more than looking
                    continue
                try:
                    item = json.loads(line)
                except ValueError:
                    continue
                if not isinstance(item, dict) or item.get("split", "dev") in sealed:
                    continue
                name = item.get("id")
                if isinstance(name, str) and name.startswith(incomplete):
                    yield name
    except OSError:
        return


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
