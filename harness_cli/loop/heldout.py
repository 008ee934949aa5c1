"""The held-out protocol for edits of the harness (TR §5.5, METHODS §8).

Several policies, each before and after the same edits, on a split that no diagnosis ever saw.
Errors are replies that the naturalness check (its rules, or a panel) objects to; error reduction =
(before − after) / before. The split is opened in the study's name, logged before the first score;
what was evaluated is kept, so that a stopped study goes on.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.progress import Observe
from harness_cli.evaluation.seal import Opening, openings
from harness_cli.harness.load import load_state
from harness_cli.judges.open import judge_config
from harness_cli.records.canonical import digest, write_json
from harness_cli.stats.paired import McNemar, mcnemar
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

COMMAND = ("harness", "edit", "heldout")
FOLDER = Path(".harness") / "heldout"
METRIC = "naturalness"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One policy in one harness on the split."""

    run: str
    errors: int
    scored: int
    missing: int
    """Items without a score: unscored or errored, counted and never dropped."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One policy before and after the edits (a row of TR Table 8)."""

    policy: str
    before: Side
    after: Side
    reduction: float | None
    """(before − after) / before; None where there was no error before."""
    mcnemar: McNemar | None
    """Of the items scored on both sides."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """`.harness/heldout/<id>.json`."""

    schema: int = 1
    id: str
    evalset: str
    split: str
    before: str
    after: str
    """Harness ids."""
    reason: str
    opened_before: tuple[Opening, ...]
    """Openings of the split by anything else: what was held out once is held out no more."""
    rows: tuple[Row, ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a study compares."""

    before: str
    after: str
    """Git revisions."""
    policies: tuple[str, ...]
    reason: str
    evalset: str = "harness_edit"
    split: str = "test"
    limit: int | None = None
    judge: str | None = None
    """A panel that decides naturalness by its votes; None: the deterministic rules."""


async def study(
    project: Project, asked: Asked, say: Callable[[str], None], observe: Observe | None
) -> Study:
    """Every policy on both harnesses, then the counts. Raises `UsageError` for a harness twice."""
    before, after = (load_state(project, rev) for rev in (asked.before, asked.after))
    if before.id == after.id:
        raise UsageError(
            f"`{asked.before}` and `{asked.after}` are one harness, {before.id[:12]}",
            hint="--before and --after name the harness before and after the edits",
        )
    name = study_id(project, asked, before.id, after.id)
    reason = f"held-out study {name}: {asked.reason}"
    log = project.evalsets / "seal.log.jsonl"
    earlier = tuple(
        o
        for o in openings(log)
        if (o.evalset, o.split) == (asked.evalset, asked.split) and not _ours(o, name)
    )
    rows = []
    for policy in asked.policies:
        sides = [
            await _side(project, asked, policy, rev, reason, say, observe)
            for rev in (asked.before, asked.after)
        ]
        rows.append(_row(policy, *sides))
    done = Study(
        id=name,
        evalset=asked.evalset,
        split=asked.split,
        before=before.id,
        after=after.id,
        reason=asked.reason,
        opened_before=earlier,
        rows=tuple(rows),
    )
    write_json(project.root / FOLDER / f"{name}.json", done)
    return done


def study_id(project: Project, asked: Asked, before: str, after: str) -> str:
    """Named by what it compares: the same question goes on with the same study."""
    held = load_evalset(project, asked.evalset, split=asked.split, reason=asked.reason)
    parts = [before, after, held.digest, asked.split, asked.limit]
    if asked.judge is not None:
        parts.append(asked.judge)
    return f"h-{digest(parts)[:10]}"


def _ours(opening: Opening, name: str) -> bool:
    return opening.why.startswith(f"held-out study {name}:")


async def _side(
    project: Project,
    asked: Asked,
    policy: str,
    rev: str,
    reason: str,
    say: Callable[[str], None],
    observe: Observe | None,
) -> tuple[RunFolder, dict[str, float | None]]:
    state = load_state(project, rev)
    begun = _begun(project, asked, policy, state.id)
    if begun is None or begun.status() != "complete":
        say(f"{policy} in harness {state.id[:12]}")
        options = EvalOptions(
            evalset=asked.evalset,
            split=asked.split,
            policy=policy,
            harness=rev,
            limit=asked.limit,
            judge=asked.judge,
            reason=reason,
            resume=begun,
            command=COMMAND,
        )
        outcome = await evaluate(project, options, observe=observe)
        outcome.check()
        begun = outcome.run
    return begun, {r.item_id: r.scores.get(METRIC) for r in begun.results()}


def _begun(project: Project, asked: Asked, policy: str, harness_id: str) -> RunFolder | None:
    for run in RunStore(project.runs).list():
        config = run.config()
        ref = config.evalset
        if (
            config.command[:3] == COMMAND
            and (config.policy, config.harness_id, config.limit)
            == (policy, harness_id, asked.limit)
            and (ref.name, ref.split) == (asked.evalset, asked.split)
            and (asked.judge is None or config.judge == asked.judge)
            and (asked.judge is not None or not decides_naturalness(project, config.judge))
        ):
            return run
    return None


def _row(
    policy: str,
    one: tuple[RunFolder, dict[str, float | None]],
    other: tuple[RunFolder, dict[str, float | None]],
) -> Row:
    before, after = _counted(*one), _counted(*other)
    both = [
        (x, y)
        for item, x in one[1].items()
        if x is not None and (y := other[1].get(item)) is not None
    ]
    return Row(
        policy=policy,
        before=before,
        after=after,
        reduction=reduction(before.errors, after.errors),
        mcnemar=mcnemar([x for x, _ in both], [y for _, y in both]) if both else None,
    )


def _counted(run: RunFolder, scores: dict[str, float | None]) -> Side:
    known = [s for s in scores.values() if s is not None]
    return Side(
        run=run.id,
        errors=sum(s < 1 for s in known),
        scored=len(known),
        missing=run.report().planned - len(known),
    )


def reduction(before: int, after: int) -> float | None:
    """(before − after) / before: 149 → 122 is 18.1 %, 238 → 115 is 51.7 % (TR Table 8)."""
    return None if before == 0 else (before - after) / before


def decides_naturalness(project: Project, judge: str) -> bool:
    """Whether a judge's votes decide naturalness, in place of the rules."""
    config = project.config.judges.get(judge)
    return config is not None and config.kind == "panel" and config.naturalness == "panel"


def naturalness_judge(project: Project, name: str | None) -> str | None:
    """The panel that is to decide naturalness. Raises `UsageError` for one that does not."""
    if name is not None:
        judge_config(project, name)
        if not decides_naturalness(project, name):
            raise UsageError(
                f"judge `{name}` leaves naturalness to the rules",
                hint=f"`naturalness: panel` under `judges: {name}` of harness.yaml",
            )
    return name


def policies_of(project: Project, named: Sequence[str] | None) -> tuple[str, ...]:
    """The named policies, each known and named once; the project's own where none is."""
    chosen = tuple(dict.fromkeys(named or ())) or (project.policy(None)[0],)
    for name in chosen:
        project.policy(name)
    return chosen
