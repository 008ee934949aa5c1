"""An evalset of one's own: a first item that runs at once, and items dealt out over splits.

Items that ask the same stand in one split, so that a test split holds nothing a person saw in dev.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import ITEMS, load_header
from harness_cli.evaluation.imports.keep_evalset import safe_name, write_folder
from harness_cli.evaluation.sealing import with_block
from harness_cli.evaluation.survey import HEADER, lines_of, survey_items
from harness_cli.records.canonical import canonical_json, write_atomic
from harness_cli.records.item import Assertion, EvalsetHeader, Expect, Item
from harness_cli.records.reader import parse_yaml, read_text
from harness_cli.records.request import Comment, Request, Room
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project

NEAR = 1e-9
"""How far shares may be from a sum of 1."""


def create(project: Project, name: str, *, agent: Literal["harness", "bare"]) -> EvalsetHeader:
    """`evalsets/NAME` with one item to copy: of a bare prompt, or of the catalogue's first room.

    Raises `UsageError` where the name is taken or can be none, `BadFile` without a catalogue.
    """
    folder = project.evalsets / safe_name(name, hint="a name without slashes")
    if folder.exists():
        raise UsageError(
            f"there is an evalset `{name}`", hint=f"another name, or `harness evalset check {name}`"
        )
    header = EvalsetHeader(name=name, agent=agent, splits={"dev": 1})
    if agent == "bare":
        header = msgspec.structs.replace(header, catalogue=None, judge="none", metrics=("passed",))
        request = Request(prompt="Say hello in one word.")
        item = Item(
            id=f"{name}-1",
            category="general",
            request=request,
            assert_=(Assertion(type="word-count", value=1),),
        )
    else:
        catalogue = read_catalogue(project.evalsets / "catalogue")
        room = next(iter(catalogue.rooms), None)
        if room is None:
            raise BadFile("the catalogue has no room", hint="--agent bare needs none")
        shown = Room(id=room.id, products=room.products, current_link=1)
        comment = Comment(viewer="v1", text="Hello everyone!")
        item = Item(
            id=f"{name}-1",
            category="chat",
            request=Request(comments=(comment,), room=shown),
            expect=Expect(answers=("greet",)),
        )
    write_folder(folder, header, [item])
    return header


def deal_out(
    project: Project, name: str, shares: Mapping[str, float], *, seed: int
) -> EvalsetHeader:
    """Give every item of an evalset a split, in these shares within each category.

    By SHA-256 over the seed and what an item asks: the same items and seed give the same splits in
    whatever order they stand. A group of items that ask the same goes where the most room is left.
    Raises `UsageError` where a split is sealed or frozen (runs and manifests bind it), or the set
    has no items of its own.
    """
    if not shares or min(shares.values()) <= 0 or abs(sum(shares.values()) - 1) > NEAR:
        raise UsageError(
            "the shares of the splits must be above 0 and sum to 1",
            hint="--share dev=0.3 --share test=0.7",
        )
    header = load_header(project, name)
    folder = project.evalsets / name
    _refuse_bound(header)
    survey = survey_items(folder / ITEMS, name=f"{name}/{ITEMS}")
    if survey.findings:
        raise BadFile("\n".join(survey.findings))
    plain: list[dict[str, Any]] = [json.loads(text) for _, text in lines_of(folder / ITEMS)]
    for item, split in zip(plain, _dealt(plain, shares, seed), strict=True):
        item["split"] = split
    counts = Counter(item["split"] for item in plain)
    splits = {split: counts[split] for split in shares}
    empty = [split for split, n in splits.items() if not n]
    if empty:
        raise UsageError(
            f"no item would be in {', '.join(f'`{s}`' for s in empty)}: there are {len(plain)}",
            hint="fewer splits, larger shares, or more items",
        )
    text = with_block(read_text(folder / HEADER), "splits", splits)
    made = parse_yaml(text, EvalsetHeader, name=f"{name}/{HEADER}")
    if made != msgspec.structs.replace(header, splits=splits):
        raise BadFile(
            f"{name}/{HEADER}: its `splits` cannot be rewritten in place",
            hint="write them as a block: `splits:` and a line each",
        )
    lines = (json.dumps(item, ensure_ascii=False).encode() + b"\n" for item in plain)
    write_atomic(folder / ITEMS, b"".join(lines))
    write_atomic(folder / HEADER, text.encode())
    return made


def _refuse_bound(header: EvalsetHeader) -> None:
    if header.items_of is not None:
        raise UsageError(
            f"`{header.name}` has no items of its own: they are those of `{header.items_of}`",
            hint=f"harness evalset split {header.items_of} …",
        )
    bound = sorted({*header.seal.splits, *header.digests})
    if bound:
        raise UsageError(
            f"the splits of `{header.name}` are frozen: {', '.join(bound)}",
            hint="its runs and manifests bind them; deal out a copy under another name",
        )


def _dealt(items: list[dict[str, Any]], shares: Mapping[str, float], seed: int) -> list[str]:
    """The split of each item."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        groups[_asked(item)].append(place)
    lots: dict[str, list[tuple[str, list[int]]]] = defaultdict(list)
    for asked, places in groups.items():
        lot = hashlib.sha256(f"{seed}\0{asked}".encode()).hexdigest()
        lots[min(items[p].get("category", "") for p in places)].append((lot, places))
    split_of = [""] * len(items)
    for _, members in sorted(lots.items()):
        total = sum(len(places) for _, places in members)
        held = Counter[str]()
        for _, places in sorted(members):
            split = max(shares, key=lambda s: shares[s] * total - held[s])
            held[split] += len(places)
            for place in places:
                split_of[place] = split
    return split_of


def _asked(item: dict[str, Any]) -> str:
    """What an item asks, whoever asks it: its prompt, else its comments' words and its history."""
    request = item["request"]
    words = [" ".join(c.get("text", "").lower().split()) for c in request.get("comments", ())]
    asked = [request.get("prompt"), words, request.get("history", []), request.get("anchor", [])]
    return canonical_json(asked).decode()
