"""HSA-RL jobs: what is rolled out under which harness states, what is rewarded, which loss."""

from typing import Any, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, NotNegative, Positive, Share
from harness_cli.records.training import Bucket
from harness_cli.records.training_job import TrainingJob


class Penalty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """q(L) on the tokens of reasoning of a segment (TR Eq. 2)."""

    low: NotNegative = 100
    """No penalty up to so many tokens."""
    high: Positive = 200
    """All of it from so many on."""
    weight: NotNegative = 0.1
    """λ, after normalisation (TR Eq. 3); 0 switches it off."""


class Rooms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks from live rooms of the simulator: one request of a room a task."""

    tasks: AtLeastOne = 256
    """How many rooms; each has a seed of its own."""
    first: int = 0
    """Seed of the first one."""
    settings: dict[str, Any] = {}
    """As `simulator/live/settings.py` has them; `requests` and `turns` stay 1."""


class RlTraining(TrainingJob, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`harness train rl`: rollouts of the runtime, rewards, GDPO and GSPO by segment (TR §3.3).

    One iteration rolls out `groups` tasks `rollouts` times each and makes `updates` × `passes`
    optimiser steps of it; `steps` counts optimiser steps. `accumulate` follows from these and stays
    1 here; `batch` is rollouts that go through the model at a time.
    """

    evalset: str = ""
    """Items of an open split; without one, rooms of the simulator."""
    split: Literal["train", "dev"] = "dev"
    limit: AtLeastOne | None = None
    tasks: str | None = None
    """Folder of `harness export rl-tasks`, or its `tasks.jsonl`: of the evalset these items alone.
    They say `evalset` and `split`, which may then be left out."""
    buckets: tuple[Bucket, ...] = ()
    """Of these tasks the ones of such difficulty; all of them when empty."""
    rooms: Rooms = Rooms()
    augmented: Share = 0.5
    """Share of groups under an augmented harness state; 0 trains on the original alone."""
    recipe: str | None = None
    """`augment.yaml`, relative to the project."""
    pool: AtLeastOne = 100
    """Distinct augmented states that groups are dealt."""
    groups: AtLeastOne = 8
    """Tasks an iteration."""
    rollouts: AtLeastOne = 8
    """G: rollouts of each, under one request and one harness state."""
    updates: AtLeastOne = 1
    """Optimiser steps that an iteration's rollouts are divided over."""
    passes: AtLeastOne = 1
    """Times that each rollout is used."""
    temperature: Positive = 1.0
    top_p: Positive = 1.0
    """1, or the job is refused: what is cut off the tail is missing in every ratio."""
    new_tokens: AtLeastOne = 512
    """Longest answer."""
    at_once: AtLeastOne = 64
    """Rollouts that run side by side."""
    reward_judge: str | None = None
    """Else `roles.reward_judge`, else rewards by rule. Never one that sits in the final panel."""
    penalty: Penalty = Penalty()
    final: Literal["group", "batch", "none"] = "group"
    """What the second normalisation is over: the report's group, or TRL's and verl's batch."""
    std: Literal["population", "sample"] = "population"
    spread: NotNegative = 0.01
    """Smallest deviation of a reward within a group that counts."""
    ratio: Literal["sequence", "token"] = "sequence"
    """Of TR Eq. 4, or of its Algorithm 1."""
    denominator: Literal["sampled", "kept"] = "sampled"
    """Divide by the rollouts sampled (Eq. 4), or by what the zero-advantage filter left."""
    epsilon_low: NotNegative = 3e-4
    epsilon_high: NotNegative = 4e-4
    """Clip range of the ratio; GSPO's own, the report names none."""
    kl: NotNegative = 0.0
    """β of a KL penalty to the base (k3); Eq. 4 has none."""
    truncated: Literal["keep", "drop"] = "keep"
    """A rollout with an answer that ran into `new_tokens`: rewarded as it is, or left out."""


class RolloutLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `rollouts.jsonl`: one rollout, its rewards and the weights it was made with."""

    step: int
    """Optimiser steps made before it."""
    task: str
    group: str
    rollout: int
    policy_id: str
    """name@digest of the policy as it was then: another one after every update."""
    version: str
    """`step-N` of the weights."""
    harness_id: str
    augmented: bool
    request: str
    """Fingerprint of what was asked, with what is expected: one in a group."""
    trajectory_sha256: str
    stop: str
    reply: str = ""
    rewards: dict[str, float | None]
    unscored: str = ""
    tokens: dict[str, int]
    """Sampled tokens by segment."""
    cot: dict[str, int]
    """Of those, reasoning."""
    rows: int
    """Rows of tokens: more than one where the context was rewritten on the way."""
    advantages: dict[str, float] = {}
    """By segment, after the second normalisation."""
