"""Edits chosen by trial: each alone on few items, then one on top of the other on all that matter.

A trial is a rollout of the diagnosed split under the run's own policy and judge, which stay closed
boxes: an edit is kept for what it does, not for what it should do. Alone, it is tried on the
failures it promises and on passing items that come nearest to it; what gains nothing there is
dropped. What is left is stacked, the strongest first, each measured on top of those kept before it
on every failure and on a fixed draw of the passing items. It stays when it gains `LEAST` items net.

Trials alone may take half of the budget; where the other half does not reach for all items, each
edit of the stack is tried on a draw of them and on those it was tried on alone.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evolution.failure import Seen
from harness_cli.evolution.mining import phrases_of, plain
from harness_cli.evolution.ops import Changes, after, apply_ops
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import EDITS, added_text
from harness_cli.evolution.trials import Trials
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Edit

ALONE = 16
"""Promised failures an edit is tried on by itself, and as many passing items beside them."""
WATCHED = 100
"""Passing items that every stacked edit is tried on."""
LEAST = 0.5
"""Items' worth an edit must gain net on top of those kept before it."""
FEWEST = 60
"""Items an edit of the stack is tried on where the budget is short."""
SEED = 20_261_130

Say = Callable[[str], None]


@dataclass(slots=True)
class Tried:
    """An edit and what its trials showed."""

    edit: Edit
    gain: float
    cast: list[str]
    """The items it was tried on."""


@dataclass(slots=True)
class Stack:
    """The edits kept so far, the files they make, and what every item is worth with them."""

    files: dict[str, bytes]
    worth: dict[str, float]
    changes: Changes = field(default_factory=dict)
    kept: list[Edit] = field(default_factory=list)


async def choose(
    trials: Trials,
    ground: Ground,
    worth: Mapping[str, float],
    ideas: Iterable[Edit],
    *,
    most: int = EDITS,
    say: Say = lambda _: None,
) -> tuple[tuple[Edit, ...], tuple[tuple[str, str], ...]]:
    """The edits that gain by trial, and the others with the reason.

    `worth` is what the run's items were worth. Where the budget of trials ends, so does the choice.
    """
    dropped: list[tuple[str, str]] = []
    promising = await _alone(trials, ground, worth, ideas, dropped, say)
    watched = _draw((i for i, w in worth.items() if w >= 1), WATCHED)
    whole = [*sorted(i for i, w in worth.items() if w < 1), *watched]
    whole = _draw(whole, max(FEWEST, trials.left // max(1, min(most, len(promising)))))
    stack = Stack(files=dict(ground.files), worth=dict(worth))
    for tried in promising:
        why = ""
        if len(stack.kept) >= most:
            why = f"beyond the budget of {counted(most, 'edit')}"
        else:
            why = await _stacked(trials, stack, tried.edit, sorted({*whole, *tried.cast}), say)
        if why:
            dropped.append((tried.edit.id, why))
    return tuple(stack.kept), tuple(dropped)


async def _alone(
    trials: Trials,
    ground: Ground,
    worth: Mapping[str, float],
    ideas: Iterable[Edit],
    dropped: list[tuple[str, str]],
    say: Say,
) -> list[Tried]:
    """The edits that gain something by themselves, strongest first."""
    found = []
    reserved = trials.left // 2
    for edit in sorted(ideas, key=lambda e: (-len(e.predicted_fixes), e.id)):
        cast = _cast(ground, edit, worth)
        if len(cast) > trials.left - reserved:
            dropped.append((edit.id, "not tried: the budget of trials is spent"))
            continue
        try:
            changes = apply_ops(ground.files, edit.ops)
            made = await trials.worth(changes, cast)
        except BadFile as exc:
            dropped.append((edit.id, f"leaves no valid harness: {str(exc).splitlines()[0]}"))
            continue
        gain = sum(value - worth[i] for i, value in made.items())
        say(f"{edit.id}: {gain:+.1f} on {counted(len(cast), 'item')}")
        if gain > 0:
            found.append(Tried(edit, gain, cast))
        else:
            dropped.append((edit.id, f"gained nothing when tried ({gain:+.1f} of {len(cast)})"))
    return sorted(found, key=lambda t: (-t.gain, len(t.edit.ops), t.edit.id))


async def _stacked(trials: Trials, stack: Stack, edit: Edit, cast: Sequence[str], say: Say) -> str:
    """Keep an edit on top of the others, or say why not."""
    if len(cast) > trials.left:
        return "not tried with the others: the budget of trials is spent"
    try:
        mine = apply_ops(stack.files, edit.ops)
        made = await trials.worth({**stack.changes, **mine}, cast)
    except BadFile as exc:
        return f"does not go with the edits before it: {str(exc).splitlines()[0]}"
    changed = {i: v - stack.worth[i] for i, v in made.items()}
    gain = sum(changed.values())
    say(f"{edit.id} with {len(stack.kept)} others: {gain:+.1f} on {counted(len(cast), 'item')}")
    if gain < LEAST:
        return f"gains {gain:+.1f} on top of the others, less than {LEAST}"
    stack.files = after(stack.files, mine)
    stack.changes.update(mine)
    stack.worth.update(made)
    stack.kept.append(_with_findings(edit, changed))
    return ""


def _with_findings(edit: Edit, changed: Mapping[str, float]) -> Edit:
    """The edit with its promises as tried: what it fixed and what it broke."""
    better = tuple(sorted(i for i, v in changed.items() if v > 0))
    worse = tuple(sorted(i for i, v in changed.items() if v < 0))
    told = f"Tried on {counted(len(changed), 'item')} of the diagnosed split, on top of the edits "
    told += f"before it: {len(better)} better, {len(worse)} worse."
    risks = f"worse when tried: {', '.join(worse[:5])}" if worse else "no tried item got worse"
    return msgspec.structs.replace(
        edit, rationale=f"{edit.rationale} {told}", predicted_fixes=better, risks=risks
    )


def _cast(ground: Ground, edit: Edit, worth: Mapping[str, float]) -> list[str]:
    """The failures an edit promises and the passing items worded most like what it adds."""
    promised = [i for i in edit.predicted_fixes if worth.get(i, 1.0) < 1]
    added = phrases_of(plain(added_text(ground.files, edit), ground.names))
    near = sorted(
        (s for s in ground.seen if worth.get(s.item_id, 0.0) >= 1),
        key=lambda s: (-_likeness(s, added, ground), s.item_id),
    )
    return [*_draw(promised, ALONE), *(s.item_id for s in near[:ALONE])]


def _likeness(seen: Seen, added: set[str], ground: Ground) -> float:
    mine = phrases_of(plain(seen.comment, ground.names))
    return len(mine & added) / (len(mine) or 1)


def _draw(items: Iterable[str], most: int) -> list[str]:
    """At most so many items, the same each time."""
    pool = sorted(items)
    return sorted(random.Random(SEED).sample(pool, most)) if len(pool) > most else pool
