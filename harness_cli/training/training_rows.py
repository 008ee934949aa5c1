"""Rows of tokens that a supervised job trains on, read and checked before a weight is loaded.

A data set of `harness export sft` brings its own rows of tokens, if they were made with the job's
template and tokenizer; else its messages are masked here. Whatever would train on nothing, on other
tokens than a rollout samples, or not at all without a word is refused with its place: an all-zero
mask, labels that are not their tokens, a row over the limit, ids beyond the vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.records.canonical import digest, file_sha256
from harness_cli.records.reader import parse_json, read_json
from harness_cli.records.training import DataCard, SftRow, StudentName
from harness_cli.training.data_set import MANIFEST
from harness_cli.training.masking import Order, Tools, mask_all
from harness_cli.training.students import Lesson
from harness_cli.training.tokens import IGNORED

TOKENS: Final = ".tokens.jsonl"
SHOWN: Final = 5


class ReadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of tokens as any tool may have written it; other columns are left alone."""

    input_ids: tuple[int, ...]
    labels: tuple[int, ...]
    id: str = ""


@dataclass(slots=True)
class TrainingRows:
    """What a job trains on."""

    rows: list[ReadRow] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """File → SHA-256."""
    cards: list[DataCard] = field(default_factory=list)
    bare: list[ReadRow] = field(default_factory=list)
    """Rows of files without a card: nothing but their text says where they come from."""

    @property
    def digest(self) -> str:
        """Of all files and of the rows in their order."""
        return digest(self.files)

    @property
    def tokens(self) -> int:
        """Of all rows."""
        return sum(len(row.input_ids) for row in self.rows)

    @property
    def trained(self) -> int:
        """Tokens with loss."""
        return sum(label != IGNORED for row in self.rows for label in row.labels)

    @property
    def longest(self) -> int:
        """Tokens of the longest row."""
        return max(len(row.input_ids) for row in self.rows)


def read_rows(
    root: Path,
    data: Sequence[str],
    students: Sequence[StudentName],
    tools: Tools,
    *,
    max_tokens: int,
    vocabulary: int,
) -> TrainingRows:
    """The rows of a job's data, in order. Raises `BadFile` and `UsageError` with their place."""
    found = TrainingRows()
    for name in data:
        place = root / name
        if place.is_dir():
            _data_set(found, place, name, students, tools)
        elif place.is_file():
            rows = list(_token_rows(place, name))
            found.files[name] = file_sha256(place)
            found.rows += rows
            found.bare += rows
        else:
            raise BadFile(f"there is no training data `{name}`", hint="harness export sft -o DIR")
    if not found.rows:
        raise BadFile("the training data holds no rows", hint="harness export sft -o DIR")
    _refuse_wrong(found.rows, max_tokens, vocabulary)
    return found


def _data_set(
    found: TrainingRows, folder: Path, name: str, students: Sequence[StudentName], tools: Tools
) -> None:
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise BadFile(f"`{name}` is no data set: it has no {MANIFEST}", hint="harness export sft")
    card = read_json(manifest, DataCard, name=f"{name}/{MANIFEST}")
    if card.kind != "sft":
        raise UsageError(f"`{name}` is {card.kind} data: a supervised job trains on `sft` data")
    found.cards.append(card)
    for student in students:
        made = f"{student}{TOKENS}"
        fresh = made in card.files and _same_tools(card, tools)
        file = made if fresh else f"{student}.jsonl"
        if file not in card.files:
            raise UsageError(f"`{name}` has no rows for the student `{student}`")
        if file_sha256(folder / file) != card.files[file].sha256:
            raise BadFile(f"`{name}/{file}` is not the file its card names: it was changed")
        found.files[f"{name}/{file}"] = card.files[file].sha256
        read = _token_rows if fresh else _masked_rows(tools)
        found.rows += read(folder / file, f"{name}/{file}")


def _same_tools(card: DataCard, tools: Tools) -> bool:
    """Whether rows were made with this template and this tokenizer: other tokens teach others."""
    template, tokenizer = tools.open()
    return (card.template_sha256, card.tokenizer_sha256) == (template.sha256, tokenizer.sha256)


def _token_rows(path: Path, name: str) -> Iterator[ReadRow]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                row = parse_json(line, ReadRow, name=f"{name}:{number}")
                yield msgspec.structs.replace(row, id=row.id or f"{name}:{number}")


def _masked_rows(tools: Tools) -> Callable[[Path, str], Iterable[ReadRow]]:
    """A reader of messages that masks them under this template."""

    def read(path: Path, name: str) -> list[ReadRow]:
        rows = [
            parse_json(line, SftRow, name=f"{name}:{number}")
            for number, line in enumerate(path.read_bytes().splitlines(), 1)
            if line.strip()
        ]
        kept = [row.id for row in rows if row.provenance.retries == "kept"]
        if kept:
            raise UsageError(
                f"`{name}`: `{kept[0]}` and {len(kept) - 1} more hold outputs that hooks refused, "
                "and messages do not say which",
                hint="export with --template and --tokenizer of the base: rows of tokens do",
            )
        orders = [_order(row) for row in rows]
        made = list(mask_all(tools, orders))
        wrong = [f"{r.id}: {m}" for r, m in zip(rows, made, strict=True) if isinstance(m, str)]
        if wrong:
            raise BadFile(
                f"`{name}`: {len(wrong)} of {len(rows)} rows have no reliable mask\n"
                + "\n".join(wrong[:SHOWN]),
                hint="name a training template (`template: trl:…`), see docs/training_data.md",
            )
        return [
            ReadRow(id=r.id, input_ids=tuple(m.row.input_ids), labels=tuple(m.row.labels()))
            for r, m in zip(rows, made, strict=True)
            if not isinstance(m, str)
        ]

    return read


def _order(row: SftRow) -> Order:
    messages = row.messages or (*row.prompt, *row.completion)
    spoken = [i for i, m in enumerate(messages) if m.get("role") == "assistant"]
    trained = spoken if row.messages else spoken[-1:]
    tools = msgspec.json.decode(row.tools) if row.tools else None
    return Order(Lesson(row.student, messages, tuple(trained)), tools)


def _refuse_wrong(rows: Sequence[ReadRow], max_tokens: int, vocabulary: int) -> None:
    wrong: list[str] = []
    long: list[tuple[int, str]] = []
    for row in rows:
        if why := _wrong(row, vocabulary):
            wrong.append(f"{row.id}: {why}")
        elif len(row.input_ids) > max_tokens:
            long.append((len(row.input_ids), row.id))
    if wrong:
        more = f"\n… and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise BadFile("\n".join(wrong[:SHOWN]) + more, hint="harness export sft makes sound rows")
    if long:
        longest, name = max(long)
        raise UsageError(
            f"{len(long)} rows are longer than {max_tokens} tokens; `{name}` has {longest}",
            hint=f"max_tokens: {longest}, or leave them out of the data: a trainer would drop or "
            "cut them without a word",
        )


def _wrong(row: ReadRow, vocabulary: int) -> str | None:
    if len(row.labels) != len(row.input_ids):
        return f"{len(row.input_ids)} tokens and {len(row.labels)} labels"
    if all(label == IGNORED for label in row.labels):
        return "no token has loss: the mask is all zero"
    if all(label == IGNORED for label in row.labels[1:]):
        return "no token has loss: nothing predicts the first one, which alone is in the mask"
    pairs = zip(row.input_ids, row.labels, strict=True)
    if any(label not in (IGNORED, token) for token, label in pairs):
        return "a label is another token than the one at its place"
    if min(row.input_ids) < 0 or max(row.input_ids) >= vocabulary:
        return f"a token is beyond the vocabulary of {vocabulary}: another tokenizer's row"
    return None
