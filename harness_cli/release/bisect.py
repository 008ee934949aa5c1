"""Which switch carries a regression: the two mixed pairs between two states of a channel."""

from dataclasses import dataclass, replace

import msgspec

from harness_cli.errors import HarnessError, Stale, UnknownName, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.progress import Observe
from harness_cli.records.gates import Gate
from harness_cli.records.manifest import Channel, Manifest
from harness_cli.release.candidate import Pair, evidence_of, fits, read_gates, run_for
from harness_cli.release.channels import content, list_manifests, read_channel
from harness_cli.release.costing import Cost, estimate
from harness_cli.release.gates.facts import scores_by_item
from harness_cli.release.measure import Needed
from harness_cli.release.proving import mixed_pair, options_for
from harness_cli.stats.paired import paired
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

CORNERS = ("old policy, old harness", "old policy, new harness", "new policy, old harness",
           "new policy, new harness")  # fmt: skip
OLD, HARNESS, POLICY, NEW = CORNERS


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What one change does to the metric, paired by item."""

    what: str
    """harness, policy, both."""
    run: str
    n: int
    delta: float | None
    low: float | None
    high: float | None

    @property
    def worse(self) -> bool:
        """The whole interval lies below 0."""
        return self.high is not None and self.high < 0


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """Which axis carries what."""

    channel: str
    metric: str
    evalset: str
    old: tuple[str, str]
    """Manifests of the policy and of the harness."""
    new: tuple[str, str]
    effects: tuple[Effect, ...]
    verdict: str
    missing: tuple[tuple[str, Cost], ...] = ()
    """Commands that were not run, with their cost (--plan)."""


@dataclass(frozen=True, slots=True)
class Question:
    """Two states of a channel and the gate whose metric compares them."""

    project: Project
    channel: Channel
    gate: Gate
    old: tuple[Manifest, Manifest]
    new: tuple[Manifest, Manifest]

    @property
    def pairs(self) -> dict[str, Pair]:
        """Corner → pair."""
        sides = [(p, h) for p in (self.old, self.new) for h in (self.old, self.new)]
        return {name: mixed_pair(p[0], h[1]) for name, (p, h) in zip(CORNERS, sides, strict=True)}

    def options(self, pair: Pair) -> EvalOptions:
        """How a pair is measured: on as many items as what serves now was."""
        served = run_for(self.project, self.gate, self.pairs[NEW], None)
        limit = served.config().limit if served else None
        return replace(options_for(pair, self.gate), limit=limit)


def question(project: Project, name: str, gate: str | None) -> Question:
    """What a channel serves now against the newest earlier state that differs in both switches.

    Raises `HarnessError` where only one switch ever moved: then it is that one.
    """
    channel = read_channel(project.manifests, name)
    known = list_manifests(project.manifests)
    if channel.policy is None or channel.harness is None:
        raise HarnessError(f"channel `{name}` serves nothing", hint="harness status")
    now = content(known, channel.policy, "policy"), content(known, channel.harness, "harness")
    one = ""
    for event in reversed(channel.history):
        if event.policy is None or event.harness is None:
            continue
        was = content(known, event.policy, "policy"), content(known, event.harness, "harness")
        moved = [axis for axis, a, b in zip(("policy", "harness"), was, now, strict=True) if a != b]
        if len(moved) == 2:
            return Question(
                project=project,
                channel=channel,
                gate=gate_of(project, gate),
                old=(known[event.policy], known[event.harness]),
                new=(known[channel.policy], known[channel.harness]),
            )
        one = one or (moved[0] if moved else "")
    told = f"only the {one} of `{name}` has moved: what changed, it carries" if one else ""
    raise HarnessError(
        told or f"channel `{name}` has had one state only",
        hint=f"harness rollback {name}" if one else "harness status",
    )


def gate_of(project: Project, name: str | None) -> Gate:
    """The gate whose run and metric decide: the named one, or the first business gate."""
    gates = {g.name: g for g in read_gates(project).gates if g.kind in ("regression", "capability")}
    if name is not None and name not in gates:
        raise UnknownName.of("gate", name, gates)
    found = gates.get(name) if name else next(iter(gates.values()), None)
    if found is None:
        raise UsageError(f"{project.config.gates} holds no gate that compares with an incumbent")
    return found


async def bisect_axes(
    asked: Question, *, budget: Budget, plan: bool = False, observe: Observe | None = None
) -> Bisection:
    """The four pairs measured, those that are not there yet run or resumed, and what follows.

    `budget` bounds each run; one that stops at it raises `BudgetReached` and is gone on with by the
    same call. With `plan` nothing is run.
    """
    runs: dict[str, RunFolder] = {}
    missing: list[tuple[str, Cost]] = []
    for corner, pair in asked.pairs.items():
        run = run_for(asked.project, asked.gate, pair, None)
        if run is None and plan:
            options = asked.options(pair)
            command = Needed(gate=asked.gate, role="candidate", options=options).command
            missing.append((command, estimate(asked.project, options)))
        elif run is None:
            run = await measured(asked, pair, budget, observe)
        if run is not None:
            runs[corner] = run
    effects = [
        effect(what, runs[OLD], runs[corner], asked.gate.metric)
        for what, corner in (("harness", HARNESS), ("policy", POLICY), ("both", NEW))
        if OLD in runs and corner in runs
    ]
    return Bisection(
        channel=asked.channel.name,
        metric=asked.gate.metric,
        evalset=str(asked.gate.evalset),
        old=(asked.old[0].predicate.id, asked.old[1].predicate.id),
        new=(asked.new[0].predicate.id, asked.new[1].predicate.id),
        effects=tuple(effects),
        verdict=verdict({e.what: e for e in effects}),
        missing=tuple(missing),
    )


async def measured(
    asked: Question, pair: Pair, budget: Budget, observe: Observe | None
) -> RunFolder:
    """A pair's run, made or gone on with."""
    options = asked.options(pair)
    begun = next(
        (
            run
            for run in RunStore(asked.project.runs).list()
            if fits(asked.gate, pair, run.config()) and run.status() not in ("complete", "running")
        ),
        None,
    )
    if begun is not None:
        options = EvalOptions(resume=begun, command=options.command)
    outcome = await evaluate(asked.project, replace(options, budget=budget), observe=observe)
    outcome.check()
    config = outcome.run.config()
    if (config.policy_id, config.harness_id) != (pair.policy_id, pair.harness_id):
        raise Stale(
            f"the policy `{pair.policy}` is {config.policy_id} now, the manifest has "
            f"{pair.policy_id}",
            hint="bring its settings in harness.yaml back to those of the manifest",
        )
    return outcome.run


def effect(what: str, old: RunFolder, new: RunFolder, metric: str) -> Effect:
    """The paired difference of two runs on the items both have."""
    a, b = (scores_by_item(evidence_of(run), metric) for run in (old, new))
    found = paired([b[i] - a[i] for i in sorted(a.keys() & b.keys())])
    return Effect(
        what=what, run=new.id, n=found.n, delta=found.mean, low=found.low, high=found.high
    )


def verdict(effects: dict[str, Effect]) -> str:
    """The axis in words. An axis carries a regression where its own change alone is worse."""
    if len(effects) < 3:
        return "not decided: runs are missing"
    alone = [axis for axis in ("harness", "policy") if effects[axis].worse]
    if len(alone) == 2:
        return "both switches carry it, each on its own"
    if alone:
        return f"the {alone[0]} carries it"
    if effects["both"].worse:
        return "neither alone: the new policy and the new harness do not go together"
    return "no regression is seen on these items"
