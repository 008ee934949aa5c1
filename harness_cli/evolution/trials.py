"""Variants of a diagnosed run's harness, tried on items of its own split before anybody is asked.

The policy, the judge and the seed are those of the run; the harness alone differs. A trial writes
nothing: what it found goes into the proposal, and the next evaluation measures it again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from harness_cli.errors import JudgeError, UsageError
from harness_cli.evaluation.agents import for_item, open_agent, open_executors
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.plan import CONCURRENCY
from harness_cli.evaluation.results import item_result
from harness_cli.evolution.apply import changed_entries
from harness_cli.evolution.ops import Changes
from harness_cli.evolution.session import Examined
from harness_cli.harness.load import files_at, state_from_files
from harness_cli.judges.assertions import check_assertions
from harness_cli.judges.base import Judge
from harness_cli.judges.open import open_judge
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.config import JudgeConfig
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.verdict import ItemResult
from harness_cli.runtime.agent import Agent, Executor
from harness_cli.runtime.loop import rollout
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.tree import Entry

METRIC = "avg"
"""What an item is worth; without it, 1 where it passed and 0 where it did not."""


@dataclass(slots=True)
class Trials:
    """An open policy and judge, and how many rollouts may still be made."""

    agent: Agent
    judge: Judge | None
    world: Catalogue
    items: Mapping[str, Item]
    entries: Mapping[str, Entry]
    """The harness files of the run, judges and failure classes included."""
    project: Project
    object_format: str
    left: int
    concurrency: int
    spent: int = 0

    async def worth(self, changes: Changes, items: Iterable[str]) -> dict[str, float]:
        """What each of the items is worth in the harness with the changes made.

        Raises `BadFile` where the changes leave no valid harness, `UsageError` over the budget.
        """
        asked = [self.items[i] for i in items if i in self.items]
        if len(asked) > self.left:
            raise UsageError(f"{len(asked)} rollouts are asked for and {self.left} are left")
        state = state_from_files(
            changed_entries(self.entries, changes), object_format=self.object_format
        )
        own = {} if self._runs_alike(state) else self._opened(state)
        agent = replace(self.agent, state=state, executors=own or self.agent.executors)
        self.left -= len(asked)
        self.spent += len(asked)
        try:
            gate = asyncio.Semaphore(self.concurrency)
            results = await asyncio.gather(*(self._one(agent, item, gate) for item in asked))
        finally:
            for executor in own.values():
                await executor.close()
        return {result.item_id: worth_of(result) for result in results}

    def _runs_alike(self, state: HarnessState) -> bool:
        """Its tools run as the base's do: what is open already serves, servers included."""
        base = self.agent.state
        code = [{p: d for p, d in s.files.items() if p.endswith(".py")} for s in (base, state)]
        kinds = [{t.executor for t in s.all_tools()} for s in (base, state)]
        return (
            (base.mcp, base.lock) == (state.mcp, state.lock)
            and code[0] == code[1]
            and (kinds[0] == kinds[1])
        )

    def _opened(self, state: HarnessState) -> dict[str, Executor]:
        return open_executors(state, self.world, catalogue=self.project.evalsets / "catalogue")

    async def _one(self, agent: Agent, item: Item, gate: asyncio.Semaphore) -> ItemResult:
        async with gate:
            made = await rollout(
                item.request, for_item(agent, item), request_id=f"{item.id}#0", item_id=item.id
            )
            verdict, error = None, None
            if self.judge is not None and not made.errored:
                try:
                    verdict = await self.judge.judge(item, made, self.world)
                except JudgeError as exc:  # an item without a verdict is worth nothing here
                    error = str(exc)
            checked = () if made.errored else check_assertions(item, made, {})
            return item_result(item, made, verdict, checked, judge_error=error)


def worth_of(result: ItemResult) -> float:
    """What an item's result is worth, between 0 and 1."""
    score = result.scores.get(METRIC)
    return score if score is not None else float(result.state == "passed")


@asynccontextmanager
async def open_trials(project: Project, seen: Examined, *, budget: int) -> AsyncIterator[Trials]:
    """Trials on the items of a run, with at most `budget` rollouts.

    Raises `UsageError` for a run whose items are gone, changed or in harness states of their own:
    its rollouts cannot be made again.
    """
    config = seen.config
    evalset = load_evalset(project, config.evalset.name, split=config.evalset.split)
    if evalset.digest != config.evalset.digest or evalset.states is not None:
        raise UsageError(
            f"the items of run `{seen.run.id}` cannot be rolled out again as they were",
            hint="evaluate the evalset as it is now, then propose from that run",
        )
    repo = Repo.open(project.harness)
    rev = config.harness_ref or config.harness_commit or config.harness_id
    name, policy = project.policy(config.policy)
    async with AsyncExitStack() as stack:
        agent = await stack.enter_async_context(
            open_agent(
                project,
                seen.state,
                name,
                world=evalset.world,
                profile=config.profile,
                kind=config.agent,  # type: ignore[arg-type]
                seed=config.seed,
            )
        )
        judge = _judge(project, config.judge)
        if judge is not None:
            stack.push_async_callback(judge.close)
        yield Trials(
            agent=agent,
            judge=judge,
            world=evalset.world,
            items={item.id: item for item in evalset.items},
            entries=files_at(repo, project.harness, rev)[0],
            project=project,
            object_format=repo.object_format,
            left=budget,
            concurrency=policy.concurrency or CONCURRENCY.get(policy.kind, 8),
        )


def _judge(project: Project, name: str) -> Judge | None:
    if name == "none":
        return None
    return open_judge(name, project.config.judges.get(name, JudgeConfig(kind="grounded")), project)
