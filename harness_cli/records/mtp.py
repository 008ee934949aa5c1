"""The draft head of a checkpoint: what a check finds, where a head comes from."""

from typing import Literal

import msgspec

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
