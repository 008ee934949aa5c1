"""Rollouts that a policy made before: the calls of recorded runs, token by token as sampled.

What is no answer of this very policy would teach the head another one's words. So the recorded
log-probabilities of a few calls are computed again, and a run that disagrees is refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from harness_cli.errors import UsageError
from harness_cli.records.mtp import MtpTraining
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.runs import RunFolder
from harness_cli.training.mtp.rollouts import Rollout

LOOKED_AT: Final = 4
"""Calls of each run that are computed again, the shortest."""
APART: Final = 0.05
"""Mean difference of log-probabilities that rounding and batching explain."""


@dataclass(frozen=True, slots=True)
class Call:
    """One sampled answer and the log-probabilities it was sampled with."""

    rollout: Rollout
    logprobs: tuple[float, ...]


def recorded(policy: Any, runs: Sequence[Path], job: MtpTraining) -> list[Rollout]:
    """The calls of recorded runs that fit the job's lengths.

    Raises `UsageError` for a run without tokens, or of another policy.
    """
    found: list[Rollout] = []
    for path in runs:
        folder = RunFolder(path)
        calls = calls_of(folder.trajectories())
        if not calls:
            raise UsageError(
                f"run `{path.name}` kept no tokens",
                hint="only runs of --policy checkpoint:… have the tokens that were sampled",
            )
        temperature = folder.config().policy_settings.get("temperature")
        refuse_other_policy(policy, calls, 1.0 if temperature is None else temperature, path.name)
        found += [c.rollout for c in calls if len(c.rollout.prompt) <= job.prompt_tokens]
    if not found:
        raise UsageError(
            f"no recorded prompt has at most {job.prompt_tokens} tokens", hint="raise prompt_tokens"
        )
    return found


def calls_of(trajectories: Iterable[Trajectory]) -> list[Call]:
    """Answers with tokens, none of a fallback policy; two tokens are the least that is learnt."""
    return [
        Call(
            Rollout(prompt=list(reply.prompt_ids), sampled=list(reply.token_ids)),
            tuple(reply.logprobs or ()),
        )
        for trajectory in trajectories
        for step in trajectory.steps
        if not step.fallback
        and (reply := step.reply).prompt_ids
        and reply.token_ids
        and len(reply.token_ids) > 1
    ]


def refuse_other_policy(policy: Any, calls: Sequence[Call], temperature: float, name: str) -> None:
    """Raise `UsageError` where the recorded log-probabilities are not this policy's."""
    told = [c for c in calls if len(c.logprobs) == len(c.rollout.sampled)]
    chosen = sorted(told, key=lambda c: len(c.rollout.ids))[:LOOKED_AT]
    apart = [
        abs(a - b)
        for call in chosen
        for a, b in zip(call.logprobs, logprobs(policy, call.rollout, temperature), strict=True)
    ]
    if not apart or sum(apart) / len(apart) > APART:
        mean = f"{sum(apart) / len(apart):.2f} nats apart" if apart else "without log-probabilities"
        raise UsageError(
            f"run `{name}` was not sampled by this policy: {mean}",
            hint="name runs of the very checkpoint in `base`",
        )


def logprobs(policy: Any, rollout: Rollout, temperature: float) -> list[float]:
    """Log-probabilities of the sampled tokens at a temperature above 0 (1 in place of 0)."""
    ids = torch.tensor([rollout.ids], device=policy.device)
    with torch.no_grad():
        logits = policy(input_ids=ids, use_cache=False).logits[0].float()
    first = len(rollout.prompt)
    logp = (logits[first - 1 : -1] / (temperature or 1.0)).log_softmax(-1)
    wanted = torch.tensor(rollout.sampled, device=policy.device)
    return [float(x) for x in logp.gather(-1, wanted[:, None])[:, 0]]
