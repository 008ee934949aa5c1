"""A study run: the base, then for every seed each arm and what it scores on every set.

    base ──▶ states, lessons ──▶ seed 1: arm, sets, arm, sets, … ──▶ tables
                                 seed 2: …           (families side by side, a process each)

Jobs are `run_sft`, `run_opd` and `run_rl`, measuring is the evaluation engine. What is done is not
done again: jobs are known by their checkpoints, scores by their lines in `scores/`.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.judges.rewards.judge import RuleRewards
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.study import Arm, ArmScore, ArmTime, Measured, Study
from harness_cli.records.training_job import OpdTraining, SftTraining
from harness_cli.records.verdict import ItemResult
from harness_cli.store.runs import RunFolder
from harness_cli.training.study.checked import BASE_ARM
from harness_cli.training.study.families import units
from harness_cli.training.study.prepare import Ground, Said, copy_base, prepare

REASON = "a study measures its arms"
REWARDS = ("accuracy", "effectiveness", "tool_rationality", "skill_selection")


@dataclass(frozen=True, slots=True)
class Lines:
    """JSON lines of one kind and one seed."""

    path: Path

    def add(self, record: Any) -> None:
        """Append one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")

    def read(self, kind: Any) -> list[Any]:
        """All of them."""
        if not self.path.is_file():
            return []
        return [
            msgspec.json.decode(line, type=kind) for line in self.path.read_bytes().splitlines()
        ]


def scores_of(folder: Path, seed: int) -> Lines:
    """Scores of one seed; 0 is the base's, which has none."""
    return Lines(folder / "scores" / f"{seed}.jsonl")


def times_of(folder: Path, seed: int) -> Lines:
    """How long the jobs of one seed took."""
    return Lines(folder / "times" / f"{seed}.jsonl")


def ground_made(ground: Ground, said: Said) -> None:
    """The base, the states, the lessons, and what the base scores."""
    study = ground.study
    if isinstance(study.base, str):
        copy_base(ground, study.base)
    else:
        from harness_cli.training.tiny.base import Settings, make_base

        began, cpu = time.monotonic(), time.process_time()
        folder = ground.project.root / ground.base
        there = (folder / "model.safetensors").exists()
        settings = Settings(
            steps=study.base.steps, seed=study.base.seed, threads=study.base.threads
        )
        make_base(folder, settings, lambda line: said(_shown(line)))
        if not there:
            _timed(ground, BASE_ARM, 0, began, cpu, "")
    began, cpu = time.monotonic(), time.process_time()
    asyncio.run(prepare(ground, said))
    _timed(ground, "lessons", 0, began, cpu, "")
    measured(ground, BASE_ARM, 0, said)


def seed_run(ground: Ground, seed: int, said: Said, only: Sequence[str] = ()) -> None:
    """The arms of one seed that are wanted, in order: trained, then measured."""
    wanted = {name for _, names in units(ground.study.arms, [seed], only) for name in names}
    for arm in ground.study.arms:
        if arm.name not in wanted:
            continue
        began, cpu = time.monotonic(), time.process_time()
        made, new = trained(ground, arm, seed)
        if new:
            _timed(ground, arm.name, seed, began, cpu, made.digest)
            said(f"seed {seed}: {arm.name} trained in {time.monotonic() - began:.0f} s")
        measured(ground, arm.name, seed, said)


def named(arm: str, seed: int) -> str:
    """Checkpoint of an arm."""
    return f"{arm}-s{seed}"


def job_of(study: Study, arm: Arm, seed: int, base: str) -> SftTraining | OpdTraining | RlTraining:
    """The job of an arm. Raises `UsageError` for a stage or field that is not known."""
    stage = study.stages.get(arm.stage)
    if stage is None:
        raise UsageError(f"arm `{arm.name}`: no stage `{arm.stage}`")
    fields: dict[str, Any] = {
        "name": named(arm.name, seed),
        "base": base if arm.start == BASE_ARM else named(arm.start, seed),
        "seed": seed,
        "threads": study.threads,
        "served": {"temperature": 0.0, "max_tokens": 48},
        **stage.job,
        **arm.more,
    }
    if stage.verb == "opd":
        teacher = arm.teacher or BASE_ARM
        fields["teacher"] = base if teacher == BASE_ARM else named(teacher, seed)
    kind = {"sft": SftTraining, "opd": OpdTraining, "rl": RlTraining}[stage.verb]
    try:
        job: SftTraining | OpdTraining | RlTraining = msgspec.convert(fields, kind)
        return job
    except msgspec.ValidationError as exc:
        raise UsageError(f"arm `{arm.name}`: {exc}") from exc


def trained(ground: Ground, arm: Arm, seed: int) -> tuple[Checkpoint, bool]:
    """The checkpoint of an arm, and whether it was made now."""
    from harness_cli.training.opd_job import run_opd
    from harness_cli.training.rl_job import run_rl
    from harness_cli.training.sft_job import run_sft

    known = {line.arm for line in times_of(ground.folder, seed).read(ArmTime)}
    job = job_of(ground.study, arm, seed, ground.base)
    if isinstance(job, SftTraining):
        made = run_sft(ground.project, job, resume=True)
    elif isinstance(job, OpdTraining):
        made = run_opd(ground.project, job, resume=True)
    else:
        made = run_rl(ground.project, job, resume=True)
    return made, arm.name not in known


def measured(ground: Ground, arm: str, seed: int, said: Said) -> None:
    """Score an arm on every set that it has no line for."""
    lines = scores_of(ground.folder, seed)
    before = [line for line in lines.read(ArmScore) if line.arm == arm]
    known = {(line.arm, line.column) for line in before}
    for evalset in dict.fromkeys(m.evalset for m in ground.study.sets):
        columns = [m for m in ground.study.sets if m.evalset == evalset]
        if all((arm, m.column) in known for m in columns):
            continue
        names = {m.column for m in columns}
        there = next((line for line in before if line.column in names and line.run), None)
        for made in asyncio.run(_scores(ground, arm, seed, columns, there)):
            if (arm, made.column) not in known:
                lines.add(made)
                mean = sum(made.scores.values()) / max(1, len(made.scores))
                said(f"seed {seed}: {arm} {made.column} {100 * mean:.1f} ({made.seconds:.0f} s)")


async def _scores(
    ground: Ground, arm: str, seed: int, columns: Sequence[Measured], there: ArmScore | None
) -> list[ArmScore]:
    """Scores of one set: of the run that is there already, else of a new one."""
    began, cpu = time.monotonic(), time.process_time()
    if there is not None:
        run, took = RunFolder(ground.project.runs / there.run), (there.seconds, there.cpu_s)
    else:
        run = await _run(ground, arm, seed, columns[0].evalset)
        took = (round(time.monotonic() - began, 2), round(time.process_time() - cpu, 2))
    results = list(run.results())
    rewards = _rewards(ground, columns[0], run)
    parts = {
        name: sum(one[name] for one in rewards.values()) / len(results)
        for name in (REWARDS if rewards else ())
    }
    return [
        ArmScore(
            arm=arm,
            seed=seed,
            column=column.column,
            scores={r.item_id: _score(r, column, rewards) for r in results if _counts(r, column)},
            parts=parts,
            run=run.id,
            seconds=took[0],
            cpu_s=took[1],
        )
        for column in columns
    ]


async def _run(ground: Ground, arm: str, seed: int, evalset: str) -> RunFolder:
    study = ground.study
    policy = BASE_ARM if arm == BASE_ARM else f"checkpoint:{named(arm, seed)}"
    options = EvalOptions(
        evalset=evalset,
        split=study.split,
        policy=policy,
        limit=study.limit,
        concurrency=study.concurrency,
        reason=REASON,
        seed=0,
    )
    outcome = await evaluate(ground.project, options)
    outcome.check()
    return outcome.run


def _counts(result: ItemResult, column: Measured) -> bool:
    return column.tag is None or column.tag in result.tags


def _score(
    result: ItemResult, column: Measured, rewards: Mapping[str, Mapping[str, float]]
) -> float:
    """An item that broke counts 0: a policy that loops to the limit gave no answer."""
    if column.metric == "reward":
        mine = rewards.get(result.item_id, {})
        return sum(mine.values()) / len(REWARDS)
    if column.metric == "passed":
        return float(result.state == "passed")
    return float(result.scores.get("avg") or 0.0)


def _rewards(ground: Ground, column: Measured, run: RunFolder) -> dict[str, dict[str, float]]:
    """Item → the four rewards, 0 for what could not be scored; none where a set has no judge."""
    from harness_cli.evaluation.evalsets import load_evalset

    if column.metric == "passed":
        return {}
    loaded = load_evalset(ground.project, column.evalset, split=ground.study.split, reason=REASON)
    items = {item.id: item for item in loaded.items}
    judge = RuleRewards()
    found: dict[str, dict[str, float]] = {}
    for trajectory in run.trajectories():
        item = items[str(trajectory.item_id)]
        if loaded.states is not None:
            item, trajectory = loaded.states.in_base(item, trajectory)
        mine = dict.fromkeys(REWARDS, 0.0)
        for reward in judge.rewards(item, trajectory, loaded.world):
            if reward.dimension in REWARDS and reward.score is not None:
                mine[reward.dimension] = reward.score
        found[item.id] = mine
    return found


def all_scores(folder: Path, seeds: Sequence[int]) -> Iterator[ArmScore]:
    """Every line there is."""
    for seed in (0, *seeds):
        yield from scores_of(folder, seed).read(ArmScore)


def _timed(ground: Ground, arm: str, seed: int, began: float, cpu: float, digest: str) -> None:
    made = ArmTime(
        arm=arm,
        seed=seed,
        seconds=round(time.monotonic() - began, 1),
        cpu_s=round(time.process_time() - cpu, 1),
        checkpoint=digest[:16],
    )
    times_of(ground.folder, seed).add(made)


def _shown(line: dict[str, Any]) -> str:
    kept = ("step", "level", "loss", "listing:first", "chat:first", "instruction")
    return "base: " + ", ".join(f"{k} {line[k]:.3g}" for k in kept if k in line)
