"""What `harness augment` does with its options, and how its outcome is shown."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from harness_cli.augmentation.golds import Gold, Grounds
from harness_cli.augmentation.paraphrases import Book
from harness_cli.augmentation.recipes import read_recipe
from harness_cli.commands._show import line, note, table
from harness_cli.errors import Interrupted, UsageError, nearest_and_known
from harness_cli.evaluation.augmenting import (
    Drawing,
    Drawn,
    golds_of,
    grounds_of,
    write_states,
)
from harness_cli.evaluation.evalsets import load_evalset, load_header
from harness_cli.evaluation.writing_paraphrases import write_book
from harness_cli.harness.load import harness_files, state_from_files
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.augmentation import DIMENSIONS, Recipe
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.counting import counted
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.simulator.solutions import read_oracle
from harness_cli.store.locks import locked
from harness_cli.store.project import Project

REASONS_SHOWN = 5
LOCK = ".lock"
HELD = "wait until that process has ended, or write to another folder"
AGAIN = "the same command goes on where it stopped"
USUAL = "live_stream_qa"


async def draw(
    project: Project,
    out: Path,
    *,
    recipe: Path | None,
    count: int | None,
    seed: int,
    harness: str | None,
    evalset: str | None,
    split: str,
    probe: int,
    each: bool,
    said: Callable[[int, int], None] | None,
) -> tuple[Drawn, Recipe, Book]:
    """Draw the states that the options ask for."""
    asked = read_recipe(recipe) if recipe else Recipe()
    files = harness_files(project, harness)
    base = state_from_files(files)
    _check_kept(asked, base)
    items = _items(project, evalset, split, every=each, probe=probe)
    grounds, golds = await _golds(project, base, items)
    wanted = count or (len(items) if each else asked.count)
    with locked(out / LOCK, what="harness augment", hint=HELD):
        book = await write_book(project, asked, files, out) if asked.paraphrase else Book()
        own = items if each else ()
        drawing = Drawing(
            files, base, asked, golds, grounds, book=book, items=own, probed=len(items)
        )
        try:
            drawn = await write_states(drawing, out, count=wanted, seed=seed, said=said)
        except asyncio.CancelledError:
            raise Interrupted(
                f"stopped before all of {wanted} states were drawn", hint=AGAIN
            ) from None
        return drawn, asked, book


def _check_kept(recipe: Recipe, base: HarnessState) -> None:
    """Raise `UsageError` for a skill to keep that the harness does not have."""
    known = tuple(sorted(skill.name for skill in base.skills))
    for name in recipe.keep:
        if name not in known:
            raise UsageError(
                f"`keep` names no skill of the harness: `{name}`",
                hint=nearest_and_known(name, known),
            )


async def _golds(
    project: Project, base: HarnessState, items: list[Item]
) -> tuple[Grounds, list[Gold]]:
    """Gold solutions of the oracle, where the project has the library that it reads."""
    if not (project.evalsets / "scenarios").is_dir():
        note("no evalsets/scenarios: states are held against the base alone, no gold solutions")
        return Grounds(Catalogue(snapshot=""), GroundedJudge()), []
    oracle = read_oracle(project.evalsets)
    grounds = grounds_of(oracle)
    return grounds, await golds_of(oracle, base, items, grounds)


def progress(done: int, of: int) -> None:
    """A line now and then."""
    if done == of or done % 20 == 0:
        note(f"{done}/{of} states")


def show(drawn: Drawn, recipe: Recipe, book: Book, out: Path) -> None:
    """Per dimension how much changed, the discard rate and why."""
    rows = []
    for name in DIMENSIONS:
        if name not in recipe.dimensions:
            continue
        found = [x.edits[name] for x in drawn.lines if name in x.edits]
        moves: dict[str, int] = {}
        for one in found:
            for kind, times in one.moves.items():
                moves[kind] = moves.get(kind, 0) + times
        told = ", ".join(f"{k} {n / max(1, len(found)):.1f}" for k, n in sorted(moves.items()))
        tokens = fmean(e.tokens for e in found) if found else 0.0
        share = 100 * fmean(e.share for e in found) if found else 0.0
        rows.append([name, len(found), f"{tokens:.0f}", f"{share:.1f}", told])
    table(["dimension", "states", "tokens edited", "% of tokens", "changes a state"], rows)
    made = len(drawn.lines) - drawn.kept
    line(f"{made} states drawn, {drawn.kept} were there: {out}")
    line(held_against(drawn))
    reasons = drawn.reasons()
    told = ", ".join(f"{kind} {n}" for kind, n in reasons.most_common())
    line(
        f"discarded: {100 * drawn.discard_rate:.1f} % of the draws" + (f" ({told})" if told else "")
    )
    examples = list(dict.fromkeys(drawn.discards))
    for reason in examples[:REASONS_SHOWN]:
        line(f"  {reason}")
    if book.counts:
        line("paraphrases: " + ", ".join(f"{n} {kind}" for kind, n in book.counts.items()))
    for state, gave_up in drawn.failed.items():
        line(f"given up {state}: {gave_up}")


def held_against(drawn: Drawn) -> str:
    """What the states were held against beside the base: how many golds, of how many items."""
    if not drawn.probed:
        return "held against the base alone: no item was probed"
    has = f"{drawn.golds} of {counted(drawn.probed, 'item')} probed"
    if not drawn.golds:
        return f"held against the base alone: {has} have a gold solution that is right under it"
    return f"held against the base and gold solutions: {has} have one"


def _items(
    project: Project, evalset: str | None, split: str, *, every: bool, probe: int
) -> list[Item]:
    """All items of the split, or as many as are probed, spread over it."""
    usual = evalset is None and not (project.evalsets / USUAL).is_dir()
    if not every and (probe == 0 or usual):
        return []
    _refuse_sealed(project, evalset or USUAL, split)
    items = list(load_evalset(project, evalset or USUAL, split=split).items)
    if every or probe >= len(items):
        return items
    step = len(items) / probe
    return [items[int(n * step)] for n in range(probe)]


def _refuse_sealed(project: Project, evalset: str, split: str) -> None:
    """Raise `UsageError` for a sealed split: states that were held against it would open it."""
    header = load_header(project, evalset)
    if split in header.seal.splits:
        open_ = [name for name in header.splits if name not in header.seal.splits]
        raise UsageError(
            f"the split `{split}` of `{evalset}` is sealed, and no state needs its items",
            hint=f"--split {open_[0]}" if open_ else "--probe 0: no gold solutions",
        )
