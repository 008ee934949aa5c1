"""The draft head of a checkpoint: what a check finds, where a head comes from, its training."""

from typing import Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, NotNegative, Share
from harness_cli.records.training_job import TrainingJob

HeadTrouble = Literal[
    "absent",
    "missing",
    "misnamed",
    "shape",
    "non_finite",
    "zero",
    "quantised",
    "mixed_types",
    "experts",
    "index",
    "config",
    "stale",
    "provenance",
    "steps",
]
"""What can be wrong with a head; `absent`: no tensor of it, `missing`: some are not there."""
Family = Literal["qwen", "deepseek"]
HeadOrigin = Literal["native", "transplanted", "trained", "random"]
"""`native`: came with this policy. `transplanted`: of another policy, untrained on this one.
`trained`: trained on rollouts of this one. `random`: never trained at all."""


class HeadFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that keeps a head from serving as it should."""

    trouble: HeadTrouble
    level: Literal["error", "warning"]
    """An error makes the head draft nothing or wrong tokens; servers start all the same."""
    message: str
    fix: str
    tensors: tuple[str, ...] = ()
    """Names at fault, the first of them."""


class HeadProvenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`mtp_provenance.json` beside the weights: which head this is and whom it drafts for."""

    schema: int = 1
    origin: HeadOrigin
    head_digest: str
    """Of the `mtp.*` tensors as they were put in (`models.weights.digest_of`)."""
    policy_digest: str
    """Of all other tensors then. Others now: the policy moved on and the head is stale."""
    trained_for: str | None = None
    """Policy digest the head was trained for; None when that is not known."""
    source: str
    """Folder, file or training job it came from, as it was named."""
    source_digest: str | None = None
    """Digest of the policy tensors beside the head in `source`; None for a bare head."""
    steps: int | None = None
    """Optimizer steps of `harness train mtp`."""
    made: str
    """ISO 8601, UTC."""
    by: str
    """The verb that wrote it, with the version of this program."""


class HeadReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `harness mtp check`."""

    checkpoint: str
    family: Family | None
    """None when neither the config nor a tensor speaks of a head."""
    layers: int
    """Layers of the head by the config (`mtp_num_hidden_layers`, `num_nextn_predict_layers`)."""
    tensors: int
    parameters: int
    dtypes: tuple[str, ...]
    experts: Literal["none", "fused", "per-expert"] = "none"
    head_digest: str | None = None
    policy_digest: str | None = None
    provenance: HeadProvenance | None = None
    findings: tuple[HeadFinding, ...] = ()

    @property
    def errors(self) -> tuple[HeadFinding, ...]:
        """What must be mended before the head drafts anything right."""
        return tuple(f for f in self.findings if f.level == "error")

    @property
    def ok(self) -> bool:
        """Whether nothing but warnings was found."""
        return not self.errors


ArmName = Literal["native", "transplanted", "trained", "random", "stale", "absent"]


class MtpTraining(TrainingJob, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`harness train mtp`: the draft head alone, by TR Eq. 6, on rollouts of the frozen `base`.

    The arms that more checkpoints make possible are compared in the same run (METHODS §7).
    """

    prompts: tuple[str, ...] = ()
    """`.jsonl` files with `prompt` (text or messages), relative to the project."""
    runs: tuple[str, ...] = ()
    """Recorded runs that `base` itself sampled (`--policy checkpoint:…`): their calls are learnt
    from in place of fresh answers, as TR App. F learns from rollouts of HSA-RL."""
    rollouts: AtLeastOne = 256
    """Answers of the policy that the head learns from; prompts are taken in turn."""
    new_tokens: AtLeastOne = 96
    """Longest answer."""
    prompt_tokens: AtLeastOne = 2048
    """A longer prompt ends the job."""
    temperature: NotNegative = 1.0
    """The policy's, in rollouts and where drafting is measured by sampling."""
    depths: AtLeastOne = 3
    """K of Eq. 6: tokens ahead that are learnt; as many as will be drafted."""
    head: str | None = None
    """Checkpoint or `.safetensors` file whose head is transplanted; the base's own without it."""
    native: str | None = None
    """The base model with its own head: the arm `native`."""
    moved: str | None = None
    """The policy after more training: the arm `stale`."""
    random: bool = False
    """Train a head from nothing as well: the arm `random`."""
    measured: AtLeastOne = 16
    """Held-out prompts that drafting is measured on; they are in no rollout that is learnt from."""
    drafts: AtLeastOne = 3
    """Tokens drafted a pass where it is measured."""
    standin_steps: AtLeastOne | None = None
    """Make the checkpoints named `standin-…` that are not there yet, in so many steps: tiny models
    of Qwen3.5's kind on synthetic text, to try this verb without a model."""
    top_p: Share = 1.0


class Drafting(msgspec.Struct, frozen=True, kw_only=True):
    """How one head drafted for one policy in one way of sampling."""

    way: Literal["greedy", "exact", "lossy"]
    """`exact`: sampled at thresholds 1.0/1.0; `lossy`: at TR Table 19's 0.5/0.7."""
    accept_length: float
    accept_rate: float | None
    """accepted / drafted (SGLang 0.5.11 and later); None where nothing was drafted."""
    old_accept_rate: float | None
    """accept length / (drafts + 1): SGLang 0.5.4 to 0.5.10, and TR Table 20."""
    passes: int
    tokens: int
    same_as_plain: bool | None = None
    """Greedy: whether every token is plain decoding's."""


class MtpArm(msgspec.Struct, frozen=True, kw_only=True):
    """One policy with one head."""

    name: ArmName
    policy: str
    policy_digest: str
    head_digest: str | None = None
    origin: HeadOrigin | None = None
    steps: int = 0
    first_loss: float | None = None
    """Of step 1, before anything is learnt."""
    last_loss: float | None = None
    """Mean of the last 25 steps."""
    drafting: tuple[Drafting, ...] = ()


class MtpComparison(msgspec.Struct, frozen=True, kw_only=True):
    """`arms.json` of a job: METHODS §7's arms side by side."""

    schema: int = 1
    name: str
    drafts: int
    depths: int
    rollouts: int
    prompts_measured: int
    policy_digest_before: str
    policy_digest_after: str
    """Of the frozen policy in memory; the same, or the job fails."""
    arms: tuple[MtpArm, ...]
