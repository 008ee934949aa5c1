"""A proposal from a run: the model's when one is given, else the one that needs none."""

from typing import NamedTuple

from harness_cli.errors import HarnessError
from harness_cli.evolution.proposal_file import new_proposal
from harness_cli.evolution.propose import deterministic
from harness_cli.evolution.propose.agent import propose_as_agent
from harness_cli.evolution.propose.deterministic import Proposed
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import EDITS
from harness_cli.evolution.propose.llm import propose_with_model
from harness_cli.evolution.propose.memory import Rejection, rejections
from harness_cli.evolution.session import Examined
from harness_cli.models.open import open_policy
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Diagnosis, Proposal
from harness_cli.store.project import Project

ROLE = "proposer"
"""The role in harness.yaml whose policy proposes when no flag names one."""


class Made(NamedTuple):
    """The proposal, and what was not proposed with the reason."""

    proposal: Proposal
    dropped: tuple[tuple[str, str], ...]


async def make_proposal(
    project: Project, seen: Examined, ground: Ground, *, policy: str | None, most: int = EDITS
) -> Made:
    """Propose for a diagnosed run. `policy` or the role `proposer` names a model."""
    known = rejections(project.root)
    name = policy or project.config.roles.get(ROLE)
    if name is None:
        found, proposer = (
            deterministic.propose(ground, rejected=known, most=most),
            deterministic.NAME,
        )
    else:
        found, proposer = await _by_model(project, name, ground, known, most)
    proposal = new_proposal(
        found.edits,
        base=seen.config.harness_id,
        base_commit=seen.config.harness_commit,
        diagnosis=seen.run.id,
        proposer=proposer,
        note="" if found.edits else why_nothing(ground.diagnosis, found.dropped),
    )
    return Made(proposal, found.dropped)


async def _by_model(
    project: Project, name: str, ground: Ground, known: list[Rejection], most: int
) -> tuple[Proposed, str]:
    """As an agent with tools; from one prompt where the model submits nothing that way."""
    policy, config = project.policy(name)
    model = open_policy(policy, config, root=project.root)
    try:
        try:
            found = await propose_as_agent(model, config, ground, rejected=known, most=most)
        except HarnessError as exc:  # it calls no tools, or not the one that counts
            found = await propose_with_model(model, ground, rejected=known, most=most)
            dropped = (("as an agent", str(exc)), *found.dropped)
            found = found._replace(dropped=dropped)
    finally:
        await model.close()
    return found, model.id


def why_nothing(diagnosis: Diagnosis, dropped: tuple[tuple[str, str], ...]) -> str:
    """Why a proposal holds no edits: what failed, and what became of the ideas there were."""
    failed = f"{counted(diagnosis.failures, 'failure')} of {diagnosis.of}"
    if not diagnosis.failures:
        return f"nothing to propose: {failed}"
    if dropped:
        ideas = "; ".join(f"{name}: {why}" for name, why in dropped[:3])
        return f"nothing to propose: {failed}, and no idea held ({ideas})"
    return f"nothing to propose: {failed}, and no cause that an edit would remove recurs among them"
