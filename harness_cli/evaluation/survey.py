"""One pass over `items.jsonl`: is every line an item, how many of each split, what digests.

The digest of a split is SHA-256 over the canonical JSON of the list of its items as the file has
them, so that a new field of a record with a default changes no frozen digest.
"""

import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile, Stale
from harness_cli.records.canonical import canonical_json
from harness_cli.records.counting import counted
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import parse_json
from harness_cli.simulator.robustness.consistency import unknown_in_rubrics, unknown_tools

HEADER = "evalset.yaml"
VOLATILE = ("digests", "notes", "seal")
"""Header fields outside the evalset's digest: they speak about the items, not of what they ask."""

LATER = ("role", "items_of", "filtered_by", "states")
"""Fields added since the first evalsets were bound: left out where unset, so digests stay."""

State = tuple[int, int]

_INEXACT = re.compile(rb"\d\.0(?!\d)|\d[eE][-+\d]")
_sorted = msgspec.json.Encoder(order="sorted").encode
_item = msgspec.json.Decoder(Item).decode


@dataclass(slots=True)
class Survey:
    """One pass over `items.jsonl`: counts, digests and findings."""

    name: str
    state: State
    """Of the file, before its first line was read."""
    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    digests: dict[str, str] = field(default_factory=dict)
    """Split → SHA-256 of the canonical JSON of its items; `""` → of all items."""
    findings: list[str] = field(default_factory=list)

    def against(self, header: EvalsetHeader) -> list[str]:
        """What the header states and the items do not hold."""
        wrong = [
            f"{self.name}: split `{split}` has {counted(self.counts[split], 'item')}, "
            f"{HEADER} says {n}"
            for split, n in header.splits.items()
            if self.counts[split] != n
        ]
        wrong += [
            f"{self.name}: split `{split}` has changed: its digest is {self.digests.get(split)}, "
            f"{HEADER} froze {frozen}"
            for split, frozen in header.digests.items()
            if self.digests.get(split) != frozen
        ]
        if header.splits:
            unknown = sorted(set(self.counts) - set(header.splits))
            wrong += [f"{self.name}: split `{s}` is not in {HEADER}" for s in unknown]
        return wrong

    def digest(self, header: EvalsetHeader, split: str | None) -> str:
        """SHA-256 that binds the header, without volatile fields, and one split's items."""
        stated = stated_of(header)
        stated["splits"] = [split]
        bound = {"header": stated, "items": self.digests.get(split or "", _EMPTY)}
        return hashlib.sha256(canonical_json(bound)).hexdigest()


def stated_of(header: EvalsetHeader) -> dict[str, Any]:
    """What a header says of its evalset: without volatile fields, and without later ones unset."""
    plain: dict[str, Any] = msgspec.to_builtins(header)
    unset = msgspec.to_builtins(EvalsetHeader(name=""))
    later = {k for k in LATER if plain[k] == unset[k]}
    return {k: v for k, v in plain.items() if k not in VOLATILE and k not in later}


_EMPTY = hashlib.sha256(b"[]").hexdigest()


def survey_items(path: Path, *, name: str, tools: frozenset[str] | None = None) -> Survey:
    """Read every line once: is it an item, is its id its own, what are the digests.

    `tools` are those of the harness: a rubric that names another one is a finding, since nothing
    could decide it; of an item that brings tools of its own, whatever names one that neither has.
    """
    if not path.is_file():
        raise BadFile(f"no file `{name}`", hint="an evalset is evalset.yaml and items.jsonl")
    survey = Survey(name, state_of(path))
    sums = _Sums()
    seen: set[str] = set()
    canonical = CanonicalLines()
    for number, line in lines_of(path):
        item = _checked(line, f"{name}:{number}", survey.findings)
        if item is None:
            continue
        if item.id in seen:
            survey.findings.append(f"{name}:{number}: the id `{item.id}` stands twice")
        seen.add(item.id)
        if tools is not None and (item.overlay.tools or item.assert_):
            looked = unknown_tools if item.overlay.tools else unknown_in_rubrics
            survey.findings += [f"{name}:{number}: {w}" for w in looked(item, tools)]
        survey.total += 1
        survey.counts[item.split] += 1
        sums.add(item.split, canonical.of(line))
    survey.digests = sums.digests()
    if survey.total == 0 and not survey.findings:
        survey.findings.append(f"{name}: there are no items")
    return survey


class CanonicalLines:
    """The canonical JSON of JSON texts: `canonical_json(json.loads(line))`, but fast.

    msgspec's sorted form is the same but for floats that are whole or written with an exponent;
    where one may stand, which few texts have to be searched for, the slow form decides.
    """

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(float_hook=self._float).decode
        self._floats = False

    def of(self, line: bytes) -> bytes:
        """The canonical form of one text."""
        self._floats = False
        value = self._decode(line)
        data = _sorted(value)
        return canonical_json(value) if self._floats and _INEXACT.search(data) else data

    def _float(self, text: str) -> float:
        self._floats = True
        value = float(text)
        if math.isinf(value):
            raise BadFile(f"the number {text} is too large", hint="a double holds up to 1.8e308")
        return value


def lines_of(path: Path, *, since: State | None = None) -> Iterator[tuple[int, bytes]]:
    """Line number and text of every line that is not blank; a BOM at the start is no text.

    Raises `Stale` when the file is, or while it is read comes to be, another than it was `since`.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if since is not None and state_of(file.fileno()) != since:
                raise Stale(
                    f"`{path.parent.name}/{path.name}` changed while it was being evaluated",
                    hint="bring it back to what it was and resume, or start a new run",
                )
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not text.isspace():
                yield number, text


def state_of(file: int | Path) -> State:
    """Size and time of the last change."""
    stat = os.stat(file)  # noqa: PTH116  of a descriptor as well
    return stat.st_size, stat.st_mtime_ns


class _Sums:
    """SHA-256 over the list of the items of each split, and of all items.

    What all items have is summed by itself from the second split on: until then it is the same.
    """

    def __init__(self) -> None:
        self._splits: dict[str, Any] = {}
        self._all: Any = None

    def add(self, split: str, data: bytes) -> None:
        """The canonical JSON of one more item."""
        total = self._splits.get(split)
        if total is None:
            if len(self._splits) == 1:
                self._all = next(iter(self._splits.values())).copy()
            total = self._splits[split] = hashlib.sha256(b"[")
        else:
            total.update(b",")
        total.update(data)
        if self._all is not None:
            self._all.update(b",")
            self._all.update(data)

    def digests(self) -> dict[str, str]:
        """Split → digest; `""` → that of all items."""
        totals = dict(self._splits)
        if totals:
            totals[""] = self._all or next(iter(totals.values()))
        return {split: _ended(total) for split, total in totals.items()}


def _ended(total: Any) -> str:
    whole = total.copy()
    whole.update(b"]")
    return str(whole.hexdigest())


def _told(line: bytes, where: str, findings: list[str]) -> Item | None:
    """Decode a line that is no item once more, for the words of what is wrong with it."""
    try:
        return parse_json(line, Item, name=where)
    except BadFile as exc:
        findings.append(f"{exc}" + (f" ({exc.hint})" if exc.hint else ""))
        return None


def _checked(line: bytes, where: str, findings: list[str]) -> Item | None:
    try:
        item = _item(line)
    except (msgspec.DecodeError, RecursionError):
        return _told(line, where, findings)
    if not item.id or item.id != item.id.strip():
        findings.append(f"{where}: an id must be text without blanks around it")
    return item
