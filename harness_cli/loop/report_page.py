"""What the page of one run says, gathered from all over the project."""

from pathlib import Path

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.evaluation.comparison import Comparison
from harness_cli.evaluation.page.agreed import Agreed, of_calibration, of_report
from harness_cli.evaluation.page.charts import Stage
from harness_cli.evaluation.page.rows import Before
from harness_cli.evaluation.page.subject import Subject, compared, read_config, read_report
from harness_cli.judges.agreeing import AgreementReport
from harness_cli.loop.record import Row, evolution_record, served_tree
from harness_cli.records.calibration import Calibration
from harness_cli.records.reader import read_json
from harness_cli.records.run import RunConfig
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore


def subject_of(
    project: Project,
    run: RunFolder,
    *,
    incumbent: RunFolder | None = None,
    agreement: Path | None = None,
) -> Subject:
    """Everything the page of `run` says; `incumbent` is the channel's unless it is named.

    Raises `BadFile` for files that do not fit and `UsageError` where the two runs cannot be
    compared; what is wrong with *other* runs of the project only leaves them out.
    """
    config = read_config(run)
    named = incumbent is not None
    why = "named" if named else ""
    if incumbent is None:
        incumbent, why = channel_incumbent(project, run, config)
    elif incumbent.id == run.id:
        raise UsageError(
            f"`{run.id}` is compared with itself", hint="`harness runs list` shows the others"
        )
    other = read_config(incumbent) if incumbent else None
    comparison: Comparison | None = None
    before: dict[str, Before] = {}
    if incumbent is not None and other is not None:
        try:
            comparison, before = compared(run, config, incumbent, other)
        except HarnessError as exc:
            if named:
                raise
            why = f"`{incumbent.id}` cannot be compared: {exc}"
            other = None
    stages, advice = _stages(project, config)
    return Subject(
        run=run,
        config=config,
        report=read_report(run, config),
        status=run.status(),
        incumbent=other,
        why_incumbent=why,
        comparison=comparison,
        before=before,
        stages=stages,
        advice=advice,
        agreement=_agreement(project, config, agreement),
    )


def channel_incumbent(
    project: Project, run: RunFolder, config: RunConfig
) -> tuple[RunFolder | None, str]:
    """The newest whole run of the harness that the project's channel serves, and why it is it.

    Only a run on the same items, with the same policy, agent and judge is taken: any other
    difference would not be the harness's.
    """
    channel = project.config.channel
    try:
        tree = served_tree(project)
    except HarnessError as exc:
        return None, f"channel `{channel}` cannot be read: {exc}"
    if tree is None:
        return None, f"channel `{channel}` serves nothing yet"
    wanted = _bound(config, tree)
    for other in RunStore(project.runs).list():
        try:
            fits = other.id != run.id and _bound(other.config()) == wanted
            if fits and other.status() == "complete":
                return other, f"channel `{channel}` serves its harness"
        except HarnessError:
            continue  # a damaged run is no incumbent
    return None, (
        f"channel `{channel}` serves harness {tree[:12]}, of which no other whole run has these "
        "items, this policy and this judge"
    )


def _bound(config: RunConfig, tree: str | None = None) -> tuple[object, ...]:
    ref = config.evalset
    items = (ref.name, ref.split, ref.digest, ref.catalogue_digest, config.limit)
    return (*items, config.policy_id, config.agent, config.judge_id, tree or config.harness_id)


def _stages(project: Project, config: RunConfig) -> tuple[tuple[Stage, ...], str]:
    try:
        rows, advice = evolution_record(
            project,
            evalset=config.evalset.name,
            split=config.evalset.split,
            policy=config.policy,
        )
    except HarnessError as exc:
        return (), f"the evolution record cannot be made: {exc}"
    if len(rows) < 2:
        return (), ""
    return tuple(_stage(row, advice.selected, config) for row in rows), "; ".join(advice.reasons)


def _stage(row: Row, selected: str | None, config: RunConfig) -> Stage:
    return Stage(
        name=row.stage,
        kind=row.kind,
        accuracy=row.scores.get("accuracy"),
        effectiveness=row.scores.get("effectiveness"),
        n=row.n,
        selected=row.stage == selected,
        served=row.served,
        here=row.run == config.id,
    )


def _agreement(project: Project, config: RunConfig, file: Path | None) -> Agreed | None:
    """The record that was named, or else the committed calibration of the run's judge."""
    if file is not None:
        return of_report(read_agreement(file), file.name)
    path = project.manifests / "calibration" / f"{config.judge}.json"
    if not path.is_file():
        return None
    return of_calibration(read_json(path, Calibration, name=f"calibration/{path.name}"))


def read_agreement(path: Path) -> AgreementReport:
    """What `harness judge agree --json` printed. Raises `BadFile` where the file is none."""
    try:
        return read_json(path, AgreementReport, name=path.name)
    except BadFile as exc:
        raise BadFile(
            str(exc), hint="`harness judge agree LABELS --json > FILE` makes an agreement record"
        ) from exc
