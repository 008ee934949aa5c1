"""What a job asks of a cluster's engine, in plain numbers: the seam between jobs and exporters."""

from dataclasses import dataclass
from typing import Literal

from harness_cli.records.training_job import Lora


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimising:
    """What all kinds of jobs share."""

    name: str
    model: str
    """As the cluster finds it."""
    seed: int
    steps: int | None
    """Updates; else `epochs`."""
    epochs: float = 1.0
    lr: float
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup: float = 0.0
    weight_decay: float = 0.0
    clip: float = 1.0
    lora: Lora | None = None
    save_every: int = 50
    keep: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RlPlan(Optimising):
    """Reinforcement by segments."""

    prompts: int
    """Of a step."""
    group: int
    """Rollouts of a prompt."""
    updates: int = 1
    """Optimiser steps that the rollouts of a step are divided over."""
    passes: int = 1
    """Times that each rollout is used."""
    clip_low: float = 3e-4
    clip_high: float = 4e-4
    ratio: Literal["sequence", "token"] = "sequence"
    beta: float = 0.0
    """KL to the initial policy, k3."""
    temperature: float = 1.0
    prompt_tokens: int = 8192
    response_tokens: int = 4096
    """All that follows the first prompt: answers, tool results, hook messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpdPlan(Optimising):
    """Distillation on the student's own words."""

    teacher: str
    prompts: int
    kind: Literal["general", "agentic"] = "general"
    temperature: float = 1.0
    prompt_tokens: int = 4096
    response_tokens: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SftPlan(Optimising):
    """Supervised rows, masked by us."""

    batch: int
    """Rows of an update."""
    longest: int
    """Tokens of the longest row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlan(Optimising):
    """The draft head alone, on the answers of a policy that stays as it is."""

    prompts: int
    temperature: float = 1.0
    prompt_tokens: int = 2048
    response_tokens: int = 96
