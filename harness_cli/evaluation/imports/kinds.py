"""The kinds of files that can be imported: by name, and told apart by how they begin."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from harness_cli.errors import UnknownName, UsageError
from harness_cli.evaluation.imports.imported import Imported, ImportOptions
from harness_cli.evaluation.imports.source import Source

Read = Callable[[Source, ImportOptions], Imported]


class Kind(NamedTuple):
    """A file format."""

    module: str
    """Below `evaluation.imports`; its `read` is the reader."""
    says: str


KINDS = {
    "csv": Kind("rows", "table: prompt or comment, expected, reply, score … (CSV)"),
    "evals-json": Kind("evals_json", "Agent Skills evals.json"),
    "ifeval": Kind("ifeval", "IFEval's prompts: a file, a folder, or an installed package"),
    "inspect": Kind("inspect_log", "log of inspect_ai (JSON, or .eval)"),
    "jsonl": Kind("rows", "the same, an object a line; or items of ours (JSONL)"),
    "openai-chat": Kind("openai_chat", "chat logs in OpenAI's format (JSON or JSONL)"),
    "otel": Kind("otel", "OpenTelemetry GenAI spans (OTLP JSON)"),
    "promptfoo": Kind("promptfoo", "promptfoo configuration (YAML), with the files beside it"),
    "tau-bench": Kind("tau_bench", "τ-bench result file (list of records)"),
    "tau2": Kind("tau2", "τ²-bench result file (info, tasks, simulations)"),
}


def reader(kind: str) -> Read:
    """The reader of a kind. Raises `UnknownName`."""
    if kind not in KINDS:
        raise UnknownName.of("kind of import", kind, KINDS)
    module = import_module(f"harness_cli.evaluation.imports.{KINDS[kind].module}")
    read: Read = module.read
    return read


def located(kind: str, path: Path) -> Path:
    """The file that is meant where a kind takes more than files (`ifeval`: packages, folders)."""
    if kind == "ifeval":
        from harness_cli.evaluation.imports.ifeval import find_prompts

        return find_prompts(path)
    return path


def guessed(source: Source) -> str:
    """The kind of a file that records rollouts, by its first bytes and its name.

    Raises `UsageError` where nothing fits: then the kind must be named.
    """
    head = source.head.lstrip()
    if re.match(rb"\[\s*\{", head) and b'"task_id"' in head and b'"info"' in head:
        return "tau-bench"
    if re.match(rb"\{", head) and _keys(source, b"simulations", b"tasks", b"info"):
        return "tau2"
    if head[:4] == b"PK\x03\x04" or _keys(source, b"eval", b"samples", b"plan"):
        return "inspect"
    if _keys(source, b"resourceSpans"):
        return "otel"
    if _keys(source, b"messages") and b'"role"' in head:
        return "openai-chat"
    raise UsageError(
        f"{source.name}: this is no result file that is known by its beginning",
        hint=f"`harness evalset import KIND FILE` takes {', '.join(KINDS)}",
    )


def _keys(source: Source, *keys: bytes) -> bool:
    return all(source.data.find(b'"' + key + b'"') >= 0 for key in keys)
