"""Disagreements of a judge with labels as failures: observed, clustered and told as others are.

What a run's failures are to a policy's harness, disagreements are to the judge's: a reply that the
judge grades above its label (lenient), below it (strict), or not at all.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from harness_cli.evaluation.calibrating import Measured
from harness_cli.evolution.diagnose import Material, Subject, diagnose
from harness_cli.evolution.failure import Failure, Observation, Seen, request_text
from harness_cli.judges.agreeing import kinds_of, reference_of
from harness_cli.judges.labels import LabelledReply
from harness_cli.records.canonical import write_json
from harness_cli.records.diagnosis import Cluster, Diagnosis
from harness_cli.records.reader import read_json
from harness_cli.records.verdict import Verdict
from harness_cli.store.project import Project

METRICS = ("accuracy", "effectiveness")
FILE = "diagnosis.json"
INSTEAD = {
    "accuracy": ("wrong_", "unsupported_claim", "false_promise", "human_identity", "capability_",
                 "invented_", "forbidden_"),
    "effectiveness": ("miss", "over_refusal", "suppressed", "unwanted", "wrong_language",
                      "wrong_link", "partial"),
}  # fmt: skip
"""Beginnings of the kinds of finding that speak of a metric."""


def material_of(measured: Measured) -> Material:
    """Every labelled reply as it was seen; those graded otherwise than labelled are failures."""
    replies, verdicts = measured.labels.replies, measured.verdicts
    reference = reference_of(replies)
    failures, seen = [], []
    for i, (reply, verdict) in enumerate(zip(replies, verdicts, strict=True)):
        wanted = {m: reference[m][i] for m in METRICS}
        apart = tuple(m for m in METRICS if verdict.scores.get(m) != wanted[m])
        one = _seen(reply, passed=not apart)
        seen.append(one)
        if apart:
            found = tuple(_observed(reply, verdict, wanted, apart))
            failures.append(
                Failure(seen=one, reply=reply.reply, observations=found, failed_metrics=apart)
            )
    return Material(tuple(failures), tuple(seen))


def _seen(reply: LabelledReply, *, passed: bool) -> Seen:
    item = reply.item
    return Seen(
        item_id=reply.id,
        category=reply.category or (item.category if item else "uncategorised"),
        tags=item.tags if item else (),
        state="passed" if passed else "failed",
        comment=request_text(item.request) if item else "\n".join(reply.comments),
    )


def _observed(
    reply: LabelledReply, verdict: Verdict, wanted: Mapping[str, float], apart: tuple[str, ...]
) -> Iterator[Observation]:
    """What the judge did, by what was wrong with the reply or by what the judge found wrong."""
    labelled = sorted(kinds_of(reply))
    for metric in apart:
        given, label = verdict.scores.get(metric), wanted[metric]
        note = f"{metric}: label {label:g}, judge {'none' if given is None else f'{given:g}'}"
        if given is None:
            kind, detail = "ungraded", metric
            note = f"{note} ({verdict.unscored_reason or 'no reason given'})"
        elif given > label:
            kind, detail = "lenient", labelled[0] if labelled else metric
        else:
            kind, detail = "strict", _objection(verdict, metric)
        yield Observation(kind=kind, detail=detail, side="judge", note=note[:300])
    for metric in apart:
        yield Observation(kind="graded", detail=metric, side="judge")


def _objection(verdict: Verdict, metric: str) -> str:
    """The judge's first finding that speaks of a metric."""
    kinds = [f.kind for f in verdict.findings]
    return next((k for k in kinds if k.startswith(INSTEAD[metric])), metric)


def diagnose_judge(
    measured: Measured,
    *,
    modules: Callable[[str], tuple[str, ...]] = lambda _: (),
    previous: Diagnosis | None = None,
) -> Diagnosis:
    """Clusters of a judge's disagreements. `modules` gives the files behind a leading fact."""
    found = material_of(measured)
    judge = measured.judge
    subject = Subject(
        run=f"judge-{judge.name}",
        harness_id=judge.tree or judge.id,
        evalset=measured.labels.source or measured.labels.evalset,
    )
    made = diagnose(found, subject, previous=previous)
    clusters = tuple(
        msgspec.structs.replace(c, suspected_modules=modules(leading(c, found))[:3])
        for c in made.clusters
    )
    advice = {**_advice(measured, clusters), "labels": _labels(measured)}
    return msgspec.structs.replace(made, clusters=clusters, advice=advice)


def _labels(measured: Measured) -> dict[str, str | None]:
    """Where the labels came from, for the edit that follows."""
    found = measured.labels
    return {"source": found.source, "evalset": found.evalset, "split": found.split}


def leading(cluster: Cluster, found: Material) -> str:
    """The fact that most members of a cluster lead with."""
    wanted = set(cluster.item_ids)
    keys = [f.leading.key for f in found.failures if f.item_id in wanted and f.leading]
    return max(sorted(set(keys)), key=keys.count, default="")


def _advice(measured: Measured, clusters: tuple[Cluster, ...]) -> dict[str, object]:
    large = [c.id for c in clusters if c.systematic]
    name = measured.judge.name
    if measured.judge.tree is None:
        reasons = [f"`{name}` is code: what it does not see is taught in judges/grounded/"]
        return {"action": "stop", "reasons": reasons}
    if not large:
        reasons = ["no cluster of disagreements is both large and systematic"]
        return {"action": "stop", "reasons": reasons}
    reasons = [f"systematic: {', '.join(large)}", f"`harness edit --judge {name}` proposes rules"]
    return {"action": "continue", "reasons": reasons}


def diagnosis_path(project: Project, name: str) -> Path:
    """Where the last diagnosis of a judge is kept, beside the runs and outside git."""
    return project.runs.parent / "judges" / name / FILE


def keep(project: Project, name: str, made: Diagnosis) -> Path:
    """Write a diagnosis of a judge; returns where."""
    path = diagnosis_path(project, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, made)
    return path


def last(project: Project, name: str) -> Diagnosis | None:
    """The last diagnosis of a judge."""
    path = diagnosis_path(project, name)
    return read_json(path, Diagnosis, name=f"{name}/{FILE}") if path.is_file() else None
