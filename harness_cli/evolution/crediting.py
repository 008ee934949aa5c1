"""`harness edit credit`: the runs around an applied proposal, and runs with one hunk left out."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, HarnessError, UnknownName, UsageError
from harness_cli.evaluation import noise
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.progress import Observe
from harness_cli.evolution.apply import base_id, changed_entries
from harness_cli.evolution.credit import (
    Credit,
    Flips,
    Outcome,
    credit,
    flips_of,
    left_out,
    outcomes,
)
from harness_cli.evolution.ops import apply_ops
from harness_cli.evolution.proposal_file import hunks
from harness_cli.evolution.single_use import Use, applied_proposals
from harness_cli.harness.load import state_from_files
from harness_cli.records.canonical import digest, write_json
from harness_cli.records.diagnosis import Proposal
from harness_cli.records.noise import Noise
from harness_cli.records.run import RunConfig
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunFolder, RunStore

FOLDER = Path(".harness") / "credit"
REFS = "refs/harness/credit/"
COMMAND = ("harness", "edit", "credit")


class CreditReport(msgspec.Struct, frozen=True, kw_only=True):
    """`.harness/credit/<proposal>.json`."""

    schema: int = 1
    proposal: str
    commit: str
    harness_id: str
    before: str
    after: str
    """Runs of the base and of the commit."""
    noise: Flips | None
    credits: tuple[Credit, ...]
    spent: int = 0
    """Items evaluated with a hunk left out."""


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """An applied proposal between the run it came from and the run that measured it."""

    proposal: Proposal
    use: Use
    harness_id: str
    before: RunFolder
    after: RunFolder


def find_around(project: Project, name: str | None) -> Around:
    """The named (or the newest measured) applied proposal with its two runs.

    Raises `UnknownName` without such a proposal, `UsageError` when a run is missing.
    """
    repo = Repo.open(project.harness)
    applied = applied_proposals(project)
    if not applied:
        raise UnknownName("no proposal was applied here", hint="`harness edit apply FILE` does")
    if name is not None:
        by_id = {proposal.id: (use, proposal) for use, proposal in applied}
        if name not in by_id:
            raise UnknownName.of("applied proposal", name, by_id)
        return _around(project, repo, *by_id[name])
    why: list[UsageError] = []
    for use, proposal in sorted(applied, key=lambda x: x[0].at, reverse=True):
        try:
            return _around(project, repo, use, proposal)
        except UsageError as exc:
            why.append(exc)
    raise why[0]


def _around(project: Project, repo: Repo, use: Use, proposal: Proposal) -> Around:
    made = base_id(project, repo, use.commit) if use.commit else None
    if made is None:
        raise UsageError(f"the commit of proposal `{proposal.id}` is not in this repository")
    store = RunStore(project.runs)
    try:
        before = store.get(proposal.diagnosis)
    except HarnessError:
        raise UsageError(
            f"the run `{proposal.diagnosis}` that proposal `{proposal.id}` came from is gone",
            hint="credit compares with it; evaluate the base again and propose anew",
        ) from None
    like = before.config()
    after = next((r for r in _complete(store) if _measures(r.config(), like, made)), None)
    if after is None:
        raise UsageError(
            f"proposal `{proposal.id}` was applied and not measured yet",
            hint=f"harness eval {like.evalset.name} --harness {use.branch}",
        )
    return Around(proposal=proposal, use=use, harness_id=made, before=before, after=after)


def _complete(store: RunStore) -> Iterable[RunFolder]:
    return (r for r in store.list() if not r.config().only and r.status() == "complete")


def _measures(config: RunConfig, like: RunConfig, harness_id: str) -> bool:
    return config.harness_id == harness_id and _likeness(config) == _likeness(like)


def _likeness(config: RunConfig) -> tuple[object, ...]:
    """What two runs must share for their items to be pairs."""
    return (config.evalset, config.policy_id, config.judge_id, config.agent, config.profile)


def noise_floor(project: Project, around: Around) -> Flips | None:
    """What an A/A run of this policy flips: the floor on record, else one of two runs alike."""
    store, like = RunStore(project.runs), around.before.config()
    found = noise.find(store, like, around.after.config()) or _unrecorded(store, like)
    return flips_of(found) if found else None


def _unrecorded(store: RunStore, like: RunConfig) -> Noise | None:
    """The noise of the newest two complete runs of one policy in one harness on these items."""
    by_harness: dict[tuple[object, ...], list[RunFolder]] = {}
    for run in _complete(store):
        config = run.config()
        if config.fresh and _likeness(config) == _likeness(like):
            key = (config.harness_id, config.limit, config.repeat)
            by_harness.setdefault(key, []).append(run)
    pairs = [runs[:2] for runs in by_harness.values() if len(runs) > 1]
    return noise.measure(max(pairs, key=lambda p: p[0].id)) if pairs else None


async def credited(
    project: Project,
    around: Around,
    *,
    budget: int = 0,
    say: Callable[[str], None],
    observe: Observe | None = None,
) -> CreditReport:
    """The report, written to `.harness/credit/`. `budget` items may be spent on leaving hunks out.

    A run with a hunk left out is kept and taken again, so that a stopped credit goes on.
    """
    before, after = outcomes(around.before.results()), outcomes(around.after.results())
    floor = noise_floor(project, around)
    found = list(credit(around.proposal, before, after, floor))
    spent = 0
    # Hunks that outcomes could not tell apart first: there a run says most.
    for n in sorted(range(len(found)), key=lambda n: found[n].mark != "cannot tell"):
        items = _moved(found[n], before, after)
        if not items or spent + len(items) > budget:
            continue
        try:
            run = await _without(project, around, found[n].hunk, items, observe)
        except BadFile as exc:
            say(f"{found[n].hunk} cannot be left out alone: {str(exc).splitlines()[0]}")
            continue
        spent += len(items)
        found[n] = left_out(found[n], _among(after, items), outcomes(run.results()), floor)
        say(f"{found[n].hunk}: {found[n].mark}")
    report = CreditReport(
        proposal=around.proposal.id,
        commit=around.use.commit or "",
        harness_id=around.harness_id,
        before=around.before.id,
        after=around.after.id,
        noise=floor,
        credits=tuple(found),
        spent=spent,
    )
    write_json(project.root / FOLDER / f"{around.proposal.id}.json", report)
    return report


def _moved(
    found: Credit, before: Mapping[str, Outcome], after: Mapping[str, Outcome]
) -> tuple[str, ...]:
    """What the hunk promised, and every item that changed between the two runs."""
    both = before.keys() & after.keys()
    changed = {i for i in both if before[i].passed != after[i].passed}
    return tuple(sorted(changed | (set(found.predicted) & both)))


def _among(seen: Mapping[str, Outcome], items: Iterable[str]) -> dict[str, Outcome]:
    return {i: seen[i] for i in items}


async def _without(
    project: Project, around: Around, hunk: str, items: tuple[str, ...], observe: Observe | None
) -> RunFolder:
    """A run of the harness with every accepted hunk but one, on these items."""
    repo = Repo.open(project.harness)
    entries = repo.files(f"{around.use.commit}^", project.harness)
    ops = [
        op
        for name, _, op in hunks(around.proposal)
        if name != hunk and op.decision.state in ("accept", "modify")
    ]
    changes = apply_ops({path: entry.data for path, entry in entries.items()}, ops)
    files = changed_entries(entries, changes)
    state = state_from_files(files, object_format=repo.object_format)
    like = around.after.config()
    begun = _begun(project, like, state.id, items)
    if begun is not None and begun.status() == "complete":
        return begun
    ref = f"{REFS}{around.proposal.id}/{digest(hunk)[:12]}"
    repo.keep_tree(ref, files, f"{around.proposal.id} without {hunk}")
    options = EvalOptions(
        evalset=like.evalset.name,
        split=like.evalset.split,
        policy=like.policy,
        harness=ref,
        judge=like.judge,
        agent=like.agent,  # type: ignore[arg-type]
        profile=like.profile,
        only=items,
        repeat=like.repeat,
        seed=like.seed,
        resume=begun,
        command=(*COMMAND, around.proposal.id),
    )
    outcome = await evaluate(project, options, observe=observe)
    outcome.check()
    return outcome.run


def _begun(
    project: Project, like: RunConfig, harness_id: str, items: tuple[str, ...]
) -> RunFolder | None:
    """The run that asked the same before, whole or cut short."""
    for run in RunStore(project.runs).list():
        config = run.config()
        same = config.only == items and config.harness_id == harness_id
        if same and _likeness(config) == _likeness(like):
            return run
    return None
