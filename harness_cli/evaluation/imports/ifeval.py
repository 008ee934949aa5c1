"""IFEval's prompts as an evalset: the official file as it is, every instruction an assertion.

The prompts are not part of this repository. `harness evalset import ifeval WHERE` takes them from
a file, a folder, or an installed package that holds `input_data.jsonl`.
"""

import random
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile, JudgeError, UsageError
from harness_cli.evaluation.imports.imported import Imported, ImportOptions
from harness_cli.evaluation.imports.source import Source
from harness_cli.judges.ifeval.assertion import LOOSELY, instruction_of
from harness_cli.records.canonical import digest
from harness_cli.records.item import Assertion, EvalsetHeader, Item
from harness_cli.records.reader import parse_json, read_text
from harness_cli.records.request import Request

NAME = "ifeval"
FILE = "input_data.jsonl"
METRICS = ("prompt_strict", "instruction_strict", "prompt_loose", "instruction_loose")
OFFICIAL = "abe90cfb247d9a2d3511ac0c4a35f98bd6d37d968d0b77fe7ebc283072489748"
"""Digest of the 541 official prompts with their instructions, whatever file they came from."""
LETTER = "keywords:letter_frequency"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the official file."""

    key: int
    prompt: str
    instruction_id_list: tuple[str, ...]
    kwargs: tuple[dict[str, Any], ...]


def find_prompts(where: str | Path) -> Path:
    """The prompt file that a file, folder or installed package names.

    Raises `UsageError` when there is none; nothing is imported to find a package's folder.
    """
    path = Path(where)
    if path.is_file():
        return path
    folders = [path] if path.is_dir() else _package(path.name)
    found = sorted(f for folder in folders for f in folder.rglob(FILE))
    if found:
        return found[0]
    raise UsageError(
        f"no `{FILE}` in `{where}`",
        hint=f"name the file, its folder, or an installed package that holds {FILE} "
        "(google-research: instruction_following_eval/data)",
    )


def read_ifeval(where: str | Path, options: ImportOptions | None = None) -> Imported:
    """The evalset of a prompt file. Raises `BadFile` with the line of what is wrong."""
    path = find_prompts(where)
    rows = list(_rows(path))
    official = digest([msgspec.to_builtins(row) for row in rows]) == OFFICIAL
    what = "the 541 official prompts" if official else "NOT the official prompts"
    name = (options.name if options else None) or NAME
    header = EvalsetHeader(
        name=name,
        licence="Apache-2.0",
        provenance=f"IFEval (Zhou et al. 2023, arXiv:2311.07911): {what}, from {path.name}",
        agent="bare",
        metrics=METRICS,
        judge="none",
        catalogue=None,
        notes="prompt_* and instruction_* are prompt- and instruction-level accuracy.",
    )
    note = f"{len(rows)} prompts: {what}"
    return Imported(kind=NAME, header=header, items=tuple(_items(path.name, rows)), notes=(note,))


def read(source: Source, options: ImportOptions) -> Imported:
    """The reader of the kind `ifeval`."""
    return read_ifeval(source.path, options)


def _package(name: str) -> list[Path]:
    if not name.isidentifier():
        return []
    spec = PathFinder.find_spec(name)
    return [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []


def _rows(path: Path) -> Iterator[Row]:
    seen: set[int] = set()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        row = parse_json(line, Row, name=where)
        if row.key in seen:
            raise BadFile(f"{where}: the key `{row.key}` stands twice")
        if not row.instruction_id_list or len(row.instruction_id_list) != len(row.kwargs):
            raise BadFile(
                f"{where}: {len(row.instruction_id_list)} instructions, {len(row.kwargs)} kwargs",
                hint="one object of arguments an instruction",
            )
        seen.add(row.key)
        yield row
    if not seen:
        raise BadFile(f"{path.name}: there are no prompts")


def _items(name: str, rows: Iterable[Row]) -> Iterator[Item]:
    rows = list(rows)
    letters = _drawn_letters(rows)
    for row in rows:
        values = []
        for instruction, arguments in zip(row.instruction_id_list, row.kwargs, strict=True):
            given = {k: v for k, v in arguments.items() if v is not None}
            if instruction == LETTER and not _is_letter(given.get("letter")):
                given.update(next(letters))
            values.append({"instruction": instruction, **given})
        try:
            for value in values:
                instruction_of(value)
        except JudgeError as exc:
            raise BadFile(f"{name}: key {row.key}: {exc}") from exc
        groups = Counter(i.partition(":")[0] for i in row.instruction_id_list)
        yield Item(
            id=f"{NAME}-{row.key}",
            split="test",
            category=groups.most_common(1)[0][0],
            request=Request(prompt=row.prompt),
            assert_=tuple(Assertion(type=NAME, value=value) for value in values),
            tags=row.instruction_id_list,
        )


def _drawn_letters(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """What the official evaluator, seeded with 0, puts in the place of `letter`s that are none.

    It draws one at random each time an instruction is built: for all prompts in order in the
    strict pass, then again in the loose pass. Two of the official prompts (`#`, `!`) are concerned;
    without a seed their official result is a matter of chance.
    """
    odd = sum(
        instruction == LETTER and not _is_letter(arguments.get("letter"))
        for row in rows
        for instruction, arguments in zip(row.instruction_id_list, row.kwargs, strict=True)
    )
    draw = random.Random(0)
    strict, loose = ([draw.choice(string.ascii_letters) for _ in range(odd)] for _ in range(2))
    for letter, again in zip(strict, loose, strict=True):
        yield {"letter": letter, LOOSELY: {"letter": again}}


def _is_letter(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value in string.ascii_letters
