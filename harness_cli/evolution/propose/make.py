"""A proposal from a run: the model's when one is given, else the one that needs none.

With rollouts to spend on trials, what was thought of is tried first and what gains is proposed.
"""

from collections import defaultdict
from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

from harness_cli.errors import HarnessError
from harness_cli.evolution.proposal_file import new_proposal
from harness_cli.evolution.propose import deterministic
from harness_cli.evolution.propose.agent import propose_as_agent
from harness_cli.evolution.propose.chosen import choose
from harness_cli.evolution.propose.deterministic import BOLD, IDEAS, Proposed
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import EDITS
from harness_cli.evolution.propose.llm import propose_with_model
from harness_cli.evolution.propose.memory import Rejection, rejections
from harness_cli.evolution.session import Examined
from harness_cli.evolution.trials import open_trials, worth_of
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
    spent: int = 0
    """Rollouts that trials took."""


async def make_proposal(
    project: Project,
    seen: Examined,
    ground: Ground,
    *,
    policy: str | None,
    most: int = EDITS,
    trials: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Made:
    """Propose for a diagnosed run. `policy` or the role `proposer` names a model.

    At most `trials` rollouts are spent on trying edits on items of the run.
    """
    known = rejections(project.root)
    name = policy or project.config.roles.get(ROLE)
    if name is not None:
        found, proposer = await _by_model(project, name, ground, known, most)
    elif trials:
        kept, lost = deterministic.candidates(ground, (*IDEAS, *BOLD), rejected=known)
        found, proposer = Proposed(tuple(kept), tuple(lost)), deterministic.NAME
    else:
        found = deterministic.propose(ground, rejected=known, most=most)
        proposer = deterministic.NAME
    spent = 0
    if trials:
        found, spent = await _tried(project, seen, ground, found, trials=trials, most=most, say=say)
    proposal = new_proposal(
        found.edits,
        base=seen.config.harness_id,
        base_commit=seen.config.harness_commit,
        diagnosis=seen.run.id,
        proposer=proposer,
        note="" if found.edits else why_nothing(ground.diagnosis, found.dropped),
    )
    return Made(proposal, found.dropped, spent)


async def _tried(
    project: Project,
    seen: Examined,
    ground: Ground,
    found: Proposed,
    *,
    trials: int,
    most: int,
    say: Callable[[str], None],
) -> tuple[Proposed, int]:
    """Of the edits, those that gain when they are tried, and the rollouts that took."""
    values = defaultdict[str, list[float]](list)
    for result in seen.run.results():
        values[result.item_id].append(worth_of(result))
    worth = {item: fmean(v) for item, v in values.items()}
    async with open_trials(project, seen, budget=trials) as opened:
        kept, dropped = await choose(opened, ground, worth, found.edits, most=most, say=say)
        say(f"{counted(opened.spent, 'rollout')} spent on trials")
    return Proposed(kept, (*found.dropped, *dropped)), opened.spent


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
