"""A panel from its entry in `harness.yaml`: policies, the judge's harness, cache, bounds."""

from collections import Counter
from pathlib import Path

import msgspec

from harness_cli.errors import RepoError, UnknownName, UsageError
from harness_cli.harness.load import state_from_files
from harness_cli.harness.parts import JUDGES
from harness_cli.judges.panel.cache import VoteCache
from harness_cli.judges.panel.judge import PanelJudge, Voting
from harness_cli.judges.panel.members import (
    AgentMember,
    GroundedMember,
    Member,
    Slots,
    answering_tools,
)
from harness_cli.judges.panel.pairwise import PAIRWISE, PairJudge
from harness_cli.judges.panel.tally import Rule
from harness_cli.models.generation import generation_of
from harness_cli.models.open import open_policy
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.config import JudgeConfig, Limits
from harness_cli.records.harness import HarnessState
from harness_cli.runtime.agent import Agent
from harness_cli.store.project import Project
from harness_cli.store.redact import Redactor
from harness_cli.store.repo import Repo

GROUNDED = "grounded"
DEFAULT = "final"
"""The judge's harness that serves where a judge has none of its own."""
TEMPERATURE = 0.0
"""Of a judge whose policy sets none (**choice**): the same case should get the same vote."""
CONCURRENCY = 8
OWN = {"builtin": 2, "local": 1}
"""Calls side by side of embedded policies, as in an evaluation."""
SEED = 0


def open_panel(
    name: str,
    config: JudgeConfig,
    project: Project,
    *,
    fresh: bool = False,
    concurrency: int | None = None,
) -> PanelJudge:
    """The panel `name`. Nothing is started before its first vote."""
    _check(name, config)
    folder = harness_folder(name, config, project)
    voting = voting_in(folder, name, config, project, fresh=fresh, concurrency=concurrency)
    state = offered_under(voting.state, config.pipeline)
    members: list[Member] = [
        GroundedMember() if voter == GROUNDED else agent_member(project, voter, state, config)
        for voter in config.panel
    ]
    return PanelJudge(name, tuple(members), voting)


def open_pairwise(
    name: str,
    config: JudgeConfig,
    project: Project,
    *,
    fresh: bool = False,
    concurrency: int | None = None,
) -> PairJudge:
    """The panel `name` as a judge of pairs; `grounded` compares nothing and is left out."""
    config = msgspec.structs.replace(config, pipeline=PAIRWISE)
    if config.kind == "grounded":
        raise UsageError(
            f"judge `{name}` is the grounded judge, which grades single replies",
            hint="name a panel of policies, or `harness compare A B` for grades",
        )
    _check(name, config)
    folder = harness_folder(name, config, project)
    voting = voting_in(folder, name, config, project, fresh=fresh, concurrency=concurrency)
    state = offered_under(voting.state, PAIRWISE)
    voters = [voter for voter in config.panel if voter != GROUNDED]
    members = tuple(agent_member(project, voter, state, config) for voter in voters)
    return PairJudge(name, members, voting)


def voting_in(
    folder: Path,
    name: str,
    config: JudgeConfig,
    project: Project,
    *,
    kind: str = "votes",
    fresh: bool,
    concurrency: int | None,
) -> Voting:
    """What a panel in the judge's harness of `folder` is beside its members.

    `kind` keeps votes of another form apart in the cache. Raises `UnknownName`.
    """
    state = judge_state(folder)
    if config.pipeline not in state.pipelines:
        raise UnknownName.of(f"pipeline of judge `{name}`", config.pipeline, state.pipelines)
    own: dict[str, int] = {}
    for voter in config.panel:
        if voter != GROUNDED:
            policy = project.policy(voter)[1]
            bound = policy.concurrency or OWN.get(policy.kind)
            own |= {} if bound is None else {voter: bound}
    return Voting(
        state=state,
        pipeline=config.pipeline,
        rule=Rule(config.rule, config.split, config.quorum),
        slots=Slots(concurrency or CONCURRENCY, own),
        votes=VoteCache(
            project.runs.parent / "verdicts" / f"{name}.{kind}", Redactor.from_environment().text
        ),
        fresh=fresh,
        natural=config.naturalness == "panel",
    )


def agent_member(
    project: Project, policy_name: str, state: HarnessState, config: JudgeConfig
) -> AgentMember:
    """One policy as a member, in the judge's harness."""
    name, policy = project.policy(policy_name)
    agent = Agent(
        state=state,
        policy=open_policy(name, policy, root=project.root),
        executors={},
        world=Catalogue(snapshot=""),
        limits=Limits(rounds=config.rounds, call_ceiling_s=config.call_s),
        generation=generation_of(policy, SEED, temperature=TEMPERATURE),
        pipeline=config.pipeline,
        profile="judge",
        send_back_reasoning=policy.send_back_reasoning,
        text_calls=False,
    )
    return AgentMember(name, agent, answering_tools(state), cacheable=policy.kind != "replay")


def harness_folder(name: str, config: JudgeConfig, project: Project) -> Path:
    """Where the judge's harness lies."""
    if config.harness is not None:
        return project.root / config.harness
    own = project.harness / JUDGES / name
    return own if own.is_dir() else project.harness / JUDGES / DEFAULT


def judge_state(folder: Path) -> HarnessState:
    """The judge's harness from its working files, with its own tree id."""
    if not folder.is_dir():
        raise UsageError(
            f"no judge's harness at `{folder.name}`",
            hint="`harness init` ships `judges/final`; `harness: DIR` under `judges` names another",
        )
    repo = Repo.open(folder)
    files, head = repo.working_files(folder), repo.head()
    try:
        committed = repo.files(head, folder) if head else {}
    except RepoError:  # the folder is not committed yet
        committed = {}
    return state_from_files(
        files, dirty=committed != files, object_format=repo.object_format, judge=True
    )


def offered_under(state: HarnessState, pipeline: str) -> HarnessState:
    """The state with the tools of one pipeline: `_meta.harness.pipeline` ties a tool to one."""
    kept = tuple(t for t in state.tools if t.meta.get("harness.pipeline", pipeline) == pipeline)
    return msgspec.structs.replace(state, tools=kept)


def _check(name: str, config: JudgeConfig) -> None:
    if not config.panel:
        raise UsageError(
            f"judge `{name}` has no panel", hint=f"judges: {{{name}: {{panel: [policy, …]}}}}"
        )
    twice = [voter for voter, count in Counter(config.panel).items() if count > 1]
    if twice:
        raise UsageError(f"judge `{name}`: `{twice[0]}` would vote twice")
    if config.quorum is not None and config.quorum > len(config.panel):
        raise UsageError(
            f"judge `{name}`: a quorum of {config.quorum} of {len(config.panel)} members"
        )
