"""Failures of a run into classes: known ones first, new ones clustered and named.

Systematic (choice): a class or cluster of at least five failures that holds at least 5 % of all of
them and of which at least 60 % share one fact (a class with a rule shares its rule). The rest is
sparse. Failures whose side at fault is not the harness are counted and shown, and never call for
an edit of the harness.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from harness_cli.evolution.advice import Stage, advise, as_data
from harness_cli.evolution.classes import assign, rule_of
from harness_cli.evolution.clusters import SORTED_BY, Kind, cluster, nearest_class
from harness_cli.evolution.describe import Facts, label_of, modules_of, root_cause
from harness_cli.evolution.failure import Evidence, Failure, Seen
from harness_cli.evolution.lineage import changes
from harness_cli.evolution.mining import contrast_counts, phrases_of, plain
from harness_cli.evolution.observe import observe, seen_of
from harness_cli.records.diagnosis import Case, Cluster, Diagnosis, FailureClass, Side

LARGE = 5
SHARE = 0.05
CONCENTRATED = 0.6
SMALLEST = 3
"""A cluster of fewer failures is none: they are unexplained."""
CASES = 3
READ = 4_000
"""Comments, evenly drawn, that labels are made from: a word that marks a group shows in them."""
REUSED = 0.5
"""Jaccard overlap of items from which a cluster keeps the id it had in the diagnosis before."""


@dataclass(frozen=True, slots=True)
class Material:
    """What was looked at: the failures with their facts, and every item as it was seen."""

    failures: tuple[Failure, ...]
    seen: tuple[Seen, ...]

    @property
    def passes(self) -> tuple[Seen, ...]:
        """The items that passed."""
        return tuple(s for s in self.seen if s.passed)


@dataclass(frozen=True, slots=True)
class Subject:
    """Which run of which harness the failures come from."""

    run: str
    harness_id: str
    evalset: str


def gather(evidence: Iterable[Evidence]) -> Material:
    """Observe every item of a run, streamed in any order.

    An item that fails in any repeat is a failure; the first repeat that failed is looked at.
    """
    seen: dict[str, Seen] = {}
    failures: dict[str, tuple[int, Failure]] = {}
    for one in evidence:
        item, repeat = one.result.item_id, one.result.repeat
        if one.result.state == "passed":
            seen.setdefault(item, seen_of(one))
        elif item not in failures or repeat <= failures[item][0]:
            failures[item] = (repeat, observe(one))
            seen[item] = failures[item][1].seen
    found = (failures[item][1] for item in sorted(failures))
    return Material(tuple(found), tuple(seen[item] for item in sorted(seen)))


def diagnose(
    material: Material,
    subject: Subject,
    *,
    classes: Sequence[FailureClass] = (),
    module_exists: Callable[[str], bool] = lambda _: True,
    previous: Diagnosis | None = None,
    stages: Sequence[Stage] = (),
    vectors: Kind = "tfidf",
) -> Diagnosis:
    """The diagnosis of a run. Deterministic: the same material gives the same bytes."""
    failures = sorted(material.failures, key=lambda f: f.item_id)
    known, left = _known(failures, classes)
    groups, _ = cluster(left, vectors)
    kept = [[left[i] for i in group] for group in _merged(left, groups)]
    new = [group for group in kept if len(group) >= SMALLEST]
    make = Maker(material, module_exists)
    found = [make.known(c, known[c.id]) for c in classes if c.id in known]
    found += [make.new(group) for group in new]
    found = _stable(_unique(found), previous)
    found.sort(key=lambda c: (-c.size, c.id))
    explained = sum(c.size for c in found)
    total = len(failures)
    return Diagnosis(
        run=subject.run,
        harness_id=subject.harness_id,
        evalset=subject.evalset,
        failures=total,
        of=len(material.seen),
        clusters=tuple(found),
        unexplained=round((total - explained) / total, 6) if total else 0.0,
        advice=as_data(advise(stages, clusters=_actionable(found))),
        changes=changes(previous, found),
        by=SORTED_BY[vectors],
    )


def _actionable(clusters: Sequence[Cluster]) -> list[Cluster]:
    return [c for c in clusters if c.side == "harness"]


def _known(
    failures: Sequence[Failure], classes: Sequence[FailureClass]
) -> tuple[dict[str, list[Failure]], list[Failure]]:
    """Assigned by rule first, then, for classes told in prose, by likeness."""
    known, left = assign(failures, classes)
    prose = [c for c in classes if rule_of(c) is None]
    near = nearest_class(left, prose)
    for i, class_id in near.items():
        known.setdefault(class_id, []).append(left[i])
    return known, [f for i, f in enumerate(left) if i not in near]


def _merged(failures: Sequence[Failure], groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Clusters that share their leading fact are one failure mode that KMeans cut in two."""
    by_key: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        facts = Facts([failures[i] for i in group])
        name = facts.leading if facts.share >= CONCENTRATED else f"#{number}"
        by_key.setdefault(name, []).extend(group)
    return [sorted(group) for group in by_key.values()]


class Maker:
    """Turns a group of failures into a cluster."""

    def __init__(self, material: Material, module_exists: Callable[[str], bool]) -> None:
        self._failures = {f.item_id: f for f in material.failures}
        self._total = len(self._failures)
        everything = sorted(
            [*material.passes, *(f.seen for f in material.failures)], key=lambda s: s.item_id
        )
        step = -(-len(everything) // READ) or 1
        self._phrases = {s.item_id: phrases_of(plain(s.comment)) for s in everything[::step]}
        self._counts = Counter(p for phrases in self._phrases.values() for p in phrases)
        self._exists = module_exists

    def known(self, known: FailureClass, group: Sequence[Failure]) -> Cluster:
        """A human-owned class with what belongs to it."""
        facts = Facts(group)
        made = self._make(facts, class_id=known.id, label=known.name, concentration=1.0)
        return msgspec.structs.replace(made, id=known.id, side=known.side)

    def named(self, name: str, group: Sequence[Failure], *, label: str) -> Cluster:
        """A class that somebody named: taken at its word that one cause is behind it."""
        made = self._make(Facts(group), class_id=None, label=label, concentration=1.0)
        return msgspec.structs.replace(made, id=name)

    def changed(self, old: Cluster, group: Sequence[Failure]) -> Cluster:
        """A cluster or class with other members than it had."""
        sure = 1.0 if old.class_id or old.systematic else 0.0
        facts = Facts(group)
        made = self._make(facts, class_id=old.class_id, label=old.label, concentration=sure)
        return msgspec.structs.replace(made, id=old.id, side=old.side, label=old.label)

    def extended(self, old: Cluster, more: Sequence[Failure]) -> Cluster:
        """The same with more members."""
        return self.changed(old, [*(self._failures[i] for i in old.item_ids), *more])

    def new(self, group: Sequence[Failure]) -> Cluster:
        """A cluster that nobody named: called after its leading fact."""
        facts = Facts(group)
        label = label_of(facts.leading) if facts.leading else ""
        return self._make(facts, class_id=None, label=label, concentration=facts.share)

    def _make(
        self, facts: Facts, *, class_id: str | None, label: str, concentration: float
    ) -> Cluster:
        group = facts.failures
        read = [self._phrases[f.item_id] for f in group if f.item_id in self._phrases]
        here = Counter(p for phrases in read for p in phrases)
        rest = len(self._phrases) - len(read)
        phrases = contrast_counts(here, len(read), self._counts - here, rest)
        terms = tuple(p.text for p in phrases[:6])
        if not label or (class_id is None and concentration < CONCENTRATED):
            about = "mixed failures" + (f" around “{terms[0]}”" if terms else "")
            label = about if not label else f"{about}, most often: {label}"
        share = len(group) / self._total
        return Cluster(
            id=_id_of(facts, terms),
            class_id=class_id,
            label=label,
            size=len(group),
            share=round(share, 6),
            systematic=len(group) >= LARGE and share >= SHARE and concentration >= CONCENTRATED,
            side=_side(group),
            suspected_modules=modules_of(group, self._exists),
            root_cause=root_cause(facts, phrases),
            cases=tuple(_case(f) for f in _representative(facts)),
            item_ids=tuple(f.item_id for f in group),
            terms=terms,
        )


def _id_of(facts: Facts, terms: Sequence[str]) -> str:
    """A name made of facts, so that the same failure mode is called the same next time."""
    sure = facts.leading and facts.share >= CONCENTRATED
    name = facts.leading if sure else f"mixed {terms[0] if terms else ''}"
    return re.sub(r"[^a-z0-9\u3400-\u9fff]+", "-", name.casefold()).strip("-") or "mixed"


def _unique(clusters: Sequence[Cluster]) -> list[Cluster]:
    counts: Counter[str] = Counter()
    out = []
    for one in clusters:
        counts[one.id] += 1
        number = counts[one.id]
        out.append(one if number == 1 else msgspec.structs.replace(one, id=f"{one.id}-{number}"))
    return out


def _stable(clusters: list[Cluster], previous: Diagnosis | None) -> list[Cluster]:
    """New clusters keep the id that mostly the same items had in the diagnosis before."""
    if previous is None:
        return clusters
    taken = {c.id for c in clusters}
    out = []
    for one in clusters:
        old = max(previous.clusters, key=lambda c: _overlap(one, c), default=None)
        if one.class_id is None and old is not None and old.class_id is None:
            fits = _overlap(one, old) >= REUSED and old.id not in taken - {one.id}
            one = msgspec.structs.replace(one, id=old.id) if fits else one
            taken.add(one.id)
        out.append(one)
    return out


def _overlap(a: Cluster, b: Cluster) -> float:
    here, there = set(a.item_ids), set(b.item_ids)
    return len(here & there) / len(here | there) if here | there else 0.0


def _side(group: Sequence[Failure]) -> Side:
    sides = Counter[Side](f.leading.side for f in group if f.leading is not None)
    return min(sides, key=lambda s: (-sides[s], s)) if sides else "policy"


def _representative(facts: Facts) -> list[Failure]:
    """Cases that show the group's facts best, of different categories where there are such."""
    shown = [-sum(map(facts.counts.__getitem__, keys)) for keys in facts.keys]
    order = sorted(zip(shown, facts.failures, strict=True), key=lambda x: (x[0], x[1].item_id))
    chosen: list[Failure] = []
    for fresh in (True, False):
        for _, failure in order:
            if len(chosen) == CASES:
                return chosen
            met = failure.seen.category in {f.seen.category for f in chosen}
            if not (fresh and met) and failure not in chosen:
                chosen.append(failure)
    return chosen


def _case(failure: Failure) -> Case:
    low = ", ".join(failure.failed_metrics)
    return Case(
        item_id=failure.item_id,
        step=failure.leading.step if failure.leading else None,
        comment=failure.seen.comment[:300],
        reply=failure.reply[:300],
        why="; ".join(label_of(o.key) for o in failure.observations[:2])
        or (f"graded low in {low}" if low else "nothing was observed"),
    )


def by_item(material: Material) -> Mapping[str, Failure]:
    """The failures by item id."""
    return {f.item_id: f for f in material.failures}
