"""Files of older schemas moved to this version's; numbers nobody knows are refused.

A step takes the text of one schema and gives the text of the next, so that the comments of a file
a person edits can survive it. Every text is made and decoded before the first file is written.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness_cli.errors import BadFile, UsageError
from harness_cli.records.augmentation import AugmentationMap, DrawnStates, Recipe
from harness_cli.records.blind import BlindKey, BlindSheet
from harness_cli.records.calibration import Calibration
from harness_cli.records.canonical import write_atomic
from harness_cli.records.config import ProjectConfig
from harness_cli.records.diagnosis import Diagnosis, Proposal
from harness_cli.records.gates import GatesFile
from harness_cli.records.harness import Hook, McpFile, McpLock, Pipeline, Replies
from harness_cli.records.item import EvalsetHeader
from harness_cli.records.manifest import PREDICATE, Channel, Manifest
from harness_cli.records.noise import Noise
from harness_cli.records.reader import load_yaml, parse_json, parse_yaml, read_text
from harness_cli.records.run import Report, RunConfig
from harness_cli.store.project import FILE

Step = Callable[[str], str]
EVIDENCE = "evidence is read as it was written"
SEALED = "sheet and key seal each other"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file: where it lies, which schema is current, how an older one becomes it."""

    name: str
    home: str
    """The setting that names its folder (`harness`, `evalsets` …); "" is the project itself."""
    patterns: tuple[str, ...]
    record: Any = None
    """What the whole file decodes to; None for a part of something and for lists of ours."""
    current: int = 1
    steps: Mapping[int, Step] = field(default_factory=dict)
    """Schema n → the step from n to n + 1."""
    marked: str = ""
    """A key that a file of this kind has, where the name alone does not tell."""
    kept: str = ""
    """Why files of an older schema are never rewritten; readers know every number in `steps`."""


KINDS = (
    Kind("gates", "", ("gates.yaml",), GatesFile),
    Kind("proposal", "", ("*.yaml", ".harness/*.yaml"), Proposal, marked="edits"),
    Kind("evalset", "evalsets", ("*/evalset.yaml",), EvalsetHeader),
    Kind("augmentation map", "evalsets", ("*/states/*.yaml",), AugmentationMap),
    Kind("augment", "evalsets", ("*/augment.yaml",), Recipe),
    Kind("drawn states", "evalsets", ("*/states.json",), DrawnStates),
    Kind("catalogue", "evalsets", ("catalogue*/*.yaml", "catalogue*/*.yml", "catalogue*/*.json")),
    Kind("scenarios", "evalsets", ("scenarios/**/*.yaml",)),
    Kind("templates", "evalsets", ("*/templates.yaml",)),
    Kind("freeze list", "evalsets", ("frozen.yaml",)),
    Kind("hook", "harness", ("hooks/*.yaml", "judges/*/hooks/*.yaml"), Hook),
    Kind("pipeline", "harness", ("**/prompts/pipeline*.yaml",), Pipeline),
    Kind("replies", "harness", ("**/replies.yaml",), Replies),
    Kind("mcp", "harness", ("**/tools/mcp.yaml",), McpFile),
    Kind("mcp.lock", "harness", ("**/tools/mcp.lock.json",), McpLock),
    Kind("channel", "manifests", ("channels/*.json",), Channel),
    Kind("manifest", "manifests", ("*.json",), Manifest, kept="its digests and approvals bind it"),
    Kind("calibration", "manifests", ("calibration/*.json",), Calibration, kept=EVIDENCE),
    Kind("run", "runs", ("*/run.json",), RunConfig, kept=EVIDENCE),
    Kind("report", "runs", ("*/report.json",), Report, kept=EVIDENCE),
    Kind("blind-sheet", "", ("blind/*/sheet.json",), BlindSheet, kept=SEALED),
    Kind("blind-key", "", (".harness/blind/*.key.json",), BlindKey, kept=SEALED),
    Kind("noise", "runs", ("*/noise.json",), Noise, kept=EVIDENCE),
    Kind("diagnosis", "runs", ("*/diagnosis.json",), Diagnosis, kept=EVIDENCE),
)
"""Every kind but `harness.yaml`, which says where the others lie."""
SETTINGS = Kind("harness", "", (FILE,), ProjectConfig)

State = Literal["current", "old", "kept", "unknown", "unreadable"]


@dataclass(frozen=True, slots=True)
class Found:
    """One file and what is to be done with it."""

    path: str
    """Relative to the project."""
    kind: str
    schema: int | None
    current: int
    state: State
    problem: str = ""
    text: str | None = None
    """What an old file becomes."""


def examine(root: Path, kinds: Iterable[Kind] = KINDS, settings: Kind = SETTINGS) -> list[Found]:
    """Every schema-numbered file of the project in `root`, by path; nothing is written."""
    first = _look(root / FILE, root, settings)
    if first.state in ("unknown", "unreadable"):
        return [first]  # where the others lie is not known
    text = first.text if first.text is not None else read_text(root / FILE, name=FILE)
    config = parse_yaml(text, ProjectConfig, name=FILE)
    found = [first]
    for kind in kinds:
        for path in _places(root, config, kind):
            if not kind.marked or _has(path, kind.marked):
                found.append(_look(path, root, kind))
    return sorted(found, key=lambda f: f.path)


def refuse_unknown(found: Iterable[Found]) -> None:
    """Raises `BadFile` that names every file which this version cannot read."""
    wrong = [f for f in found if f.state in ("unknown", "unreadable")]
    if wrong:
        raise BadFile(
            "; ".join(f.problem for f in wrong),
            hint="a newer harness wrote it, or the number is wrong; nothing was changed",
        )


def move(root: Path, found: Iterable[Found]) -> list[Found]:
    """Write the old files in their new form, each whole or not at all; those that were written."""
    moved = [f for f in found if f.text is not None]
    for file in moved:
        write_atomic(root / file.path, (file.text or "").encode())
    return moved


def on_data(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Step:
    """A step for files a machine writes: JSON in, JSON out."""

    def step(text: str) -> str:
        made = change(json.loads(text))
        return json.dumps(made, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    return step


def _places(root: Path, config: ProjectConfig, kind: Kind) -> Iterator[Path]:
    home = root / getattr(config, kind.home) if kind.home else root
    patterns = (config.gates,) if kind.name == "gates" else kind.patterns
    for pattern in patterns:
        yield from (p for p in sorted(home.glob(pattern)) if p.is_file())


def _has(path: Path, key: str) -> bool:
    try:
        value = load_yaml(read_text(path), name=path.name)
    except BadFile:
        return False
    return isinstance(value, dict) and key in value and path.name != FILE


def _look(path: Path, root: Path, kind: Kind) -> Found:
    name = path.relative_to(root).as_posix()
    try:
        text = read_text(path, name=name)
        number = _number(_value(text, name), name)
        if number == kind.current:
            return Found(name, kind.name, number, kind.current, "current")
        known = all(n in kind.steps for n in range(number, kind.current)) and number >= 0
        if number > kind.current or not known:
            problem = f"{name}: schema {number} is not known, this version reads {kind.current}"
            return Found(name, kind.name, number, kind.current, "unknown", problem)
        if kind.kept:
            return Found(name, kind.name, number, kind.current, "kept", kind.kept)
        for n in range(number, kind.current):
            text = kind.steps[n](text)
        _check(text, name, kind)
    except BadFile as exc:
        return Found(name, kind.name, None, kind.current, "unreadable", str(exc))
    return Found(name, kind.name, number, kind.current, "old", text=text)


def _value(text: str, name: str) -> Any:
    return (
        parse_json(text, Any, name=name) if name.endswith(".json") else load_yaml(text, name=name)
    )


def _number(value: Any, name: str) -> int:
    if not isinstance(value, dict):
        raise BadFile(f"{name}: a mapping is needed")
    predicate = value.get("predicateType")
    if predicate is not None:  # a manifest has its number in the type of its statement
        start, _, number = str(predicate).rpartition("/v")
        if start != PREDICATE.rpartition("/v")[0] or not number.isdigit():
            raise BadFile(f"{name}: `{predicate}` is no manifest of this program")
        return int(number)
    number = value.get("schema", 1)
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadFile(f"{name}: schema `{number}` is no number")
    return number


def _check(text: str, name: str, kind: Kind) -> None:
    """What the steps made must be a file of the current schema."""
    made = _value(text, name)
    if _number(made, name) != kind.current:
        raise UsageError(f"{name}: its steps do not lead to schema {kind.current}")
    if kind.record is not None:
        read = parse_json if name.endswith(".json") else parse_yaml
        read(text, kind.record, name=name)
