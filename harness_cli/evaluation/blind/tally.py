"""From annotations and the key to preferences, attribution, consistency (TR §5.6, Tables 9, 10)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness_cli.evaluation.blind.annotations import decided
from harness_cli.records.blind import (
    TAGS,
    Annotation,
    Annotator,
    Attribution,
    BlindCase,
    BlindKey,
    BlindReport,
    BlindSheet,
    Consistency,
    KeyEntry,
    Opening,
    System,
    Tally,
)
from harness_cli.stats.agreement import krippendorff_alpha
from harness_cli.stats.binary import binomial_p
from harness_cli.stats.intervals import clopper_pearson
from harness_cli.stats.multiple import MIN_ITEMS, holm

UNTAGGED = "untagged"
ALPHA = 0.05
_CODES = {"baseline": 0.0, "tie": 1.0, "candidate": 2.0}
ByPerson = Mapping[str, Mapping[str, Annotation]]


@dataclass(frozen=True, slots=True)
class Preferred:
    """What the annotators make of one item."""

    stratum: str
    system: str
    """baseline, candidate or tie."""
    split: bool
    said: tuple[Annotation, ...]
    """By those who preferred that system."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Their tags."""
        return tuple(made.tag or UNTAGGED for made in self.said)


def report(
    sheet: BlindSheet, key: BlindKey, people: ByPerson, openings: Sequence[Opening] = ()
) -> BlindReport:
    """Everything that follows from the annotations so far; repeats count for consistency alone."""
    votes = {name: _systems(sheet, key, made) for name, made in people.items()}
    nobody = {name: "tie" for name, made in decided(sheet, {}).items() if made is None}
    first = [entry for entry in key.entries if entry.repeats is None]
    strata = {pair.id: pair.stratum for pair in sheet.pairs}
    preferred = {
        entry.pair: _preferred(entry, strata[entry.pair], votes, people, nobody)
        for entry in first
        if any(entry.pair in v for v in votes.values()) or entry.pair in nobody
    }
    asked = {p.id for p in sheet.pairs if not p.identical}
    complete = bool(people) and all(asked <= made.keys() for made in people.values())
    return BlindReport(
        id=sheet.id,
        baseline=key.baseline,
        candidate=key.candidate,
        drawn=sheet.drawn,
        annotated=len(preferred),
        complete=complete,
        whole=tally("all", preferred.values()),
        strata=_strata(preferred.values()),
        attribution=_attribution(preferred.values()),
        consistency=_consistency(key, votes, people),
        annotators=tuple(_person(n, votes[n], key, people[n], openings) for n in sorted(people)),
        split=sum(found.split for found in preferred.values()),
        identical=sum(entry.pair in nobody for entry in first),
        alpha=_alpha(first, votes),
        openings=len(openings),
        cases=_cases(key, preferred),
        left_out=key.left_out,
    )


def tally(name: str, preferred: Iterable[Preferred]) -> Tally:
    """Counts, the non-tie win rate with its exact interval, the exact two-sided p."""
    counts = Counter(found.system for found in preferred)
    wins, losses = counts["candidate"], counts["baseline"]
    clear = wins + losses
    return Tally(
        name=name,
        candidate=wins,
        tie=counts["tie"],
        baseline=losses,
        win_rate=wins / clear if clear else None,
        interval=clopper_pearson(wins, clear) if clear else None,
        p=binomial_p(wins, clear) if clear else None,
    )


def _systems(sheet: BlindSheet, key: BlindKey, made: Mapping[str, Annotation]) -> dict[str, str]:
    """Pair → the system one person preferred there, or `tie`."""
    sides = {entry.pair: entry.a for entry in key.entries}
    other = {"baseline": "candidate", "candidate": "baseline"}
    found = {}
    for pair, choice in decided(sheet, made).items():
        if choice is None or choice.choice == "tie":
            found[pair] = "tie"
        else:
            found[pair] = sides[pair] if choice.choice == "A" else other[sides[pair]]
    return found


def _preferred(
    entry: KeyEntry,
    stratum: str,
    votes: Mapping[str, Mapping[str, str]],
    people: ByPerson,
    nobody: Mapping[str, str],
) -> Preferred:
    """The majority of the annotators; without one a tie that is counted as split."""
    said = [v[entry.pair] for v in votes.values() if entry.pair in v] or [nobody[entry.pair]]
    counts = Counter(said)
    system, most = counts.most_common(1)[0]
    split = 2 * most <= len(said)
    if split:
        system = "tie"
    agreeing = tuple(
        made[entry.pair]
        for name, made in people.items()
        if entry.pair in made and votes[name][entry.pair] == system != "tie"
    )
    return Preferred(stratum=stratum, system=system, split=split, said=agreeing)


def _cases(key: BlindKey, preferred: Mapping[str, Preferred]) -> tuple[BlindCase, ...]:
    items = {entry.pair: entry.item_id for entry in key.entries}
    sides: tuple[System, System] = ("baseline", "candidate")
    return tuple(
        BlindCase(
            pair=pair,
            item_id=items[pair],
            stratum=found.stratum,
            preferred=side,
            reasons=tuple(made.reason for made in found.said),
            tags=found.tags,
        )
        for side in sides
        for pair, found in preferred.items()
        if found.system == side
    )


def _strata(preferred: Iterable[Preferred]) -> tuple[Tally, ...]:
    grouped: dict[str, list[Preferred]] = {}
    for found in preferred:
        grouped.setdefault(found.stratum, []).append(found)
    tallies = [tally(name, grouped[name]) for name in sorted(grouped)]
    enough = [t for t in tallies if t.candidate + t.baseline >= MIN_ITEMS and t.p is not None]
    adjusted = dict(zip((t.name for t in enough), holm([t.p or 0.0 for t in enough]), strict=True))
    return tuple(_read(t, adjusted.get(t.name)) for t in tallies)


def _read(found: Tally, p_holm: float | None) -> Tally:
    reading = "no preference seen"
    if p_holm is None:
        reading = "too few"
    elif p_holm < ALPHA:
        reading = "candidate" if found.candidate > found.baseline else "baseline"
    fields = {name: getattr(found, name) for name in Tally.__struct_fields__}
    return Tally(**{**fields, "p_holm": p_holm, "reading": reading})


def _attribution(preferred: Iterable[Preferred]) -> tuple[Attribution, ...]:
    """One tag an item: what most of those who preferred that side gave."""
    counts: dict[str, Counter[str]] = {"candidate": Counter(), "baseline": Counter()}
    for found in preferred:
        if found.system != "tie" and found.tags:
            counts[found.system][Counter(found.tags).most_common(1)[0][0]] += 1
    wins = counts["candidate"].total()
    rows = [
        Attribution(
            tag=tag,
            candidate=counts["candidate"][tag],
            baseline=counts["baseline"][tag],
            share=counts["candidate"][tag] / wins if wins else None,
        )
        for tag in (*TAGS, UNTAGGED)
    ]
    return tuple(row for row in rows if row.candidate or row.baseline)


def _consistency(
    key: BlindKey,
    votes: Mapping[str, Mapping[str, str]],
    people: ByPerson,
) -> Consistency:
    asked = agreed = 0
    contradictions: set[tuple[str, str]] = set()
    for entry in key.entries:
        for said in votes.values():
            if entry.repeats is None or entry.pair not in said or entry.repeats not in said:
                continue
            asked += 1
            if said[entry.pair] == said[entry.repeats]:
                agreed += 1
            else:
                contradictions.add((entry.repeats, entry.pair))
    places = Counter(made.choice for person in people.values() for made in person.values())
    a, b = places["A"], places["B"]
    return Consistency(
        asked=asked,
        agreed=agreed,
        rate=agreed / asked if asked else None,
        interval=clopper_pearson(agreed, asked) if asked else None,
        contradictions=tuple(sorted(contradictions)),
        a_preferred=a,
        b_preferred=b,
        position_p=binomial_p(a, a + b) if a + b else None,
    )


def _person(
    name: str,
    votes: Mapping[str, str],
    key: BlindKey,
    made: Mapping[str, Annotation],
    openings: Sequence[Opening],
) -> Annotator:
    first = {entry.pair for entry in key.entries if entry.repeats is None}
    counts = Counter(system for pair, system in votes.items() if pair in first)
    opened = min((opening.at for opening in openings), default=None)
    late = sum(opened is not None and annotation.at > opened for annotation in made.values())
    return Annotator(
        name=name,
        annotated=len(made),
        candidate=counts["candidate"],
        tie=counts["tie"],
        baseline=counts["baseline"],
        after_opening=late,
    )


def _alpha(entries: Sequence[KeyEntry], votes: Mapping[str, Mapping[str, str]]) -> float | None:
    if len(votes) < 2:
        return None
    units = [[_CODES[v[e.pair]] if e.pair in v else None for v in votes.values()] for e in entries]
    return krippendorff_alpha(units)
