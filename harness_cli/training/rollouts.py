"""A trajectory of the runtime as rows of tokens for reinforcement learning, nothing encoded anew.

Every answer carries what was read (`prompt_ids`), what was sampled (`token_ids`) and with which
log-probabilities. A row goes on as long as the next prompt begins with the row: what lies between
is the environment's and masked. Where the template rewrites what came before (thinking that is
dropped, a call printed in other words, a prompt made anew) a second row begins; so every token that
was sampled stands in exactly one row, behind exactly the context it was sampled in.

What is trained (**choice**, the report says nothing of either): an answer that hooks sent back was
sampled by the policy and bears on the reward, so it counts, with the segment it belongs to; an
answer of a fallback policy is context.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness_cli.errors import HarnessError, UsageError
from harness_cli.records.trajectory import Step, StopReason, Trajectory
from harness_cli.simulator.live.states import check_group
from harness_cli.training.segments import THOUGHT, Kind
from harness_cli.training.tokens import KINDS

Decode = Callable[[Sequence[int]], str]
CUT: Final = "length"
"""Finish reason of an answer that ran into its token limit."""


@dataclass(slots=True)
class Row:
    """One sequence of tokens; the lists are of one length."""

    input_ids: list[int] = field(default_factory=list)
    segment_ids: list[int] = field(default_factory=list)
    """`KINDS` of sampled tokens, 0 for everything else."""
    thought_ids: list[int] = field(default_factory=list)
    """1 for sampled tokens of reasoning."""
    logprobs: list[float] = field(default_factory=list)
    """Of the behaviour policy, at the sampling temperature; 0 where nothing was sampled."""

    def read(self, ids: Sequence[int]) -> None:
        """Add what the policy was shown."""
        self._add(ids, 0, [0] * len(ids), [0.0] * len(ids))

    def sampled(self, ids: Sequence[int], kind: int, thought: int, logp: Sequence[float]) -> None:
        """Add what it said, its first `thought` tokens being reasoning."""
        self._add(ids, kind, [1] * thought + [0] * (len(ids) - thought), logp)

    def _add(
        self, ids: Sequence[int], kind: int, thought: list[int], logp: Sequence[float]
    ) -> None:
        self.input_ids.extend(ids)
        self.segment_ids.extend([kind] * len(ids))
        self.thought_ids.extend(thought)
        self.logprobs.extend(logp)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One rollout as rows, with what its rewards and its bookkeeping need."""

    rows: tuple[Row, ...]
    policy_id: str
    """name@digest of the policy it was sampled under: another one after every update."""
    tokens: dict[str, int]
    """Sampled tokens by segment."""
    cot: dict[str, int]
    """Of those, tokens of reasoning."""
    prompt: tuple[int, ...] = ()
    """The first prompt: equal in all rollouts of a group."""
    truncated: bool = False
    """An answer ran into its token limit."""
    broken: bool = False
    """No reply that a judge could grade: a provider or the runtime failed."""

    @property
    def forks(self) -> int:
        """Rows beyond the first."""
        return max(0, len(self.rows) - 1)


def rollout_of(trajectory: Trajectory, policy: str, decode: Decode) -> Rollout:
    """The rows of one trajectory; `policy` names whose answers are trained.

    Raises `HarnessError` for an answer of that policy without tokens or log-probabilities: encoding
    its text anew would train tokens that were never sampled.
    """
    rows: list[Row] = []
    tokens: dict[str, int] = {str(kind): 0 for kind in KINDS}
    cot = dict(tokens)
    first: tuple[int, ...] = ()
    truncated = False
    sampled_by: set[str] = set()
    for step in trajectory.steps:
        if step.fallback or step.reply.policy != policy:
            continue
        prompt, ids, logp = _recorded(step, trajectory)
        sampled_by.add(step.reply.model)
        first = first or prompt
        if not ids:
            continue
        kind: Kind = "tool" if step.calls or step.reply.tool_calls else "reply"
        thought = _thought(step, ids, decode)
        row = _continued(rows, prompt)
        row.sampled(ids, KINDS[kind], thought, logp)
        tokens[kind] += len(ids)
        cot[kind] += thought
        truncated = truncated or step.reply.finish_reason == CUT
    if len(sampled_by) > 1:
        raise HarnessError(
            f"`{trajectory.request_id}`: the weights changed in the middle of it",
            hint="an update waits until every rollout of its batch has ended",
        )
    return Rollout(
        rows=tuple(rows),
        policy_id=trajectory.policy_id,
        tokens=tokens,
        cot=cot,
        prompt=first,
        truncated=truncated,
        broken=trajectory.stop in (StopReason.PROVIDER_ERROR, StopReason.ERROR),
    )


def check_rollouts(
    trajectories: Sequence[Trajectory], requests: Sequence[str], rollouts: Sequence[Rollout]
) -> None:
    """Raise `UsageError` for a group whose rollouts do not share (x, h), or its first prompt.

    `requests` are fingerprints of what each was asked (METHODS §6: a mixed group is an error).
    """
    check_group(trajectories, requests)
    policies = {r.policy_id for r in rollouts}
    if len(policies) > 1:
        raise UsageError(
            f"a mixed group: its rollouts were sampled under {len(policies)} policies",
            hint="the weights changed while the group was being rolled out",
        )
    prompts = {r.prompt for r in rollouts if r.prompt}
    if len(prompts) > 1:
        raise UsageError(
            "a mixed group: its rollouts were shown different prompts",
            hint="a hook or a prompt block that changes from one rollout to the next",
        )


def _recorded(
    step: Step, trajectory: Trajectory
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    reply = step.reply
    if reply.prompt_ids is None or reply.token_ids is None or reply.logprobs is None:
        raise HarnessError(
            f"`{trajectory.request_id}` step {step.index}: the policy `{reply.policy}` gave no "
            "tokens",
            hint="a `checkpoint` policy records them; training never encodes text anew",
        )
    if len(reply.token_ids) != len(reply.logprobs):
        raise HarnessError(
            f"`{trajectory.request_id}` step {step.index}: {len(reply.token_ids)} tokens and "
            f"{len(reply.logprobs)} log-probabilities"
        )
    return reply.prompt_ids, reply.token_ids, reply.logprobs


def _continued(rows: list[Row], prompt: Sequence[int]) -> Row:
    """The row that this prompt goes on, or a new one: the newest that it begins with."""
    for row in reversed(rows):
        so_far = len(row.input_ids)
        if so_far <= len(prompt) and row.input_ids == list(prompt[:so_far]):
            row.read(prompt[so_far:])
            return row
    made = Row()
    made.read(prompt)
    rows.append(made)
    return made


def _thought(step: Step, ids: Sequence[int], decode: Decode) -> int:
    """How many of the sampled tokens are reasoning: those up to the end of the think block."""
    if not step.reply.reasoning:
        return 0
    text = decode(ids)
    found = THOUGHT.match(text)
    if found is None:  # never closed: it thought to the end of its tokens, or in no tags we know
        return 0 if step.reply.content else len(ids)
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if len(decode(ids[:middle])) < found.end():
            low = middle + 1
        else:
            high = middle
    return low
