"""The evolution of a judge: its disagreements with labels, and edits of its own harness.

The same verbs and the same applier as for a host; a judge's proposal names files under
`judges/<folder>/` alone, and is bound to that folder's tree id.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.calibrating import Measured, measure_judge
from harness_cli.evaluation.labelled import Labels, constructed, labels_of
from harness_cli.evolution.judged import diagnose_judge, keep, last, material_of
from harness_cli.evolution.proposal_file import new_proposal
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.llm import propose_with_model
from harness_cli.evolution.propose.make import ROLE, Made, why_nothing
from harness_cli.evolution.propose.memory import rejections
from harness_cli.evolution.propose.rubrics import NAME, RULES, propose_rules, rubric_of
from harness_cli.harness.load import load_judge
from harness_cli.judges.label_file import read_label_file
from harness_cli.judges.panel.opening import harness_folder
from harness_cli.models.open import open_policy
from harness_cli.records.diagnosis import Diagnosis
from harness_cli.records.harness import HarnessState
from harness_cli.store.project import Project

JUDGES = "judges"
LIVE = "live_stream_qa"


@dataclass(frozen=True, slots=True)
class ExaminedJudge:
    """A judge on labelled replies, with its own harness where it has one."""

    name: str
    folder: str | None
    """Below `judges/`; None for a judge that is code."""
    state: HarnessState | None
    measured: Measured

    @property
    def files(self) -> dict[str, bytes]:
        """The judge's files under the paths that a proposal names."""
        found = self.state.files if self.state else {}
        return {f"{JUDGES}/{self.folder}/{path}": data for path, data in found.items()}


def folder_of(project: Project, name: str) -> str | None:
    """The folder of a judge of harness.yaml below `judges/`; None for one that is code.

    Raises `UsageError` where its harness lies elsewhere: no proposal can name it.
    """
    config = project.config.judges.get(name)
    if config is None:
        return name  # a folder of the harness that no entry uses yet
    if config.kind == "grounded":
        return None
    folder = harness_folder(name, config, project)
    home = (project.harness / JUDGES).resolve()
    if folder.resolve().parent != home:
        raise UsageError(
            f"the harness of judge `{name}` lies outside `{project.config.harness}/{JUDGES}`",
            hint="edits are made there; move it, or edit it where it is",
        )
    return folder.name


def editable(project: Project, name: str) -> str:
    """The folder that a judge's proposal may touch. Raises `UsageError` where there is none."""
    folder = folder_of(project, name)
    if folder is None:
        raise UsageError(
            f"judge `{name}` is code: it has no harness to edit",
            hint="docs/judging.md says how it is taught; `harness diagnose --judge` what it misses",
        )
    return folder


def chosen_labels(project: Project, name: str, file: Path | None, evalset: str = LIVE) -> Labels:
    """The labels of a file, else those of the last diagnosis, else the calibration set."""
    if file is not None:
        return labels_of(project, read_label_file(file), evalset, None, "unstated")
    before = last(project, name)
    known = before.advice.get("labels", {}) if before else {}
    source = project.root / str(known.get("source") or "")
    if not source.is_file():
        return constructed(project)
    split = known.get("split")
    return labels_of(project, read_label_file(source), str(known["evalset"]), split, "unstated")


async def examine_judge(project: Project, name: str, labels: Labels) -> ExaminedJudge:
    """Run the judge on labelled replies; votes that its cache holds cost nothing."""
    measured = await measure_judge(project, name, labels)
    folder = folder_of(project, name)
    state = load_judge(project, folder) if folder else None
    return ExaminedJudge(name, folder, state, measured)


def diagnose_examined(project: Project, seen: ExaminedJudge) -> Diagnosis:
    """The clusters of a judge's disagreements, kept beside the runs."""
    before = last(project, seen.name)
    made = diagnose_judge(seen.measured, modules=lambda key: _modules(seen, key), previous=before)
    keep(project, seen.name, made)
    return made


def _modules(seen: ExaminedJudge, key: str) -> tuple[str, ...]:
    """The rubric behind a leading fact."""
    metric = RULES[key].metric if key in RULES else key.partition(":")[2]
    path = _rubric(seen.files, metric)
    return (path,) if path else ()


def _rubric(files: dict[str, bytes], metric: str) -> str | None:
    return rubric_of(files, metric) if metric in ("accuracy", "effectiveness") else None


def ground_of_judge(seen: ExaminedJudge, diagnosis: Diagnosis) -> Ground:
    """What a proposer starts from. Replies stand beside comments, so that neither is copied."""
    if seen.state is None:
        raise UsageError(f"judge `{seen.name}` is code: it has no harness to edit")
    found = material_of(seen.measured)
    replies = {r.id: r.reply for r in seen.measured.labels.replies}
    shown = tuple(
        msgspec.structs.replace(s, comment=f"{s.comment}\n{replies[s.item_id]}") for s in found.seen
    )
    return Ground(
        diagnosis=diagnosis,
        failures=found.failures,
        seen=shown,
        state=seen.state,
        files=seen.files,
        judge=seen.folder,
    )


async def propose_for_judge(project: Project, ground: Ground, *, policy: str | None) -> Made:
    """Rules for the judge's rubrics, or a model's edits when one is named."""
    known = rejections(project.root)
    name = policy or project.config.roles.get(ROLE)
    if name is None:
        found, proposer = propose_rules(ground, rejected=known), NAME
    else:
        model = open_policy(*project.policy(name), root=project.root)
        try:
            found = await propose_with_model(model, ground, rejected=known)
        finally:
            await model.close()
        proposer = model.id
    state = ground.state
    proposal = new_proposal(
        found.edits,
        base=state.id,
        base_commit=None if state.dirty else state.commit,
        diagnosis=ground.diagnosis.run,
        proposer=proposer,
        note="" if found.edits else why_nothing(ground.diagnosis, found.dropped),
    )
    return Made(proposal, found.dropped)
