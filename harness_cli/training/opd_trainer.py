"""TRL's distillation trainer: as it is for prompts, with our rollouts for the simulator.

TRL computes the divergence, chunk by chunk over the whole vocabulary; where rollouts are ours, only
what it generates is replaced. Environment text is context: its tokens have no loss.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from trl import DistillationConfig, DistillationTrainer

from harness_cli.errors import HarnessError
from harness_cli.models.checkpoint import CheckpointPolicy
from harness_cli.models.checkpoint_model import CheckpointModel, load_model
from harness_cli.records.config import PolicyConfig
from harness_cli.training.collecting import generation_for
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.local_trainer import (
    Student,
    Watch,
    arguments,
    in_bfloat16,
    lora_config,
)
from harness_cli.training.playing import Place
from harness_cli.training.rollouts import Rollout, rollout_of
from harness_cli.training.task_order import TaskOrder

if TYPE_CHECKING:
    from harness_cli.training.environment import Environment
    from harness_cli.training.opd_job import OpdPlan


@contextmanager
def make_trainer(
    plan: "OpdPlan", folder: JobFolder, student: Student, watch: Watch | None
) -> Iterator[Any]:
    """The trainer of a plan; what its rollouts opened is given back at the end."""
    given = _common(plan, folder, student, watch)
    if plan.environment is None:
        yield PromptTrainer(**given)
        return
    player = Player(plan.environment, student, plan.base.named.digest)
    try:
        yield AgenticTrainer(player, **given)
    finally:
        player.close()


@dataclass(slots=True)
class Player:
    """Rolls the student out where its job plays."""

    environment: "Environment"
    student: Student
    digest: str
    policy: CheckpointPolicy = field(init=False)
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def __post_init__(self) -> None:
        student = self.student
        self.policy = CheckpointPolicy(
            self.environment.job.name,
            PolicyConfig(kind="checkpoint", concurrency=self.environment.job.at_once),
            lambda: CheckpointModel(student.model, student.tokenizer, student.template),
            digest=self.digest,
        )

    def play(self, tasks: Sequence[str], model: Any, step: int) -> list[Rollout]:
        """One rollout a task, by the weights as they are after `step` steps."""
        self.policy.swap(model, version=f"step-{step}")
        places = [Place(task, f"opd-{step}-{n}", 0) for n, task in enumerate(tasks)]
        return self._runner.run(self._play(places))

    def close(self) -> None:
        """Give everything back."""
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        await self.environment.ground.close()
        await self.policy.close()

    async def _play(self, places: Sequence[Place]) -> list[Rollout]:
        ground, job = self.environment.ground, self.environment.job
        for place in places:
            ground.prepare(place)
        room = asyncio.Semaphore(job.at_once)

        async def one(place: Place) -> Rollout:
            async with room:
                played = await ground.play(place, self.policy, generation_for(job, place))
            return rollout_of(played.trajectory, self.policy.name, self._decode)

        try:
            return list(await asyncio.gather(*(one(place) for place in places)))
        finally:
            await ground.settle()

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.student.tokenizer.decode(list(ids), skip_special_tokens=False))


class PromptTrainer(DistillationTrainer):  # type: ignore[misc]
    """Distillation on prompts, every one of which is read."""

    def _get_train_sampler(self, dataset: Any = None) -> TaskOrder:
        """TRL's order of prompts, but that it leaves out none and goes on where a job does."""
        args = self.args
        micro = args.per_device_train_batch_size * self.accelerator.num_processes
        return TaskOrder(
            len(self.train_dataset if dataset is None else dataset),
            each=micro * args.gradient_accumulation_steps,
            repeats=args.gradient_accumulation_steps,
            seed=args.seed,
            done=lambda: int(self.state.global_step),
        )


class AgenticTrainer(PromptTrainer):
    """Distillation on the student's own rollouts by the runtime, policy tokens alone."""

    def __init__(self, player: Player, **given: Any) -> None:
        self._player = player
        super().__init__(**given)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """TRL's hook: what was read and sampled, as the tensors that its loss takes."""
        tasks = [row["prompt"] for row in inputs]
        model = self.accelerator.unwrap_model(self.model)
        rollouts = self._player.play(tasks, model, int(self.state.global_step))
        parts = self.args.gradient_accumulation_steps if self.model.training else 1
        batch = rows_as_tensors(rollouts, self._tokenizer.pad_token_id, parts)
        batch = {k: v.to(self.accelerator.device) for k, v in batch.items()}
        batch["num_items_in_batch"] = self.accelerator.gather(batch["tool_mask"].sum()).sum()
        if not int(batch["num_items_in_batch"]):
            raise HarnessError("no rollout of this step holds a token that the student sampled")
        self._measure(rollouts)
        return batch

    def _measure(self, rollouts: Sequence[Rollout]) -> None:
        count = len(rollouts)
        measured = self._metrics["train" if self.model.training else "eval"]
        tokens = sum(sum(r.tokens.values()) for r in rollouts)
        measured["rollouts/tokens"].append(tokens / count)
        measured["rollouts/forks"].append(sum(r.forks for r in rollouts) / count)
        measured["rollouts/broken"].append(sum(r.broken for r in rollouts) / count)
        measured["rollouts/truncated"].append(sum(r.truncated for r in rollouts) / count)


def rows_as_tensors(rollouts: Sequence[Rollout], pad: int, parts: int) -> dict[str, Any]:
    """Rows of rollouts as TRL's loss takes them: prompts (R, P) padded on the left, what follows
    from the first sampled token on (R, C) on the right, `tool_mask` 1 on sampled tokens.

    A rollout whose context was rewritten has several rows; R is filled up with rows without loss to
    a multiple of `parts`, the micro-batches that TRL cuts them into.
    """
    split = [
        (row.input_ids[:first], row.input_ids[first:], row.segment_ids[first:])
        for rollout in rollouts
        for row in rollout.rows
        if (first := next((i for i, s in enumerate(row.segment_ids) if s), 0))
    ]
    split = split or [([pad], [pad], [0])]
    while len(split) % parts:
        split.append(([pad], [pad], [0]))
    left = max(len(prompt) for prompt, _, _ in split)
    right = max(len(said) for _, said, _ in split)
    count = len(split)
    made = {
        "prompt_ids": torch.full((count, left), pad),
        "prompt_mask": torch.zeros(count, left, dtype=torch.long),
        "completion_ids": torch.full((count, right), pad),
        "completion_mask": torch.zeros(count, right, dtype=torch.long),
        "tool_mask": torch.zeros(count, right, dtype=torch.long),
    }
    for i, (prompt, said, segments) in enumerate(split):
        made["prompt_ids"][i, left - len(prompt) :] = torch.tensor(prompt)
        made["prompt_mask"][i, left - len(prompt) :] = 1
        made["completion_ids"][i, : len(said)] = torch.tensor(said)
        made["completion_mask"][i, : len(said)] = 1
        made["tool_mask"][i, : len(said)] = (torch.tensor(segments) > 0).long()
    return made


def _common(
    plan: "OpdPlan", folder: JobFolder, student: Student, watch: Watch | None
) -> dict[str, Any]:
    """What both kinds give the trainer."""
    job = plan.job
    student.tokenizer.padding_side = "left"
    ends = CheckpointModel(student.model, student.tokenizer, student.template).ends
    student.model.generation_config.eos_token_id = sorted(ends)
    config = DistillationConfig(
        **arguments(job, folder, plan.steps),
        beta=1.0,
        temperature=job.temperature,
        top_p=1.0,
        top_k=0,
        max_completion_length=job.new_tokens,
    )
    prompts = [list(p.messages) if p.messages else p.id for p in plan.prompts]
    return {
        "model": student.model,
        "teacher_model": load_model(
            plan.teacher.folder, dtype="bfloat16" if in_bfloat16(job) else "float32"
        ),
        "args": config,
        "train_dataset": Dataset.from_dict({"prompt": prompts}),
        "processing_class": student.tokenizer,
        "peft_config": lora_config(job),
        "callbacks": [watch] if watch is not None else [],
    }
