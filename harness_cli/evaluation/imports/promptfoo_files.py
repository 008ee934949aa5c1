"""Files that a promptfoo configuration names: those in its own folder, read as data."""

import csv
import io
from pathlib import Path
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.source import opened
from harness_cli.records.reader import load_yaml, parse_json

MOST = 16 << 20
MARK = "file://"
CODE = (".js", ".cjs", ".mjs", ".ts", ".py", ".rb", ".sh", ".go", ".j2")
"""Endings of files that promptfoo would run."""
FIELD = 1 << 20


class Folder:
    """The folder of a configuration; no path leads out of it."""

    def __init__(self, path: Path) -> None:
        self._root = path.resolve()

    def read(self, address: str, *, where: str) -> Any:
        """The value of a file: YAML, JSON, JSONL, rows of a CSV, or text.

        Raises `BadFile` for a path out of the folder, for code, and for what cannot be read.
        """
        path = self.path(address, where=where)
        if path.suffix in CODE:
            raise Code(f"{where}: `{address}` is code, which is not run")
        with opened(path) as source:
            text = source.text(most=MOST)
        name = path.name
        if path.suffix in (".yaml", ".yml"):
            return load_yaml(text, name=name)
        if path.suffix == ".json":
            value: Any = parse_json(text, Any, name=name)
            return value
        if path.suffix == ".jsonl":
            lines = enumerate(text.split("\n"), 1)
            return [parse_json(x, Any, name=f"{name}:{n}") for n, x in lines if x.strip()]
        return rows_of(text, name=name) if path.suffix == ".csv" else text

    def text(self, address: str, *, where: str) -> str:
        """The text of a file, whatever it holds; code is refused."""
        path = self.path(address, where=where)
        if path.suffix in CODE:
            raise Code(f"{where}: `{address}` is code, which is not run")
        with opened(path) as source:
            return source.text(most=MOST)

    def path(self, address: str, *, where: str) -> Path:
        """The file of an address. Raises `BadFile` when it lies elsewhere, also by a link."""
        relative = address.removeprefix(MARK).split("#")[0]
        if "\0" in relative:
            raise BadFile(f"{where}: a path with NUL")
        # `file://prompts.py:function` names a function of a file of code.
        stem, _, function = relative.partition(":")
        path = (self._root / (stem if function else relative)).resolve()
        if not path.is_relative_to(self._root):
            raise BadFile(
                f"{where}: `{address}` leads out of the folder of the file",
                hint="copy what is needed beside it",
            )
        return path

    def glob(self, address: str, *, where: str) -> list[str]:
        """The addresses that a pattern stands for; itself when it is none."""
        relative = address.removeprefix(MARK)
        if not any(c in relative for c in "*?["):
            return [address]
        if relative.startswith("/") or ".." in Path(relative).parts:
            raise BadFile(f"{where}: `{address}` leads out of the folder of the file")
        found = sorted(p.relative_to(self._root) for p in self._root.glob(relative) if p.is_file())
        if not found:
            raise BadFile(f"{where}: no file fits `{address}`")
        return [MARK + str(p) for p in found]


class Code(BadFile):
    """What would have to be run."""


def rows_of(text: str, *, name: str) -> list[dict[str, str]]:
    """The rows of a CSV by its first row. Raises `BadFile` with the line of what is wrong."""
    csv.field_size_limit(FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[dict[str, str]] = []
    columns: list[str] = []
    try:
        for cells in reader:
            where = f"{name}:{reader.line_num}"
            if not columns:
                columns = [c.strip() for c in cells]
                twice = sorted({c for c in columns if columns.count(c) > 1})
                if twice or not all(columns):
                    raise BadFile(f"{where}: every column needs a name of its own")
            elif len(cells) > len(columns):
                raise BadFile(
                    f"{where}: {len(cells)} cells in a row of {len(columns)} columns",
                    hint="put cells that hold a comma in quotes",
                )
            elif any(c.strip() for c in cells):
                rows.append(dict(zip(columns, cells, strict=False)))
    except csv.Error as exc:
        raise BadFile(f"{name}:{reader.line_num}: {exc}", hint="is a quote never closed?") from exc
    if not columns:
        raise BadFile(f"{name}: there is no first row with the names of the columns")
    return rows
