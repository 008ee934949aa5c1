"""What a release takes before anything was run: the project's own policy in what is committed."""

from harness_cli.errors import UsageError
from harness_cli.harness.load import load_state
from harness_cli.release.candidate import MEASURED, Pair, is_candidates, read_gates
from harness_cli.release.decide import decide
from harness_cli.release.drift import drifted_tools
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gather import candidate
from harness_cli.release.measure import needed
from harness_cli.release.promote import Promotion
from harness_cli.release.session import Done, summary, with_reach
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunStore

KINDS = (*MEASURED, "tools", "approvals")
"""Gates that can be asked before there is a run: a judge and a provenance are a run's."""


def nothing_run(project: Project) -> bool:
    """Whether no finished run names a candidate."""
    runs = (run for run in RunStore(project.runs).list() if run.status() == "complete")
    return not any(is_candidates(run.config()) for run in runs)


async def first_plan(project: Project) -> Done:
    """Every run that the gates wait for, with its cost; nothing is run and nothing written.

    Raises `UsageError` before the first commit: an uncommitted harness is never promoted.
    """
    repo = Repo.open(project.harness)
    commit = repo.head()
    if commit is None:
        raise UsageError("the harness is not committed yet", hint="git commit it, then plan")
    state = load_state(project, commit)
    name, _ = project.policy(None)
    # The policy's digest is known once it is opened, and only runs are found by it.
    pair = Pair(policy=name, policy_id=name, policy_settings={}, harness_id=state.id, commit=commit)
    chosen = candidate(project, read_gates(project), pair, None)
    drift = await drifted_tools(project, state)
    results = run_gates(chosen.gates, Facts(drift=drift), kinds=KINDS)
    planned = Promotion(results=results, decision=decide(results))
    wanted = needed(chosen)
    hint = f"a short run tells what a call costs: {wanted[0].command} --limit 8" if wanted else ""
    if repo.dirty(project.harness):
        hint = "uncommitted changes of the harness are not in this plan: commit them first"
    return with_reach(chosen, summary(chosen, planned, wanted, hint), ())
