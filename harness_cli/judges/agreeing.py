"""How far a judge agrees with labelled replies: raw, κ, confusion, recall by kind of error."""

from collections.abc import Iterable, Mapping, Sequence

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
    named: int
    """And one of its findings is of this kind."""
    recall: float
    interval: Interval


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that judge and reference grade differently."""

    id: str
    metric: str
    reference: float
    judge: float | None
    findings: tuple[str, ...]
    reply: str


class AgreementReport(msgspec.Struct, frozen=True, kw_only=True):
    """A judge against labels. Unscored replies count as disagreement in `raw`, never left out."""

    judge: str
    n: int
    unscored: int
    annotators: tuple[str, ...]
    accuracy: Agreement | None
    effectiveness: Agreement | None
    alpha: dict[str, float | None]
    """Krippendorff's α among the annotators, where there are several."""
    kinds: tuple[KindRecall, ...]
    categories: dict[str, dict[str, float]]
    """category → metric → share graded alike."""
    disagreements: tuple[Disagreement, ...]


def measure(
    judge: str, replies: Sequence[LabelledReply], verdicts: Sequence[Verdict], *, seed: int = 0
) -> AgreementReport:
    """Agreement of verdicts with the reference, which is the annotators' majority."""
    reference = {
        "accuracy": [majority([float(x.accuracy) for x in r.labels]) for r in replies],
        "effectiveness": [majority([x.effectiveness for x in r.labels]) for r in replies],
    }
    given = {m: [v.scores.get(m) for v in verdicts] for m in reference}
    annotators = sorted({x.annotator for r in replies for x in r.labels})
    return AgreementReport(
        judge=judge,
        n=len(replies),
        unscored=sum(any(given[m][i] is None for m in given) for i in range(len(replies))),
        annotators=tuple(annotators),
        accuracy=_agreed(reference["accuracy"], given["accuracy"], (0.0, 1.0), seed),
        effectiveness=_agreed(
            reference["effectiveness"], given["effectiveness"], (0.0, 0.5, 1.0), seed
        ),
        alpha=_alpha(replies, annotators),
        kinds=_recall(replies, verdicts),
        categories=_by_category(replies, reference, given),
        disagreements=_disagreements(replies, verdicts, reference, given),
    )


def _agreed(
    reference: list[float], given: list[float | None], labels: tuple[float, ...], seed: int
) -> Agreement | None:
    """On the scored ones; what could not be scored is told by `unscored`."""
    pairs = [(r, g) for r, g in zip(reference, given, strict=True) if g is not None]
    if not pairs:
        return None
    return agreement(
        [r for r, _ in pairs],
        [g for _, g in pairs],
        weights="quadratic" if len(labels) > 2 else "none",
        labels=labels,
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


def _kinds_of(reply: LabelledReply) -> set[str]:
    """The kinds that most annotators name, and what was done to the reply."""
    counts: dict[str, int] = {}
    for label in reply.labels:
        for kind in label.kinds:
            counts[kind] = counts.get(kind, 0) + 1
    named = {k for k, c in counts.items() if 2 * c >= len(reply.labels)}
    return named | ({reply.corruption} if reply.corruption else set())


def _recall(
    replies: Sequence[LabelledReply], verdicts: Sequence[Verdict]
) -> tuple[KindRecall, ...]:
    groups: dict[str, list[Verdict]] = {}
    for reply, verdict in zip(replies, verdicts, strict=True):
        for kind in _kinds_of(reply):
            groups.setdefault(kind, []).append(verdict)
    found = []
    for kind, members in sorted(groups.items()):
        caught = sum(_marked_down(v) for v in members)
        named = sum(any(f.kind == kind for f in v.findings) for v in members)
        interval = wilson(caught, len(members))
        found.append(
            KindRecall(
                kind=kind,
                n=len(members),
                caught=caught,
                named=named,
                recall=caught / len(members),
                interval=interval,
            )
        )
    return tuple(found)


def _marked_down(verdict: Verdict) -> bool:
    return any((verdict.scores.get(m) or 0.0) < 1 for m in ("accuracy", "effectiveness"))


def _by_category(
    replies: Sequence[LabelledReply],
    reference: Mapping[str, list[float]],
    given: Mapping[str, list[float | None]],
) -> dict[str, dict[str, float]]:
    alike: dict[str, dict[str, list[bool]]] = {}
    for i, reply in enumerate(replies):
        name = reply.category or (reply.item.category if reply.item else "uncategorised")
        for metric in reference:
            row = alike.setdefault(name, {}).setdefault(metric, [])
            row.append(reference[metric][i] == given[metric][i])
    return {c: {m: sum(v) / len(v) for m, v in row.items()} for c, row in sorted(alike.items())}


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
            metric=metric,
            reference=reference[metric][i],
            judge=given[metric][i],
            findings=tuple(f"{f.kind}: {f.quote or f.detail}" for f in verdicts[i].findings),
            reply=replies[i].reply,
        )
        for i, metric in rows
        if reference[metric][i] != given[metric][i]
    )
