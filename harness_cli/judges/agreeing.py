"""How far a judge agrees with labelled replies: raw, κ, confusion, recall by kind of error."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from harness_cli.judges.labels import LabelledReply
from harness_cli.records.run import Interval
from harness_cli.records.verdict import Verdict
from harness_cli.stats.agreement import Agreement, agreement, krippendorff_alpha, majority
from harness_cli.stats.intervals import wilson


class KindRecall(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the replies labelled with a kind the judge marks down, and names alike."""

    kind: str
    n: int
    caught: int
    """The judge gives less than full marks."""
    alike: int
    """The judge gives exactly the reference's grades, on both metrics."""
    named: int
    """One of its findings is of this kind."""
    recall: float
    interval: Interval


class CategoryAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """One metric on the replies to items of one category."""

    category: str
    metric: str
    n: int
    alike: int
    share: float
    interval: Interval


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that judge and reference grade differently."""

    id: str
    item_id: str = ""
    category: str = ""
    metric: str
    reference: float
    judge: float | None
    findings: tuple[str, ...]
    reason: str = ""
    """Why it was not scored."""
    reply: str


class AgreementReport(msgspec.Struct, frozen=True, kw_only=True):
    """A judge against labels. An unscored reply is one that it does not grade alike."""

    judge: str
    n: int
    unscored: int
    unscored_as: str = "wrong"
    """`wrong`, or `drop`: left out of agreement and κ, and told by `unscored`."""
    annotators: tuple[str, ...]
    accuracy: Agreement | None
    effectiveness: Agreement | None
    alpha: dict[str, float | None]
    """Krippendorff's α among the annotators, where there are several."""
    kinds: tuple[KindRecall, ...]
    categories: tuple[CategoryAgreement, ...]
    disagreements: tuple[Disagreement, ...]


def measure(
    judge: str,
    replies: Sequence[LabelledReply],
    verdicts: Sequence[Verdict],
    *,
    seed: int = 0,
    unscored: Literal["wrong", "drop"] = "wrong",
) -> AgreementReport:
    """Agreement of verdicts with the reference, which is the annotators' majority."""
    reference = reference_of(replies)
    given = {m: [v.scores.get(m) for v in verdicts] for m in reference}
    annotators = sorted({x.annotator for r in replies for x in r.labels})
    return AgreementReport(
        judge=judge,
        n=len(replies),
        unscored=sum(any(given[m][i] is None for m in given) for i in range(len(replies))),
        unscored_as=unscored,
        annotators=tuple(annotators),
        accuracy=_agreed(reference["accuracy"], given["accuracy"], (0.0, 1.0), unscored, seed),
        effectiveness=_agreed(
            reference["effectiveness"], given["effectiveness"], (0.0, 0.5, 1.0), unscored, seed
        ),
        alpha=_alpha(replies, annotators),
        kinds=_recall(replies, verdicts, reference, given),
        categories=_by_category(replies, reference, given),
        disagreements=_disagreements(replies, verdicts, reference, given),
    )


def reference_of(replies: Sequence[LabelledReply]) -> dict[str, list[float]]:
    """Metric → the majority of the annotators, reply by reply."""
    return {
        "accuracy": [majority([float(x.accuracy) for x in r.labels]) for r in replies],
        "effectiveness": [majority([x.effectiveness for x in r.labels]) for r in replies],
    }


def _agreed(
    reference: list[float],
    given: list[float | None],
    labels: tuple[float, ...],
    unscored: Literal["wrong", "drop"],
    seed: int,
) -> Agreement | None:
    """None where nothing is left to compare."""
    if unscored == "drop" and all(g is None for g in given):
        return None
    return agreement(
        reference,
        given,
        weights="quadratic" if len(labels) > 2 else "none",
        labels=labels,
        invalid=unscored,
        seed=seed,
    )


def _alpha(replies: Sequence[LabelledReply], annotators: Sequence[str]) -> dict[str, float | None]:
    if len(annotators) < 2:
        return {}
    rows: dict[str, list[list[float | None]]] = {"accuracy": [], "effectiveness": []}
    for reply in replies:
        by = {label.annotator: label for label in reply.labels}
        rows["accuracy"].append([float(by[a].accuracy) if a in by else None for a in annotators])
        rows["effectiveness"].append([by[a].effectiveness if a in by else None for a in annotators])
    return {
        "accuracy": krippendorff_alpha(rows["accuracy"], "nominal"),
        "effectiveness": krippendorff_alpha(rows["effectiveness"], "interval"),
    }


def kinds_of(reply: LabelledReply) -> set[str]:
    """The kinds that most annotators name, and what was done to the reply."""
    counts: dict[str, int] = {}
    for label in reply.labels:
        for kind in label.kinds:
            counts[kind] = counts.get(kind, 0) + 1
    named = {k for k, c in counts.items() if 2 * c >= len(reply.labels)}
    return named | ({reply.corruption} if reply.corruption else set())


def _recall(
    replies: Sequence[LabelledReply],
    verdicts: Sequence[Verdict],
    reference: Mapping[str, list[float]],
    given: Mapping[str, list[float | None]],
) -> tuple[KindRecall, ...]:
    groups: dict[str, list[int]] = {}
    for i, reply in enumerate(replies):
        for kind in kinds_of(reply):
            groups.setdefault(kind, []).append(i)
    found = []
    for kind, members in sorted(groups.items()):
        caught = sum(_marked_down(verdicts[i]) for i in members)
        found.append(
            KindRecall(
                kind=kind,
                n=len(members),
                caught=caught,
                alike=sum(all(given[m][i] == reference[m][i] for m in reference) for i in members),
                named=sum(any(f.kind == kind for f in verdicts[i].findings) for i in members),
                recall=caught / len(members),
                interval=wilson(caught, len(members)),
            )
        )
    return tuple(found)


def _marked_down(verdict: Verdict) -> bool:
    """A grade below full marks; an unscored reply is caught by nobody."""
    grades = [verdict.scores.get(m) for m in ("accuracy", "effectiveness")]
    return any(g is not None and g < 1 for g in grades)


def _by_category(
    replies: Sequence[LabelledReply],
    reference: Mapping[str, list[float]],
    given: Mapping[str, list[float | None]],
) -> tuple[CategoryAgreement, ...]:
    alike: dict[tuple[str, str], list[bool]] = {}
    for i, reply in enumerate(replies):
        name = reply.category or (reply.item.category if reply.item else "uncategorised")
        for metric in reference:
            row = alike.setdefault((name, metric), [])
            row.append(reference[metric][i] == given[metric][i])
    return tuple(
        CategoryAgreement(
            category=category,
            metric=metric,
            n=len(row),
            alike=sum(row),
            share=sum(row) / len(row),
            interval=wilson(sum(row), len(row)),
        )
        for (category, metric), row in sorted(alike.items())
    )


def _disagreements(
    replies: Sequence[LabelledReply],
    verdicts: Sequence[Verdict],
    reference: Mapping[str, list[float]],
    given: Mapping[str, list[float | None]],
) -> tuple[Disagreement, ...]:
    rows: Iterable[tuple[int, str]] = ((i, m) for i in range(len(replies)) for m in reference)
    return tuple(
        Disagreement(
            id=replies[i].id,
            item_id=replies[i].item_id or "",
            category=replies[i].category,
            metric=metric,
            reference=reference[metric][i],
            judge=given[metric][i],
            findings=tuple(f"{f.kind}: {f.quote or f.detail}" for f in verdicts[i].findings),
            reason="" if given[metric][i] is not None else verdicts[i].unscored_reason or "",
            reply=replies[i].reply,
        )
        for i, metric in rows
        if reference[metric][i] != given[metric][i]
    )
