"""What `harness judge` prints: agreement, a calibration record, how it stands."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from harness_cli.commands._show import line, table
from harness_cli.errors import HarnessError, UsageError
from harness_cli.evaluation.calibrating import (
    Calibrated,
    identity_of,
    open_named,
    standing_of,
)
from harness_cli.judges.agreeing import AgreementReport
from harness_cli.records.calibration import (
    Calibration,
    JudgeIdentity,
    MetricAgreement,
    Origin,
)
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Diagnosis
from harness_cli.stats.agreement import Agreement
from harness_cli.store.project import Project

GROUNDED = "grounded"
WORDS = {
    "construction": "by construction, no person labelled them",
    "team": "by the team that built the judge",
    "human": "by people",
    "unstated": "of unstated origin",
}


@dataclass(frozen=True, slots=True)
class State:
    """A judge and how its calibration stands."""

    identity: JudgeIdentity | None
    calibrated: Calibrated
    fault: str = ""
    """Why the judge cannot be opened here."""


def chosen(project: Project, name: str | None) -> str:
    """The judge that is meant when no option names one."""
    return name or project.config.roles.get("final_judge") or GROUNDED


def counting(word: str) -> Literal["wrong", "drop"]:
    """How unscored replies count. Raises `UsageError` for another word."""
    if word == "wrong":
        return "wrong"
    if word == "drop":
        return "drop"
    raise UsageError(f"`--unscored {word}` is no way to count", hint="wrong or drop")


def origin_of(word: str) -> Origin:
    """Who made labels. Raises `UsageError` for another word than human and team."""
    if word == "human":
        return "human"
    if word == "team":
        return "team"
    raise UsageError(f"`--origin {word}` is no origin of labels", hint="human or team")


def asked(project: Project, name: str, replies: int) -> str:
    """What a measurement asks of a judge, before anything is asked."""
    config = project.config.judges.get(name)
    members = config.panel if config else ()
    if not members:
        return f"{counted(replies, 'reply', 'replies')} before `{name}`"
    votes = counted(len(members) * replies, "vote")
    return f"{counted(replies, 'reply', 'replies')} before `{name}`: {votes} of " + (
        f"{', '.join(members)}; votes in the cache are not asked again"
    )


def as_data(report: AgreementReport, clusters: Diagnosis) -> dict[str, Any]:
    """The report with its clusters, for --json."""
    data: dict[str, Any] = msgspec.to_builtins(report)
    return {**data, "clusters": clusters.clusters}


def show_report(
    report: AgreementReport, clusters: Diagnosis, *, cases: int, quiet: bool = False
) -> None:
    """Everything about the agreement of a judge with labels."""
    line(f"{report.judge} against {report.n} labelled replies, {report.unscored} unscored")
    table(("metric", "raw %", "95 %", "κ", "95 %", "pairs"), _rows(report))
    if quiet:
        return
    for metric, value in report.alpha.items():
        shown = "undefined" if value is None else f"{value:.3f}"
        line(f"annotators, {metric}: Krippendorff's α {shown}")
    for name, found in (("accuracy", report.accuracy), ("effectiveness", report.effectiveness)):
        if found:
            show_confusion(name, found)
    _show_categories(report)
    kinds = [
        (
            k.kind,
            f"{k.caught} of {k.n}",
            k.alike,
            k.named,
            f"{k.interval.low:.2f} … {k.interval.high:.2f}",
        )
        for k in report.kinds
    ]
    if kinds:
        columns = ("kind", "marked down", "graded alike", "named so", "marked down, 95 %")
        table(columns, kinds, title="recall by kind")
    _show_clusters(clusters)
    _show_cases(report, cases)


def show_confusion(name: str, found: Agreement | MetricAgreement) -> None:
    """The confusion table of one metric, with a column for what was not scored."""
    columns = ["label", *(f"judge {x:g}" for x in found.labels)]
    rows = [
        [f"{label:g}", *counts] for label, counts in zip(found.labels, found.confusion, strict=True)
    ]
    if any(found.invalid):
        columns.append("unscored")
        rows = [[*row, n] for row, n in zip(rows, found.invalid, strict=True)]
    table(columns, rows, title=f"{name}: rows are the labels")


def _show_categories(report: AgreementReport) -> None:
    if len({c.category for c in report.categories}) > 1:
        rows = [
            (
                c.category,
                c.metric,
                f"{c.alike} of {c.n}",
                f"{100 * c.share:.1f}",
                f"{100 * c.interval.low:.1f} … {100 * c.interval.high:.1f}",
            )
            for c in report.categories
        ]
        table(("category", "metric", "alike", "%", "95 %"), rows, title="by category")


def _show_clusters(made: Diagnosis) -> None:
    rows = [
        (c.id, c.size, f"{c.share:.0%}", "systematic" if c.systematic else "sparse", c.label)
        for c in made.clusters
    ]
    if rows:
        title = f"clusters of {made.failures} replies graded otherwise than labelled"
        table(("cluster", "size", "share", "", "what"), rows, title=title)


def _show_cases(report: AgreementReport, cases: int) -> None:
    from harness_cli.evolution.show_hunk import visible

    for case in report.disagreements[:cases]:
        judged = "unscored" if case.judge is None else f"{case.judge:g}"
        reply = visible(" ".join(case.reply.split()))
        line(f"{case.id}  {case.metric} label {case.reference:g}, judge {judged}: {reply}")
        for told in (case.reason, *case.findings) if case.reason else case.findings:
            line(f"    {visible(told)}")
    if len(report.disagreements) > cases:
        line(f"… {len(report.disagreements) - cases} more, --cases N shows them")


def _rows(report: AgreementReport) -> list[tuple[str, ...]]:
    pairs = (("accuracy", report.accuracy), ("effectiveness", report.effectiveness))
    return [row(name, found, found.n) for name, found in pairs if found]


def row(name: str, found: Agreement | MetricAgreement, n: int) -> tuple[str, ...]:
    """One metric of a table of agreement."""
    kappa = "undefined" if found.kappa is None else f"{found.kappa:.3f}"
    interval = found.kappa_interval
    return (
        name + (" (quadratic κ)" if found.weights == "quadratic" else ""),
        f"{100 * found.raw:.1f}",
        f"{100 * found.raw_interval.low:.1f} … {100 * found.raw_interval.high:.1f}",
        kappa,
        f"{interval.low:.3f} … {interval.high:.3f}" if interval else "–",
        str(n),
    )


def show_record(record: Calibration, *, quiet: bool = False) -> None:
    """A calibration record."""
    line(
        f"{record.judge.id} on {counted(record.n, 'reply', 'replies')} "
        f"of `{record.source or record.evalset}`"
    )
    line(f"labels {WORDS[record.labels]}; {record.unscored} unscored; {record.at[:10]} {record.by}")
    pairs = (("accuracy", record.accuracy), ("effectiveness", record.effectiveness))
    columns = ("metric", "raw %", "95 %", "κ", "95 %", "pairs")
    table(columns, [row(name, found, record.n) for name, found in pairs])
    if quiet:
        return
    for name, found in pairs:
        show_confusion(name, found)
    rows = [(k.kind, f"{k.caught} of {k.n}", f"{k.alike} of {k.n}") for k in record.kinds]
    if rows:
        table(("kind", "marked down", "graded as labelled"), rows, title="by kind")


def standing(project: Project, name: str) -> State:
    """A judge of the project and how its calibration stands; one that cannot be opened says why."""
    try:
        identity = identity_of(name, open_named(project, name))
    except HarnessError as exc:
        if name not in project.config.judges:
            raise
        return State(None, standing_of(project, name), str(exc))
    return State(identity, standing_of(project, name))


def standing_data(state: State) -> dict[str, Any]:
    """The same for --json."""
    calibrated = state.calibrated
    return {
        "judge": state.identity,
        "fault": state.fault,
        "calibration": calibrated.standing,
        "changes": calibrated.changes,
        "record": calibrated.record,
    }


def show_standing(name: str, state: State, *, quiet: bool = False) -> None:
    """A judge and its calibration for a reader."""
    identity, calibrated = state.identity, state.calibrated
    line(f"{name}: {identity.id if identity else state.fault}")
    if identity and identity.tree:
        line(f"  harness tree {identity.tree}")
        for voter, policy in identity.panel.items():
            line(f"  member {voter}: {policy}")
        line(f"  rule: {identity.rule}")
    line(f"  calibration: {calibrated.standing}")
    for change in calibrated.changes:
        line(f"    {change}")
    if calibrated.standing != "current":
        line(
            f"    `harness judge calibrate --judge {name}` makes one; gates are advisory till then"
        )
    if calibrated.record is not None:
        show_record(calibrated.record, quiet=quiet)
