"""What became of the classes of the diagnosis before: the same, renamed, merged, split, gone, new.

Two classes are related when they share a third of the smaller one's items (choice); only items
that failed in both diagnoses are compared, so that a class does not vanish because it was fixed.
"""

from collections.abc import Sequence
from typing import Literal

from harness_cli.records.diagnosis import ClassChange, Cluster, Diagnosis

RELATED = 1 / 3
Kind = Literal["same", "renamed", "merged", "split", "new", "gone", "fixed"]


def changes(before: Diagnosis | None, after: Sequence[Cluster]) -> tuple[ClassChange, ...]:
    """One entry per class of either side, in the order of `after`, what is gone at the end."""
    if before is None:
        return ()
    both = _ids(before.clusters) & _ids(after)
    olds = {c.id: frozenset(c.item_ids) & both for c in before.clusters}
    news = {c.id: frozenset(c.item_ids) & both for c in after}
    parents = {n: [o for o in olds if _related(olds[o], news[n])] for n in news}
    children = {o: [n for n in news if _related(olds[o], news[n])] for o in olds}
    found = [_of(name, parents[name], children) for name in news]
    kept = {name for one in found for name in one.before}
    # A class whose items all pass now is fixed, not gone astray.
    for name in olds:
        if name not in kept:
            kind: Kind = "gone" if olds[name] else "fixed"
            found.append(ClassChange(kind=kind, before=(name,), after=()))
    return tuple(found)


def _of(name: str, parents: list[str], children: dict[str, list[str]]) -> ClassChange:
    if name in children and not parents:  # the same id, none of its old items fails still
        return ClassChange(kind="same", before=(name,), after=(name,))
    if not parents:
        return ClassChange(kind="new", before=(), after=(name,))
    if len(parents) > 1:
        return ClassChange(kind="merged", before=tuple(parents), after=(name,))
    siblings = tuple(children[parents[0]])
    if len(siblings) > 1:
        return ClassChange(kind="split", before=tuple(parents), after=siblings)
    kind: Kind = "same" if parents[0] == name else "renamed"
    return ClassChange(kind=kind, before=tuple(parents), after=(name,))


def _ids(clusters: Sequence[Cluster]) -> frozenset[str]:
    return frozenset(i for c in clusters for i in c.item_ids)


def _related(old: frozenset[str], new: frozenset[str]) -> bool:
    smaller = min(len(old), len(new))
    return smaller > 0 and len(old & new) >= RELATED * smaller
