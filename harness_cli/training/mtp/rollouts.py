"""Answers of the frozen policy that a draft head learns from: sampled once, kept, digested."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from harness_cli.errors import BadFile
from harness_cli.models.checkpoint_model import CheckpointModel, Row
from harness_cli.records.canonical import digest, write_atomic
from harness_cli.records.chat import ChatRequest, Message
from harness_cli.records.mtp import MtpTraining
from harness_cli.training.mtp.loss import Batch

TOGETHER = 32
"""Prompts that are sampled at a time."""


class Rollout(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One answer: tokens of the prompt, tokens that the policy sampled behind it."""

    prompt: list[int]
    sampled: list[int]

    @property
    def ids(self) -> list[int]:
        """Both."""
        return [*self.prompt, *self.sampled]


def encoded(
    model: CheckpointModel, prompts: Sequence[tuple[Message, ...]], most: int
) -> list[list[int]]:
    """Tokens of the prompts by the checkpoint's own template. Raises `BadFile` for a long one."""
    made = []
    for messages in prompts:
        ids = model.prompt(ChatRequest(messages=messages))
        if len(ids) > most:
            raise BadFile(
                f"a prompt has {len(ids)} tokens, more than {most}", hint="raise `prompt_tokens`"
            )
        made.append(ids)
    return made


def sampled(
    model: CheckpointModel,
    prompts: Sequence[Sequence[int]],
    job: MtpTraining,
    observe: Callable[[int, int], None],
) -> list[Rollout]:
    """`job.rollouts` answers, prompts in turn, each with a seed of its own."""
    rows = [
        Row(
            prompt=list(prompts[n % len(prompts)]),
            most=job.new_tokens,
            temperature=job.temperature,
            seed=f"{job.seed}:mtp:{n}",
        )
        for n in range(job.rollouts)
    ]
    for start in range(0, len(rows), TOGETHER):
        model.sample(rows[start : start + TOGETHER])
        observe(min(start + TOGETHER, len(rows)), len(rows))
    # Two tokens are the least that Eq. 6 has a term for.
    return [Rollout(prompt=r.prompt, sampled=r.ids) for r in rows if len(r.ids) > 1]


def kept(path: Path, identity: dict[str, Any], make: Callable[[], list[Rollout]]) -> list[Rollout]:
    """The rollouts in a file where it is of this policy, these prompts and settings; else anew."""
    known = digest(identity)
    if path.is_file():
        head, *lines = path.read_bytes().splitlines()
        if json.loads(head).get("identity") == known:
            return [msgspec.json.decode(line, type=Rollout) for line in lines]
    made = make()
    text = json.dumps({"schema": 1, "identity": known, **identity}).encode() + b"\n"
    write_atomic(path, text + b"".join(msgspec.json.encode(r) + b"\n" for r in made))
    return made


def batch_of(rollouts: Sequence[Rollout]) -> Batch:
    """Rollouts side by side, padded on the right with 0."""
    lengths = [len(r.ids) for r in rollouts]
    ids = torch.zeros(len(rollouts), max(lengths), dtype=torch.long)
    for row, rollout in enumerate(rollouts):
        ids[row, : lengths[row]] = torch.tensor(rollout.ids)
    first = torch.tensor([len(r.prompt) for r in rollouts])
    return Batch(ids, first, torch.tensor(lengths))


def hidden_states(policy: Any, batch: Batch) -> Tensor:
    """(B, L, H) after the final norm: what lm_head reads. Right padding changes no real token."""
    with torch.no_grad():
        out: Tensor = policy.model(input_ids=batch.ids, use_cache=False).last_hidden_state
    return out
