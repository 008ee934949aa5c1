"""`python -m harness_cli.simulator.calibration`: write the calibration set of judges anew.

Each of the dev items of live_stream_qa gets its correct reply, made by the scripted oracle from
tool results, and one corruption of it. The same seed, items, templates and catalogue give the same
bytes.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.calibration import CORRUPTIONS, CandidateLine, CandidateReply
from harness_cli.records.canonical import canonical_json, digest, write_atomic
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import dump_yaml
from harness_cli.simulator.corruptions import KINDS, Corrupted, Draft
from harness_cli.simulator.oracle import Oracle, language, read_templates
from harness_cli.simulator.scenarios.draws import generator, pick
from harness_cli.simulator.scenarios.library import read_library
from harness_cli.store.catalogue import read_catalogue

SEED = 20261120
NAME, ITEMS_OF, SPLIT = "judge_calibration", "live_stream_qa", "dev"
SCARCE = ("partial", "missed_comment")
"""Kinds that few items admit: every one of those gets it."""
NOTES = (
    "For judges only, never a policy test set: replies to the dev items of live_stream_qa, by "
    "their ids. Labels are BY CONSTRUCTION: a correct reply of the scripted oracle from tool "
    "results, and one controlled corruption of it. No person labelled them."
)
Chosen = Mapping[str, tuple[str, Corrupted]]


async def make_lines(oracle: Oracle, items: Sequence[Item], seed: int) -> list[CandidateLine]:
    """A line for every item: the correct reply, and its corruption where one fits."""
    drafts, calls = {}, {}
    for item in items:
        calls[item.id] = await oracle.calls(item)
        draw = generator(NAME, seed, item.id)
        units = oracle.units(item, calls[item.id])
        sentences = [oracle.say(item, unit, draw) for unit in units]
        opener = pick(draw, oracle.templates.openers.of(language(item)))
        drafts[item.id] = Draft(oracle, item, units, sentences, opener)
        if draft_fault(drafts[item.id]):
            raise BadFile(f"item `{item.id}`: {draft_fault(drafts[item.id])}")
    chosen = choose(drafts, seed)
    return [_line(item, drafts[item.id], calls[item.id], chosen.get(item.id)) for item in items]


def draft_fault(draft: Draft) -> str | None:
    """Why a draft is no correct reply: something asked for goes unsaid."""
    for unit, said in zip(draft.units, draft.sentences, strict=True):
        if not said and unit.answer != "silent":
            return f"nothing answers `{unit.answer}`"
    return None


def choose(drafts: Mapping[str, Draft], seed: int) -> Chosen:
    """One corruption for each item: scarce kinds wherever they fit, the others in equal numbers."""
    fitting: dict[str, dict[str, Corrupted]] = {}
    for name, draft in drafts.items():
        made = {k: make(draft, generator(NAME, seed, name, k)) for k, make in KINDS.items()}
        fitting[name] = {k: c for k, c in made.items() if c is not None}
    order = sorted(drafts)
    generator(NAME, seed, "order").shuffle(order)
    order.sort(key=lambda name: len(fitting[name]))  # the least free ones choose first
    counts: Counter[str] = Counter()
    chosen: dict[str, tuple[str, Corrupted]] = {}
    for name in order:
        options = [k for k in SCARCE if k in fitting[name]] or list(fitting[name])
        if options:
            kind = min(options, key=lambda k: (counts[k], k))
            counts[kind] += 1
            chosen[name] = (kind, fitting[name][kind])
    return chosen


def _line(
    item: Item, draft: Draft, calls: Sequence[object], corrupted: tuple[str, Corrupted] | None
) -> CandidateLine:
    correct = f"{item.id}/correct"
    replies = [CandidateReply(id=correct, reply=draft.reply(), accuracy=1, effectiveness=1)]
    if corrupted is not None:
        kind, made = corrupted
        replies.append(
            CandidateReply(
                id=f"{item.id}/{kind}",
                reply=made.reply,
                accuracy=1 if made.accuracy else 0,
                effectiveness=made.effectiveness,
                corruption=kind,
                change=made.change,
            )
        )
    return msgspec.convert(
        {"item_id": item.id, "category": item.category, "calls": calls, "replies": replies},
        CandidateLine,
        from_attributes=True,
    )


def write_set(source: Path, out: Path, seed: int) -> dict[str, int]:
    """Write `candidates.jsonl` and `evalset.yaml`; returns replies by corruption."""
    folder = source / NAME
    oracle = Oracle(
        read_catalogue(source / "catalogue"),
        {s.id: s for s in read_library(source / "scenarios").scenarios},
        read_templates(folder / "templates.yaml"),
    )
    read = msgspec.json.Decoder(Item).decode
    text = (source / ITEMS_OF / "items.jsonl").read_bytes()
    items = [i for i in map(read, text.splitlines()) if i.split == SPLIT]
    lines = asyncio.run(make_lines(oracle, items, seed))
    header = EvalsetHeader(
        name=NAME,
        licence="Apache-2.0",
        provenance=f"synthetic, generated by harness_cli.simulator.calibration, seed {seed}",
        role="judge",
        items_of=ITEMS_OF,
        splits={SPLIT: len(lines)},
        notes=NOTES,
        digests={SPLIT: digest(lines)},
    )
    write_atomic(out / "candidates.jsonl", b"".join(canonical_json(x) + b"\n" for x in lines))
    unset: tuple[object, ...] = ("", {}, {"splits": []}, {"splits": ()})
    plain = {k: v for k, v in msgspec.to_builtins(header).items() if v not in unset}
    made = "Made by `python -m harness_cli.simulator.calibration`; edit templates.yaml, not this."
    write_atomic(out / "evalset.yaml", f"# {made}\n{dump_yaml(plain)}".encode())
    counts = Counter(r.corruption or "correct" for line in lines for r in line.replies)
    return {kind: counts[kind] for kind in ("correct", *CORRUPTIONS)}


def main(argv: list[str] | None = None) -> int:
    """Parse, write, say what was written."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.simulator.calibration", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=SEED, help="default: of the shipped set")
    parser.add_argument("--evalsets", type=Path, default=Path("evalsets"), help="where it lies")
    parser.add_argument("--out", type=Path, help="write elsewhere than into the set's folder")
    chosen = parser.parse_args(argv)
    out = chosen.out or chosen.evalsets / NAME
    for kind, count in write_set(chosen.evalsets, out, chosen.seed).items():
        sys.stdout.write(f"{kind}: {count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
