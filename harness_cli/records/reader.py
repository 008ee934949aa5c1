"""Files into records: one decoder for YAML and JSON whose errors carry file and line.

With `yaml_forms`, its forms of PyYAML's safe C loader and dumper, the only one that imports it.
"""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from harness_cli.errors import BadFile
from harness_cli.records.aliases import refuse_many
from harness_cli.records.decode_fixes import STEP, UNKNOWN, hint_for
from harness_cli.records.yaml_forms import FastPlain, Loader, Plain, Strings

T = TypeVar("T")
_PATH = re.compile(r" - at `(?P<path>[^`]*)`$")
_KEY = re.compile(r"(?P<said>'(?P<key>[^']*)') - at `key` in `(?P<path>[^`]*)`$")
"""How msgspec says that a key is not one of the known ones."""


def decode(kind: type[T], value: Any, *, where: str = "value") -> T:
    """Plain data into a record.

    Raises `BadFile` with the path of the wrong field and, for an unknown key, the nearest one.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        message, path = _split(str(exc))
        raise BadFile(f"{where}: {message}{_at(path)}", hint=hint_for(message, kind, path)) from exc


def read_yaml(path: Path, kind: type[T], *, name: str | None = None) -> T:
    """A YAML file a person edits, into a record. `name` is how errors call the file."""
    return parse_yaml(read_text(path, name=name), kind, name=name or str(path))


def parse_yaml(text: str, kind: type[T], *, name: str) -> T:
    """YAML text into a record; errors carry `name:line:column`."""
    value = load_yaml(text, name=name)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        message, path = _split(str(exc))
        unknown = UNKNOWN.search(message)
        line = line_of(text, path + (f".{unknown['name']}" if unknown else ""))
        raise BadFile(
            f"{name}:{line}: {message}{_at(path)}", hint=hint_for(message, kind, path)
        ) from exc


def load_yaml(text: str, *, name: str) -> Any:
    """YAML text into plain data; one document, safe tags only, no duplicate keys."""
    return _load(text, Loader, name)


def load_strings(text: str, *, name: str) -> Any:
    """YAML text with every scalar as text, for formats that know no other type."""
    return _load(text, Strings, name)


def _load(text: str, loader: Any, name: str) -> Any:
    try:
        value = yaml.load(text, Loader=loader)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        problem = getattr(exc, "problem", None) or str(exc).splitlines()[0]
        raise BadFile(
            f"{name}:{line}: {problem}", hint=_yaml_hint(text, str(problem), mark)
        ) from exc
    except (ValueError, KeyError) as exc:  # `!!int x`, `!!bool x`, a number of 5,000 digits
        problem = f"{name}: a value is not what its tag or its form says: {exc}"
        raise BadFile(problem, hint="put text in quotes") from exc
    if "*" in text:
        refuse_many(value, name=name)
    return value


def _yaml_hint(text: str, problem: str, mark: Any) -> str | None:
    """The fix for the mistakes that people make most."""
    if problem.endswith("2002:merge'"):
        return "merge keys (`<<`) are not read: write the keys out"
    if "mapping values are not allowed" in problem:
        return "a value that holds `: ` must stand in quotes"
    shown = text.splitlines()[mark.line : mark.line + 1] if mark else []
    if shown and "\t" in shown[0][: mark.column + 1]:
        return "indent with blanks, not with tabs"
    return None


def dump_yaml(value: Any, *, fast: bool = False) -> str:
    """Plain data or a record as YAML for a person to edit: key order kept, no aliases.

    `fast` takes libyaml's emitter, ten times as quick: the same text, but for characters beyond
    U+FFFF (most emoji), which it escapes.
    """
    return str(
        yaml.dump(
            msgspec.to_builtins(value),
            Dumper=FastPlain if fast else Plain,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            width=100,
        )
    )


def read_json(path: Path, kind: type[T], *, name: str | None = None) -> T:
    """A JSON file a machine wrote, into a record."""
    name = name or str(path)
    return parse_json(read_text(path, name=name), kind, name=name)


def parse_json(text: str | bytes, kind: type[T], *, name: str) -> T:
    """JSON text into a record; errors carry `name` and the path of the wrong field."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as exc:
        message, path = _split(str(exc))
        raise BadFile(f"{name}: {message}{_at(path)}", hint=hint_for(message, kind, path)) from exc
    except msgspec.DecodeError as exc:
        raise BadFile(f"{name}: {exc}", hint="the file is cut short or no JSON") from exc
    except RecursionError as exc:
        raise BadFile(f"{name}: nested too deeply", hint="no such file is written here") from exc


def read_text(path: Path, *, name: str | None = None) -> str:
    """A file's text, by its byte-order mark UTF-8 or UTF-16, with `\\n` line ends."""
    name = name or str(path)
    try:
        return text_of(path.read_bytes(), name=name)
    except FileNotFoundError:
        raise BadFile(f"no file `{name}`") from None
    except IsADirectoryError:
        raise BadFile(f"`{name}` is a folder, not a file") from None
    except OSError as exc:
        raise BadFile(f"`{name}` cannot be read: {exc.strerror}") from exc


def text_of(data: bytes, *, name: str) -> str:
    """Bytes as text: BOM-marked UTF-8 or UTF-16, else UTF-8; CRLF becomes LF."""
    try:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            text = data.decode("utf-16")
        else:
            text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise BadFile(
            f"{name}: byte {exc.start} is not UTF-8", hint="save the file as UTF-8"
        ) from exc
    return text.replace("\r\n", "\n").replace("\r", "\n")


def line_of(text: str, path: str) -> int:
    """The line of the YAML node at a msgspec path (`$.a.b[0]`), or of its nearest parent."""
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return 1
    line = node.start_mark.line + 1 if node else 1
    for step in STEP.finditer(path.removeprefix("$")):
        found = _child(node, step)
        if found is None:
            break
        line, node = found
    return line


def _child(node: Any, step: re.Match[str]) -> tuple[int, Any] | None:
    if isinstance(node, yaml.MappingNode) and step["key"] is not None:
        for key, value in node.value:
            if key.value == step["key"]:
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.MappingNode) and step["index"] == "..." and len(node.value) == 1:
        key, value = node.value[0]
        return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and (step["index"] or "").isdigit():
        index = int(step["index"])
        if index < len(node.value):
            return node.value[index].start_mark.line + 1, node.value[index]
    return None


def _split(message: str) -> tuple[str, str]:
    key = _KEY.search(message)
    if key:
        return message[: key.end("said")], f"{key['path']}.{key['key']}"
    found = _PATH.search(message)
    return (message[: found.start()], found["path"]) if found else (message, "$")


def _at(path: str) -> str:
    return "" if path == "$" else f" at `{path.removeprefix('$.')}`"


def yaml_tree(text: str, *, name: str) -> Any:
    """The node tree of one YAML document: nodes with `id`, `value` and character-exact marks.

    For edits that keep every byte around them; values come from `load_yaml`.
    """
    try:
        return yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise BadFile(f"{name}:{line}: {getattr(exc, 'problem', None) or exc}") from exc
