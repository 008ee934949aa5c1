"""The evolution record: each measured harness of the loop, what it changed and what came of it.

Laid out as TR Table 14: stage, changes, Accuracy, Effectiveness, diagnosis, selected.
"""

import re

import msgspec

from harness_cli.errors import RepoError, UnknownName
from harness_cli.evolution.advice import Advice, Stage, advise
from harness_cli.evolution.credit import Outcome, outcomes
from harness_cli.evolution.proposal_file import hunks
from harness_cli.evolution.single_use import applied_proposals
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Diagnosis, Proposal
from harness_cli.records.reader import read_json
from harness_cli.records.run import Report, RunConfig
from harness_cli.release.channels import list_manifests, read_channel
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunFolder, RunStore

TAKEN = ("accept", "modify")
METRICS = ("accuracy", "effectiveness")
_BRANCH = re.compile(r"refs/heads/evolve/(\d+)$")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of the record."""

    stage: str
    kind: str
    harness_id: str
    commit: str | None
    run: str
    n: int
    changes: tuple[str, ...]
    scores: dict[str, float | None]
    diagnosis: str
    served: bool
    """The project's channel serves this harness now."""
    promised: int | None = None
    """Fixes that the edits of this stage predicted; None where no proposal is kept."""
    came: int | None = None
    """Of them, items that failed in the run the proposal came from and pass in this one."""


def evolution_record(
    project: Project, *, evalset: str, split: str | None, policy: str | None = None
) -> tuple[list[Row], Advice]:
    """The rows in the order in which their harnesses were made, and the advice after the last.

    The policy is held fixed: only runs of one policy are taken, the project's own by default.
    Of several runs of one harness the largest counts, then the newest.
    """
    name, _ = project.policy(policy)
    best: dict[tuple[str, str], tuple[int, RunFolder, RunConfig, Report]] = {}
    for run in RunStore(project.runs).list():
        config = run.config()
        wanted = config.policy == name and config.evalset.name == evalset
        wanted = wanted and not config.only and config.imported is None
        if not wanted or split not in (None, config.evalset.split) or run.status() != "complete":
            continue
        report = run.report()
        key = (config.agent, config.harness_id)
        if key not in best or report.planned > best[key][0]:
            best[key] = (report.planned, run, config, report)
    serving = served_tree(project)
    order = branches(project)
    found = sorted(best.values(), key=lambda b: (position(b[2], order), b[1].id))
    rows = [row(project, run, config, report, order, serving) for _, run, config, report in found]
    rows = with_promises(project, told_apart(rows))
    stages = [stage_of(r, project) for r in rows]
    return rows, advise(stages)


def row(
    project: Project,
    run: RunFolder,
    config: RunConfig,
    report: Report,
    order: dict[str, int],
    serving: str | None,
) -> Row:
    """One stage from its run."""
    n = order.get(config.harness_commit or "", 0)
    react = config.agent == "react"
    kind = "baseline" if react else ("evolution" if n else "base")
    stage = "ReAct" if react else (f"evolution {n}" if n else "base")
    if config.dirty:
        stage += " (uncommitted)"
    return Row(
        stage=stage,
        kind=kind,
        harness_id=config.harness_id,
        commit=config.harness_commit,
        run=run.id,
        n=report.planned,
        changes=changes(project, config.harness_commit) if n and not react else (),
        scores={m.metric: m.mean for m in report.metrics},
        diagnosis=said(diagnosis_of(run)),
        served=config.harness_id == serving and not react,
    )


def told_apart(rows: list[Row]) -> list[Row]:
    """Each stage under a name of its own: what is selected must be one row.

    Harnesses that are no evolution (committed by hand, or of a branch that is gone) are all
    `base`; the later ones carry the beginning of their id.
    """
    met: set[str] = set()
    made = []
    for one in rows:
        name = one.stage if one.stage not in met else f"{one.stage} {one.harness_id[:8]}"
        met.add(name)
        made.append(msgspec.structs.replace(one, stage=name))
    return made


def with_promises(project: Project, rows: list[Row]) -> list[Row]:
    """The rows with what their proposals promised beside what came."""
    made = {use.commit: proposal for use, proposal in applied_proposals(project)}
    store = RunStore(project.runs)
    out = []
    for one in rows:
        proposal = made.get(one.commit or "")
        before = before_of(store, proposal)
        if proposal is None or before is None:
            out.append(one)
            continue
        after = outcomes(store.get(one.run).results())
        accepted = {e.id for _, e, op in hunks(proposal) if op.decision.state in TAKEN}
        promised = {i for e in proposal.edits if e.id in accepted for i in e.predicted_fixes}
        asked = {i for i in promised if i in before and i in after}
        came = sum(after[i].passed and not before[i].passed for i in asked)
        out.append(msgspec.structs.replace(one, promised=len(asked), came=came))
    return out


def before_of(store: RunStore, proposal: Proposal | None) -> dict[str, Outcome] | None:
    """The outcomes of the run a proposal came from; None when that run is gone."""
    if proposal is None:
        return None
    try:
        return outcomes(store.get(proposal.diagnosis).results())
    except UnknownName:
        return None


def stage_of(row: Row, project: Project) -> Stage:
    """A row as the advice takes it."""
    diagnosis = diagnosis_of(RunStore(project.runs).get(row.run))
    return Stage(
        name=row.stage,
        kind=row.kind,  # type: ignore[arg-type]
        scores={m: row.scores.get(m) for m in METRICS},
        n=row.n,
        clusters=diagnosis.clusters if diagnosis else None,
        run=row.run,
    )


def diagnosis_of(run: RunFolder) -> Diagnosis | None:
    """The run's diagnosis, if one was made."""
    path = run.path / "diagnosis.json"
    return read_json(path, Diagnosis) if path.is_file() else None


def said(diagnosis: Diagnosis | None) -> str:
    """A diagnosis in one line: its largest systematic clusters, or that there is none."""
    if diagnosis is None:
        return ""
    large = [c for c in diagnosis.clusters if c.systematic][:2]
    if not large:
        return f"{counted(diagnosis.failures, 'failure')}, none systematic"
    return "; ".join(f"{c.label} ({c.size})" for c in large)


def branches(project: Project) -> dict[str, int]:
    """Commit → n of the branch `evolve/<n>` that ends there."""
    try:
        repo = Repo.open(project.harness)
    except RepoError:
        return {}
    found = {}
    for ref, sha in repo.refs("refs/heads/evolve/").items():
        number = _BRANCH.match(ref)
        if number:
            found[sha] = int(number[1])
    return found


def position(config: RunConfig, order: dict[str, int]) -> int:
    """ReAct first, then the base, then the evolutions by number."""
    if config.agent == "react":
        return -1
    return order.get(config.harness_commit or "", 0)


def changes(project: Project, commit: str | None) -> tuple[str, ...]:
    """What an evolution's commit says it changed: the list in its message."""
    if commit is None:
        return ()
    message = Repo.open(project.harness).ask("log", "-1", "--format=%B", commit) or ""
    lines = message.splitlines()
    listed = tuple(line[2:].strip() for line in lines if line.startswith("- "))
    return listed or tuple(lines[:1])


def served_tree(project: Project) -> str | None:
    """The harness that the project's channel serves."""
    channel = read_channel(project.manifests, project.config.channel)
    manifest = list_manifests(project.manifests).get(channel.harness or "")
    return manifest.predicate.harness["tree"] if manifest else None
