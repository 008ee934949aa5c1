"""Training jobs: what `train/*.yaml` ask for, how far a job is, and one line of its metrics."""

from typing import Any, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, NotNegative, Positive, Share
from harness_cli.records.checkpoint import ServedAs
from harness_cli.records.training import StudentName

Status = Literal["running", "done", "stopped", "failed"]


class Lora(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Low-rank adapters in place of all weights."""

    r: AtLeastOne = 16
    alpha: AtLeastOne = 32
    dropout: Share = 0.0
    targets: tuple[str, ...] = ()
    """Names of linear layers; all of them when empty."""
    save: Literal["merged", "adapter"] = "merged"
    """The checkpoint holds whole weights, or the adapter alone, which needs its base beside it."""


class TrainingJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every job says: from which checkpoint, how long, how fast, where it is kept."""

    schema: int = 1
    name: str
    """Of the job's folder and of the checkpoint that comes of it."""
    base: str
    """A registered checkpoint, a model's folder relative to the project, or `smollm2`."""
    template: str | None = None
    """Chat template in place of the base's own (`trl:NAME`, a Jinja file): it goes into the
    checkpoint."""
    seed: int = 0
    steps: AtLeastOne | None = None
    """Optimiser steps; else `epochs`."""
    epochs: Positive = 1.0
    batch: AtLeastOne = 4
    """Rows that go through the model at a time, a process."""
    accumulate: AtLeastOne = 1
    """Forward passes that make one optimiser step."""
    lr: Positive = 1e-5
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    warmup: Share = 0.03
    """Share of the steps."""
    weight_decay: NotNegative = 0.0
    clip: Positive = 1.0
    """Largest norm of a gradient."""
    lora: Lora | None = None
    """Adapters; all weights without it."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the arithmetic; auto: float32 on a processor, bfloat16 on a GPU."""
    threads: AtLeastOne | None = None
    """Of torch; its own choice without one. A resumed curve is the same under the same number."""
    save_every: AtLeastOne = 50
    """Steps between states that `--resume` goes on from."""
    keep: AtLeastOne = 2
    """Such states that are kept."""
    served: ServedAs = ServedAs()
    """How `--policy checkpoint:NAME` samples."""
    measured_by: tuple[str, ...] = ()
    """Evalsets that will measure the checkpoint, beside the sealed and test splits of the project:
    no item of theirs may be in the data."""


class SftTraining(TrainingJob, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`harness train sft`: supervised, on rows of `harness export sft`."""

    data: tuple[str, ...]
    """Folders of data sets, or `.jsonl` files of rows, relative to the project."""
    students: tuple[StudentName, ...] = ("agent",)
    """Which rows of a data set."""
    max_tokens: AtLeastOne = 16384
    """A longer row ends the job: nothing is cut or dropped."""


class OpdTraining(TrainingJob, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`harness train opd`: on-policy distillation, KL(student ‖ teacher) on the student's words."""

    kind: Literal["general", "agentic"] = "general"
    teacher: str
    """A checkpoint of the same vocabulary: the base, or the RL checkpoint."""
    prompts: tuple[str, ...] = ()
    """`general`: `.jsonl` files with `prompt` (text or messages), relative to the project."""
    new_tokens: AtLeastOne = 256
    """Longest answer of the student."""
    prompt_tokens: AtLeastOne = 4096
    """A longer prompt ends the job."""
    temperature: Positive = 1.0
    environment: dict[str, Any] = {}
    """`agentic`: where the student is rolled out, fields of an RL job (`evalset`, `split`, `limit`,
    `rooms`, `augmented`, `recipe`, `pool`); what is not said is as it was for the teacher."""


class TrainingState(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json` of a job's folder: who runs it and how far it is."""

    schema: int = 1
    name: str
    verb: str
    """sft, opd, rl …"""
    status: Status = "running"
    pid: int = 0
    boot_id: str = ""
    begun: int = 0
    """Start of the process in clock ticks since boot: a pid alone proves nothing."""
    started: str = ""
    ended: str = ""
    step: int = 0
    steps: int = 0
    loss: float | None = None
    saved: int = 0
    """Step of the newest state that `--resume` goes on from."""
    job_sha256: str = ""
    data_sha256: str = ""
    checkpoint: str = ""
    """Digest of the registered checkpoint, once it is done."""
    error: str = ""
