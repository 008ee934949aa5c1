"""One iteration's rollouts: played side by side, made into rows, rewarded, written down."""

import asyncio
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.errors import HarnessError, JudgeError
from harness_cli.judges.base import Judge
from harness_cli.models.base import Policy
from harness_cli.records.chat import Generation
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.rl_job import RlTraining, RolloutLine
from harness_cli.training.playing import Place, Played, Playground
from harness_cli.training.rollouts import Decode, Rollout, check_rollouts, rollout_of

ROLLOUTS: Final = "rollouts.jsonl"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RolloutLine).decode


@dataclass(frozen=True, slots=True)
class Collected:
    """One rollout, rewarded."""

    place: Place
    played: Played
    rollout: Rollout
    rewards: dict[str, float | None]
    """By dimension; None is unscored, which is not 0."""
    unscored: str = ""
    """Why, where something is."""


@dataclass(slots=True)
class Clock:
    """Seconds of an iteration by what they went to."""

    generation: float = 0.0
    """Rollouts: the model's tokens, and the loop between them."""
    own: float = 0.0
    """Rows, rewards by rule, advantages, batches, bookkeeping."""
    judge: float = 0.0
    """Waiting for a reward judge that asks models."""


@dataclass(slots=True)
class Collector:
    """Plays, rewards and checks. Sync: a trainer calls it between two updates."""

    ground: Playground
    policy: Policy
    judge: Judge
    job: RlTraining
    decode: Decode
    by_rule: bool = True
    clock: Clock = field(default_factory=Clock)
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def collect(self, places: Sequence[Place]) -> list[Collected]:
        """The rollouts of these places, in order. Raises `UsageError` for a mixed group,
        `HarnessError` for a reward that is no number and where nothing at all was scored."""
        return self._runner.run(self._collect(places))

    def close(self) -> None:
        """End what was started."""
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        await self.ground.close()
        await self.judge.close()
        await self.policy.close()

    async def _collect(self, places: Sequence[Place]) -> list[Collected]:
        began = time.perf_counter()
        for place in {p.group: p for p in places}.values():
            self.ground.prepare(place)
        played = await self._bounded([partial(self._played, place) for place in places])
        self.clock.generation += time.perf_counter() - began
        began = time.perf_counter()
        rollouts = [rollout_of(p.trajectory, self.policy.name, self.decode) for p in played]
        self._check(places, played, rollouts)
        self.clock.own += time.perf_counter() - began
        began = time.perf_counter()
        rewards = await self._bounded([partial(self._rewards, p) for p in played])
        spent = time.perf_counter() - began
        if self.by_rule:
            self.clock.own += spent
        else:
            self.clock.judge += spent
        await self.ground.settle()
        return [
            Collected(place, one, rollout, scores, why)
            for place, one, rollout, (scores, why) in zip(
                places, played, rollouts, rewards, strict=True
            )
        ]

    async def _bounded(self, work: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        """Everything, `at_once` side by side; the first that raises ends the others."""
        room = asyncio.Semaphore(self.job.at_once)

        async def one(begin: Callable[[], Awaitable[Any]]) -> Any:
            async with room:
                return await begin()

        tasks = [asyncio.ensure_future(one(begin)) for begin in work]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _played(self, place: Place) -> Played:
        return await self.ground.play(place, self.policy, generation_for(self.job, place))

    async def _rewards(self, played: Played) -> tuple[dict[str, float | None], str]:
        if played.trajectory.errored:
            return {}, played.trajectory.error or "the rollout broke"
        try:
            verdict = await self.judge.judge(played.item, played.judged, played.world)
        except JudgeError as exc:
            return {}, f"judge: {exc}"
        for name, score in verdict.scores.items():
            if score is not None and not math.isfinite(score):
                raise HarnessError(
                    f"the reward `{name}` of `{played.trajectory.request_id}` is {score}",
                    hint=f"judge `{verdict.judge}`; the last state and checkpoint are untouched",
                )
        return dict(verdict.scores), verdict.unscored_reason or ""

    def _check(
        self, places: Sequence[Place], played: Sequence[Played], rollouts: Sequence[Rollout]
    ) -> None:
        groups: dict[str, list[int]] = {}
        for at, place in enumerate(places):
            groups.setdefault(place.group, []).append(at)
        for members in groups.values():
            check_rollouts(
                [played[at].trajectory for at in members],
                [played[at].request for at in members],
                [rollouts[at] for at in members],
            )


def generation_for(job: RlTraining, place: Place) -> Generation:
    """How a rollout is sampled: top-p 1, the trainer's temperature, a seed of its own."""
    named = f"{job.seed}/{place.group}/{place.number}".encode()
    return Generation(
        temperature=job.temperature,
        top_p=1.0,
        max_tokens=job.new_tokens,
        max_tokens_ceiling=job.new_tokens,
        seed=int.from_bytes(hashlib.sha256(named).digest()[:6], "big"),
    )


def line_of(
    made: Collected, *, step: int, version: str, advantages: dict[str, float]
) -> RolloutLine:
    """What is written down of a rollout."""
    trajectory = made.played.trajectory
    return RolloutLine(
        step=step,
        task=made.place.task,
        group=made.place.group,
        rollout=made.place.number,
        policy_id=made.rollout.policy_id,
        version=version,
        harness_id=trajectory.harness_id,
        augmented=made.played.augmented,
        request=made.played.request,
        trajectory_sha256=trajectory_digest(trajectory),
        stop=trajectory.stop.value,
        reply=trajectory.reply,
        rewards=made.rewards,
        unscored=made.unscored,
        tokens=made.rollout.tokens,
        cot=made.rollout.cot,
        rows=len(made.rollout.rows),
        advantages=advantages,
    )


def write_lines(folder: Path, lines: Sequence[RolloutLine]) -> None:
    """Add rollouts to the job's record."""
    with (folder / ROLLOUTS).open("ab") as file:
        file.write(b"".join(_encode(line) + b"\n" for line in lines))


def read_lines(folder: Path) -> list[RolloutLine]:
    """Every rollout of a job; a last line that was cut short is left out."""
    path = folder / ROLLOUTS
    found: list[RolloutLine] = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            found.append(_decode(line))
        except msgspec.DecodeError:
            break
    return found


def cut_lines(folder: Path, step: int) -> None:
    """Forget the rollouts made from a step on: they are going to be made again."""
    kept = [line for line in read_lines(folder) if line.step < step]
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{ROLLOUTS}.part"
    part.write_bytes(b"".join(_encode(line) + b"\n" for line in kept))
    part.replace(folder / ROLLOUTS)
