"""What the SGLang server takes on its command line, by version: facts, no code of SGLang's.

Of the versions in `TABLES` every option is known. Of older ones (0.5.9 is the first that loads the
draft head of Qwen3.5) only what `SINCE` and `MOVED` say: enough for what this program writes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from harness_cli.errors import UsageError

Version = tuple[int, int, int]
TABLES: Final = ("0.5.22", "0.5.23")
OLDEST: Final[Version] = (0, 5, 9)
"""`qwen3_5_mtp.py` is in no older one."""
SINCE: Final[Mapping[str, Version]] = {
    "speculative-use-rejection-sampling": (0, 5, 14),
    "speculative-adaptive": (0, 5, 11),
    "mamba-radix-cache-strategy": (0, 5, 14),
    "mamba-scheduler-strategy": (0, 5, 7),
    "cuda-graph-max-bs-decode": (0, 5, 14),
    "cuda-graph-max-bs-prefill": (0, 5, 14),
}
"""Option → the first version that knows it; what is not named is older than `OLDEST`."""
MOVED: Final[Mapping[str, tuple[Version, str]]] = {
    "mamba-scheduler-strategy": ((0, 5, 20), "mamba-radix-cache-strategy"),
    "cuda-graph-max-bs": ((0, 5, 20), "cuda-graph-max-bs-decode"),
    "speculative-skip-dp-mlp-sync": ((0, 5, 23), ""),
}
"""Option → the first version that lacks it, and what took its place."""
SHORT: Final[Mapping[str, str]] = {
    "speculative-algo": "speculative-algorithm",
    "speculative-draft": "speculative-draft-model-path",
    "speculative-draft-model": "speculative-draft-model-path",
    "tp": "tp-size",
    "pp": "pp-size",
    "dp": "dp-size",
    "model": "model-path",
    "tensor-parallel-size": "tp-size",
    "pipeline-parallel-size": "pp-size",
    "data-parallel-size": "dp-size",
}
"""Spellings that argparse takes by luck (`--speculative-algo` was an option in no version)."""


@dataclass(frozen=True, slots=True)
class Known:
    """One option: how many values it takes, which ones, its other names."""

    name: str
    kind: str
    """`flag`, `one`, `maybe` (one or none), `many`."""
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    deprecated: bool = False


def version_of(text: str) -> Version:
    """`0.5.23` as numbers; what follows them (`.post1`) changes no option. Raises `UsageError`."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        raise UsageError(f"`{text}` is no version of SGLang", hint=f"as {TABLES[-1]}")
    return int(found[1]), int(found[2]), int(found[3])


@cache
def table(version: str) -> Mapping[str, Known] | None:
    """Every option of a version by its full name; None where only the drift is known."""
    base = ".".join(map(str, version_of(version)))
    if base not in TABLES:
        return None
    text = files("harness_cli.serving.sglang").joinpath(f"options_{base}.txt").read_text("utf-8")
    known = [_known(line) for line in text.splitlines() if line and not line.startswith("#")]
    return {option.name: option for option in known}


def _known(line: str) -> Known:
    name, kind, aliases, choices, deprecated = (*line.split("\t"), "", "", "")[:5]
    return Known(name, kind, _words(aliases), _words(choices), bool(deprecated))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
