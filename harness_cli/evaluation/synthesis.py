"""Robustness sets from scenario seeds (TR App. E.3): draft, check, solve, keep or draw again.

    seed ─▶ draft ─▶ rules ─▶ reference solver in the real runtime ─▶ item
             ▲ (words of a policy, judged by it)                │ discarded
             └──────────────────────────────────────────────────┘

Without a policy everything is a function of the seed. A policy may write the viewer's comment and
judge its consistency; the set then says so and never serves in that policy's headline.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from harness_cli.errors import HarnessError, UnknownName
from harness_cli.evaluation.agents import for_item, open_executors
from harness_cli.evaluation.expansion import Author, NotUsable
from harness_cli.harness.load import load_state
from harness_cli.judges.assertions import check_assertion
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.canonical import digest
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.robustness.build import METRICS, PREFIX, SIZES, Drafts
from harness_cli.simulator.robustness.consistency import faults
from harness_cli.simulator.robustness.drafts import Draft
from harness_cli.simulator.robustness.seeds import Seeds, read_seeds
from harness_cli.simulator.robustness.solvers import oracle
from harness_cli.simulator.scenarios.library import read_library
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project

TRIES = 40
"""Drafts for one place of a set; when none is usable the seeds are at fault."""
SIDE_BY_SIDE = 8
"""Places a policy writes at a time."""


@dataclass(slots=True)
class Synthesis:
    """A finished set and what was thrown away for it."""

    header: EvalsetHeader
    items: list[Item]
    discarded: Counter[str] = field(default_factory=Counter)
    """Reason → drafts."""

    @property
    def discard_rate(self) -> float:
        """Discarded drafts over all drafts."""
        thrown = self.discarded.total()
        return thrown / (thrown + len(self.items)) if self.items or thrown else 0.0

    def remarks(self) -> str:
        """Drafts, discards and their reasons in one line."""
        thrown = self.discarded.total()
        reasons = ", ".join(f"{n} {why}" for why, n in self.discarded.most_common(3))
        told = f"{thrown} of {thrown + len(self.items)} drafts discarded ({self.discard_rate:.1%})"
        return f"{told}: {reasons}" if reasons else told


def synthesise(
    project: Project,
    name: str,
    *,
    seed: int,
    count: int | None = None,
    author: Author | None = None,
    observe: Callable[[int, int], None] | None = None,
) -> Synthesis:
    """Build one set; nothing is written. The same seed without an `author` gives the same items.

    Raises `UnknownName` for a set that is not built this way, `HarnessError` when the seeds give
    no usable draft.
    """
    if name not in SIZES:
        raise UnknownName.of("synthetic evalset", name, SIZES)
    world = read_catalogue(project.evalsets / "catalogue")
    scenarios = project.evalsets / "scenarios"
    seeds = read_seeds(scenarios)
    count = SIZES[name] if count is None else count
    context = read_library(scenarios).context
    drafts = Drafts(name, seeds, world, context, seed=seed, count=count)
    state = load_state(project)
    executors = open_executors(state, world, catalogue=project.evalsets / "catalogue")
    agent = Agent(state=state, policy=ScriptedPolicy(()), executors=executors, world=world)
    trial = Trial(drafts, agent, author, observe=observe)
    asyncio.run(_finished(trial, author))
    header = header_of(name, seeds, seed, author, trial)
    return Synthesis(header, trial.kept, trial.discarded)


async def _finished(trial: "Trial", author: Author | None) -> None:
    try:
        await trial.all()
    finally:
        if author is not None:
            await author.close()


def header_of(
    name: str, seeds: Seeds, seed: int, author: Author | None, trial: "Trial"
) -> EvalsetHeader:
    """The header, whose provenance says how the set was made and by whom it was filtered."""
    source = digest(msgspec.to_builtins(seeds))[:12]
    if author is None:
        how = "templates; checked by rules and a scripted reference solver, by no policy"
    else:
        how = f"comments written and checked by {author.policy_id}, then rules and the solver"
    return EvalsetHeader(
        name=name,
        licence="Apache-2.0",
        provenance=f"synthetic (TR App. E.3): seeds {source}, seed {seed}, {how}",
        metrics=METRICS[name],
        judge="none",
        filtered_by=() if author is None else (author.policy_id,),
        notes=Synthesis(EvalsetHeader(name=name), trial.kept, trial.discarded).remarks(),
    )


class Trial:
    """Drafts on trial, place by place."""

    def __init__(
        self,
        drafts: Drafts,
        agent: Agent,
        author: Author | None,
        *,
        observe: Callable[[int, int], None] | None = None,
    ) -> None:
        self._drafts = drafts
        self._agent = agent
        self._author = author
        self._observe = observe
        self._known = frozenset(t.name for t in agent.state.all_tools())
        self._seen: set[str] = set()
        self.discarded: Counter[str] = Counter()
        self.kept: list[Item] = []

    async def all(self) -> None:
        """Fill `kept` with every item of the set, in its order."""
        found: dict[int, Item] = {}
        width = SIDE_BY_SIDE if self._author else 1
        places = iter(range(self._drafts.count))

        async def work() -> None:
            for place in places:
                found[place] = await self._place(place)
                if self._observe:
                    self._observe(len(found), self._drafts.count)

        await asyncio.gather(*(work() for _ in range(width)))
        self.kept = [found[place] for place in sorted(found)]

    async def _place(self, place: int) -> Item:
        for attempt in range(TRIES):
            draft = self._drafts.draft(place, attempt)
            why, draft = await self._tried(draft)
            if why is None:
                number = f"{PREFIX[self._drafts.name]}-{place + 1:04d}"
                return msgspec.structs.replace(draft.item, id=number)
            self.discarded[why] += 1
        raise HarnessError(
            f"no usable draft for place {place + 1} of `{self._drafts.name}`: {why}",
            hint="look at evalsets/scenarios/robustness/",
        )

    async def _tried(self, draft: Draft) -> tuple[str | None, Draft]:
        """Why a draft is thrown away, or None; the draft with the words it ended up with."""
        if self._author is not None:
            try:
                draft = await self._author.expanded(draft)
            except NotUsable as exc:
                return str(exc), draft
        if draft.key in self._seen:
            return "asks what an earlier one asks", draft
        wrong = faults(draft, self._known)
        if wrong:
            return wrong[0], draft
        unsolved = await solve(draft, self._agent)
        if unsolved is None:
            self._seen.add(draft.key)
        return unsolved, draft


async def solve(draft: Draft, agent: Agent) -> str | None:
    """What the reference solver fails at under the harness; None when it passes every rubric."""
    item = draft.item
    solver = replace(for_item(agent, item), policy=oracle(draft, agent.state))
    done = await rollout(item.request, solver, request_id="reference", item_id=item.id)
    if done.errored:
        return "a hook of the harness stops the reference solver"
    for rubric in item.assert_:
        if not check_assertion(rubric, done).passed:
            return f"the reference solver fails {rubric.metric}"
    return None
