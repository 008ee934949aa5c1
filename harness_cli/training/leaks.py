"""The leak check: no item that measures a policy may be in the data that trains it.

What measures: every sealed split and every split but `train` and `dev` of the project's evalsets,
and whatever a job names in `measured_by`. A data set of ours says which items its rows come from;
their requests are compared, so an item under another id is found too. Rows of a file without a card
and of items that the project does not have are searched for the items' own words. Sealed items are
read here and shown to nobody: a finding names the row and the item's id.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from harness_cli.errors import UnknownName, UsageError
from harness_cli.evaluation.evalsets import ITEMS, load_header, names
from harness_cli.evaluation.survey import lines_of
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.request import Request, Room
from harness_cli.records.training import DataCard
from harness_cli.store.project import Project
from harness_cli.training.masking import Tools
from harness_cli.training.measured import OPEN
from harness_cli.training.training_rows import ReadRow, TrainingRows

SHOWN: Final = 5
LEAVE_OUT: Final = "leave these rows out"
LONG_ENOUGH: Final = 12
"""Characters of a request below which finding it says nothing: greetings are alike everywhere."""
WINDOW: Final = 8
TIMED: Final = ("replay",)
"""Splits that measure time alone: a policy that knows their answers is no faster for it."""
_decode = msgspec.json.Decoder(Item).decode
Known = Mapping[str, Sequence[tuple[str, Item]]]
_BLANK = re.compile(r"\s+")


def refuse_leaks(
    project: Project, rows: TrainingRows, tools: Tools, measured_by: Sequence[str] = ()
) -> None:
    """Raise `UsageError` naming rows and items where training data holds what measures."""
    measured = list(_measured(project, measured_by))
    _, tokenizer = tools.open()
    known = _known_items(project, rows.cards)
    # A bare row may bear any id: only rows of data sets are told by their items.
    bare = {id(row) for row in rows.bare}
    told = [row for row in rows.rows if id(row) not in bare and _item_of(row) in known]
    seen = {id(row) for row in told}
    texts = ((r.id, tokenizer.decode(r.input_ids)) for r in rows.rows if id(r) not in seen)
    _refuse([*_in_data_sets(told, known, measured), *_in_texts(texts, measured)])


def refuse_leaking_texts(
    project: Project,
    texts: Iterable[tuple[str, str]],
    measured_by: Sequence[str] = (),
    *,
    hint: str = LEAVE_OUT,
) -> None:
    """The same for texts alone, each with the name it is told by: prompts of a distillation."""
    _refuse(list(_in_texts(texts, _measured(project, measured_by))), hint)


def _refuse(found: Sequence[str], hint: str = LEAVE_OUT) -> None:
    if found:
        more = f"\n… and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise UsageError(
            f"{len(found)} rows hold items that measure this policy:\n"
            + "\n".join(found[:SHOWN])
            + more,
            hint=f"what is trained on measures nothing any more: {hint}",
        )


def words_of(request: Request) -> tuple[str, ...]:
    """The words of a request: its comments, its prompt, what was said before."""
    said = [c.text for c in request.comments]
    said += [str(m.get("content") or "") for m in request.history]
    said += [request.prompt or "", *request.anchor]
    return tuple(normal for text in said if (normal := _normal(text)))


@dataclass(frozen=True, slots=True)
class Measured:
    """An item that measures: what it asks, where, and what it is called."""

    words: tuple[str, ...]
    room: Room
    name: str


def _measured(project: Project, named: Sequence[str]) -> Iterator[Measured]:
    """Every item that measures, but those too short to be told from others.

    Raises `UnknownName` for an evalset or a split in `named` that there is not.
    """
    for reference in named:
        name, _, split = reference.partition(":")
        header = load_header(project, name)
        if split and split not in header.splits:
            raise UnknownName.of(f"split of `{name}`", split, header.splits)
    for name in dict.fromkeys((*names(project), *(n.partition(":")[0] for n in named))):
        header = load_header(project, name)
        path = project.evalsets / name / ITEMS
        if header.items_of is not None or not path.is_file():
            continue  # its items are another evalset's
        wanted = {split for split in header.splits if _measures(header, split, named)}
        for item in _items(project, name):
            split = item.split
            if (split in wanted or (not header.splits and name in named)) and item.request:
                words = words_of(item.request)
                if sum(map(len, words)) >= LONG_ENOUGH:
                    yield Measured(words, item.request.room, f"{name}/{item.id}")


def _measures(header: EvalsetHeader, split: str, named: Sequence[str]) -> bool:
    if header.role == "judge":
        return False
    asked = {header.name, f"{header.name}:{split}"} & {*named}
    return bool(asked) or split in header.seal.splits or split not in (*OPEN, *TIMED)


def _items(project: Project, name: str) -> Iterator[Item]:
    for _, line in lines_of(project.evalsets / name / ITEMS):
        yield _decode(line)


def _known_items(project: Project, cards: Sequence[DataCard]) -> Known:
    """The items that data sets may be made of, by id, each with its evalset."""
    there = {*names(project)}
    found: dict[str, list[tuple[str, Item]]] = {}
    for name in dict.fromkeys(card.evalset for card in cards if card.evalset in there):
        for item in _items(project, name):
            found.setdefault(item.id, []).append((name, item))
    return found


def _item_of(row: ReadRow) -> str:
    return row.id.partition("@")[0]


def _in_data_sets(
    rows: Sequence[ReadRow], known: Known, measured: Sequence[Measured]
) -> Iterator[str]:
    """Rows of our data sets whose item is one that measures, under this or another id.

    The same words in another room are another question: its answer is another.
    """
    measuring = {(m.words, m.room): m.name for m in measured}
    for item in sorted({_item_of(row) for row in rows}):
        for evalset, found in known[item]:
            if name := measuring.get((words_of(found.request), found.request.room)):
                yield f"{evalset}/{item} is {name}"


def _in_texts(texts: Iterable[tuple[str, str]], measured: Iterable[Measured]) -> Iterator[str]:
    """Texts in which all words of an item that measures stand."""
    by_window: dict[str, list[Measured]] = {}
    for one in measured:
        by_window.setdefault(max(one.words, key=len)[:WINDOW], []).append(one)
    for name, given in texts:
        text = _normal(given)
        windows = {text[i : i + WINDOW] for i in range(max(1, len(text) - WINDOW + 1))}
        for one in _candidates(by_window, windows):
            if all(word in text for word in one.words):
                yield f"{name} holds {one.name}"
                break


def _candidates(by_window: dict[str, list[Measured]], windows: Iterable[str]) -> Iterator[Measured]:
    for window in windows:
        yield from by_window.get(window, ())


def _normal(text: str) -> str:
    return _BLANK.sub(" ", text).strip().casefold()
