"""Measure a judge on labelled replies, and what became of the last measurement.

A calibration is a record that a person commits: `manifests/calibration/<judge>.json`. It holds for
exactly the judge, the labels and the items it was made with; when any of them is another one now,
it is `changed` and opens no gate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from harness_cli import __version__
from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.evaluation.bounded_judging import Bounds, all_of, judge_within
from harness_cli.evaluation.judging import check_member_prices
from harness_cli.evaluation.labelled import Labels, constructed, labels_of
from harness_cli.judges.agreeing import AgreementReport, measure
from harness_cli.judges.base import Judge
from harness_cli.judges.label_file import read_label_file
from harness_cli.judges.open import open_judge
from harness_cli.judges.panel.judge import PanelJudge
from harness_cli.records.calibration import (
    Calibration,
    JudgeIdentity,
    KindCount,
    MetricAgreement,
    Standing,
)
from harness_cli.records.reader import read_json
from harness_cli.records.verdict import Verdict
from harness_cli.stats.agreement import Agreement
from harness_cli.store.project import Project

FOLDER = "calibration"


@dataclass(frozen=True, slots=True)
class Measured:
    """A judge on labels."""

    judge: JudgeIdentity
    labels: Labels
    verdicts: tuple[Verdict, ...]
    report: AgreementReport


def open_named(project: Project, name: str) -> Judge:
    """The judge `name` of harness.yaml. Raises `UnknownName` where there is none."""
    config = project.config.judges.get(name)
    if config is None:
        raise UnknownName.of("judge", name, project.config.judges)
    return open_judge(name, config, project)


def identity_of(name: str, judge: Judge) -> JudgeIdentity:
    """Everything whose change makes another judge of it."""
    if not isinstance(judge, PanelJudge):
        return JudgeIdentity(name=name, id=judge.id, kind="grounded")
    rule = judge.voting.rule
    return JudgeIdentity(
        name=name,
        id=judge.id,
        tree=judge.harness_id,
        panel={m.name: m.id for m in judge.members},
        rule=f"{rule.rule}, else {rule.split}, quorum {rule.needed(len(judge.members))}",
    )


async def measure_judge(
    project: Project,
    name: str,
    labels: Labels,
    *,
    unscored: Literal["wrong", "drop"] = "wrong",
    bounds: Bounds | None = None,
) -> Measured:
    """The judge's verdicts on every labelled reply, and how far they agree.

    Raises `BudgetReached` or `Interrupted` where `bounds` or ^C left replies out; a second attempt
    takes the votes that were given from the cache.
    """
    bounds = bounds or Bounds()
    check_member_prices(project, project.config.judges.get(name), bounds.budget)
    judge = open_named(project, name)
    try:
        found = await judge_within(judge, labels.cases, labels.world, bounds)
        verdicts = all_of(found, bounds)
        identity = identity_of(name, judge)
    finally:
        await judge.close()
    report = measure(judge.id, labels.replies, verdicts, unscored=unscored)
    return Measured(identity, labels, tuple(verdicts), report)


def record_of(measured: Measured, *, at: str, by: str) -> Calibration:
    """The record of a measurement. Raises `UsageError` where nothing was labelled."""
    report, labels = measured.report, measured.labels
    if report.accuracy is None or report.effectiveness is None:
        raise UsageError("no reply was graded: nothing to record")
    return Calibration(
        judge=measured.judge,
        evalset=labels.evalset,
        split=labels.split,
        evalset_digest=labels.digest,
        catalogue_digest=labels.world.digest,
        labels=labels.origin,
        source=labels.source,
        annotators=report.annotators,
        n=report.n,
        unscored=report.unscored,
        accuracy=_metric(report.accuracy),
        effectiveness=_metric(report.effectiveness),
        kinds=tuple(
            KindCount(kind=k.kind, n=k.n, caught=k.caught, alike=k.alike) for k in report.kinds
        ),
        at=at,
        by=by,
        versions={"harness": __version__},
    )


def _metric(found: Agreement) -> MetricAgreement:
    plain = msgspec.to_builtins(found)
    return msgspec.convert({k: v for k, v in plain.items() if k != "n"}, MetricAgreement)


def record_path(project: Project, name: str) -> Path:
    """Where the calibration of a judge is committed."""
    return project.manifests / FOLDER / f"{name}.json"


def read_record(project: Project, name: str) -> Calibration | None:
    """The committed calibration of a judge; None where there is none."""
    path = record_path(project, name)
    if not path.is_file():
        return None
    shown = f"{project.manifests.name}/{FOLDER}/{path.name}"
    record = read_json(path, Calibration, name=shown)
    if record.schema != 1:
        raise BadFile(f"{shown}: schema {record.schema} is not known", hint="this is 1")
    return record


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A judge's calibration as it stands now."""

    standing: Standing
    record: Calibration | None = None
    changes: tuple[str, ...] = ()
    """What is another one than when it was calibrated."""


def standing_of(project: Project, name: str, judge_id: str | None = None) -> Calibrated:
    """Whether the committed calibration holds for the judge, or for the `judge_id` of a run."""
    record = read_record(project, name)
    if record is None:
        return Calibrated("absent")
    changes = [*_labels_changed(project, record)]
    if judge_id is None or judge_id != record.judge.id:
        try:
            now = identity_of(name, open_named(project, name))
        except UsageError as exc:
            changes.append(f"the judge cannot be opened: {exc}")
        else:
            changes += identity_changes(record.judge, now)
            if judge_id not in (None, record.judge.id, now.id):
                changes.append(f"the run was graded by {judge_id}, calibrated is {record.judge.id}")
    return Calibrated("changed" if changes else "current", record, tuple(changes))


def identity_changes(then: JudgeIdentity, now: JudgeIdentity) -> list[str]:
    """What makes another judge of it, in words."""
    found = []
    if then.tree != now.tree:
        found.append(f"its harness: tree {_short(then.tree)} is now {_short(now.tree)}")
    for voter in sorted({*then.panel, *now.panel}):
        old, new = then.panel.get(voter), now.panel.get(voter)
        if old != new:
            found.append(f"member `{voter}`: {old or 'none'} is now {new or 'none'}")
    if then.rule != now.rule:
        found.append(f"its rule: {then.rule} is now {now.rule}")
    if then.id != now.id and not found:
        found.append(f"its code: {then.id} is now {now.id}")
    return found


def _short(tree: str | None) -> str:
    return tree[:12] if tree else "none"


def _labels_changed(project: Project, record: Calibration) -> Sequence[str]:
    """The replies, labels or items are other ones, or are not to be had any more."""
    try:
        now = again(project, record)
    except (UsageError, BadFile) as exc:
        return [f"its labels: {exc}"]
    if now.digest != record.evalset_digest:
        return [f"its labels: {_short(record.evalset_digest)} is now {_short(now.digest)}"]
    if now.world.digest != record.catalogue_digest:
        return ["the catalogue that facts come from"]
    return []


def again(project: Project, record: Calibration) -> Labels:
    """The labels of a record as they are now."""
    if not record.source:
        return constructed(project, record.evalset)
    file = read_label_file(project.root / record.source)
    return labels_of(project, file, record.evalset, record.split, record.labels)
