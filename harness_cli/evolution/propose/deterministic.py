"""The proposer without a model: what the facts of a diagnosis ask for, mined and bounded.

It knows nothing of any policy: it reads the diagnosis, the failures and passes of the diagnosed
split, and the harness's own files. What it makes is general (a phrase must stand in several failing
comments and mark them against the others), small, and falsifiable by its predicted fixes.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from harness_cli.errors import BadFile
from harness_cli.evolution.propose.answers import (
    claim_edits,
    fact_edits,
    language_edit,
    limit_edits,
    refusal_edits,
)
from harness_cli.evolution.propose.asking import asking_edits
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import EDITS, LeakCheck, fault_of, within_budget
from harness_cli.evolution.propose.lifting import lifted_edits
from harness_cli.evolution.propose.lookups import tool_edits
from harness_cli.evolution.propose.memory import Rejection, is_rejected
from harness_cli.evolution.propose.narrowing import narrowed_edits
from harness_cli.evolution.propose.routing import bold_triggers, kept_out_edits, skill_edits
from harness_cli.evolution.propose.vocabulary import vocabulary_edits
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Edit

NAME = "deterministic"
IDEAS: tuple[Callable[[Ground], Iterator[Edit | None]], ...] = (
    vocabulary_edits,
    skill_edits,
    tool_edits,
    fact_edits,
    refusal_edits,
    language_edit,
    limit_edits,
    claim_edits,
    asking_edits,
)
BOLD: tuple[Callable[[Ground], Iterator[Edit | None]], ...] = (
    lifted_edits,
    kept_out_edits,
    narrowed_edits,
    bold_triggers,
)
"""Ideas that help in one harness and hurt in another: made only where edits are tried."""


class Proposed(NamedTuple):
    """The edits, and the ones that were not proposed with the reason why."""

    edits: tuple[Edit, ...]
    dropped: tuple[tuple[str, str], ...]


def propose(ground: Ground, *, rejected: Iterable[Rejection] = (), most: int = EDITS) -> Proposed:
    """Edits for a diagnosis, most promising first. Deterministic."""
    kept, dropped = candidates(ground, IDEAS, rejected=rejected)
    chosen = within_budget(kept, most=most)
    dropped += [
        (e.id, f"beyond the budget of {counted(most, 'edit')}") for e in kept if e not in chosen
    ]
    return Proposed(compatible(ground, chosen, dropped), tuple(dropped))


def candidates(
    ground: Ground,
    ideas: Iterable[Callable[[Ground], Iterator[Edit | None]]],
    *,
    rejected: Iterable[Rejection] = (),
) -> tuple[list[Edit], list[tuple[str, str]]]:
    """Every edit the ideas make that may be proposed, and the others with the reason."""
    known = list(rejected)
    leaks = LeakCheck(s.comment for s in ground.seen)
    kept: list[Edit] = []
    dropped: list[tuple[str, str]] = []
    for edit in (e for idea in ideas for e in idea(ground) if e is not None):
        twice = any(edit.id == other.id for other in kept)
        fault = "its name is taken" if twice else _fault(ground, edit, leaks, known)
        if fault is None:
            kept.append(edit)
        else:
            dropped.append((edit.id, fault))
    return kept, dropped


def _fault(ground: Ground, edit: Edit, leaks: LeakCheck, known: list[Rejection]) -> str | None:
    if is_rejected(edit, known):
        return "was rejected before and there is no new evidence"
    try:
        return fault_of(ground.files, edit, leaks)
    except BadFile as exc:
        return f"does not apply: {exc}"


def compatible(
    ground: Ground, edits: Iterable[Edit], dropped: list[tuple[str, str]]
) -> tuple[Edit, ...]:
    """The edits that apply one after the other; one that a stronger edit blocks has to wait."""
    from harness_cli.evolution.ops import after, apply_ops

    files = dict(ground.files)
    kept = []
    for edit in edits:
        try:
            files = after(files, apply_ops(files, edit.ops))
        except BadFile:
            dropped.append((edit.id, "another edit changes the same lines: propose it again later"))
            continue
        kept.append(edit)
    return tuple(kept)
