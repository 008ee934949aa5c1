"""`checkpoint.json`: what a registered checkpoint was made of, and the digests of its files."""

from typing import Any, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, NotNegative, Share


class ServedAs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How `--policy checkpoint:NAME` samples: settings of a policy entry in `harness.yaml`."""

    template: str | None = None
    max_tokens: AtLeastOne = 1024
    temperature: NotNegative | None = None
    top_p: Share | None = None
    context: AtLeastOne | None = None
    pipeline: str = "default"


class BaseModel(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint by name and digest."""

    name: str
    digest: str


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`.harness/checkpoints/NAME/checkpoint.json`, written last: without it there is none."""

    schema: int = 1
    name: str
    made_by: str
    """sft, opd, rl, study, mtp; `import` for one that came from outside."""
    format: Literal["full", "adapter"] = "full"
    digest: str
    """Over `files`: what policies, manifests and later jobs name it by."""
    files: dict[str, str]
    """File → SHA-256 of everything that decides its answers."""
    base: BaseModel | None = None
    """What it was trained from."""
    teacher: BaseModel | None = None
    data: dict[str, str] = {}
    """File or folder of training data → SHA-256."""
    job_sha256: str = ""
    job: dict[str, Any] = {}
    seed: int = 0
    steps: int = 0
    metrics: dict[str, float] = {}
    """Last values of the job's metrics."""
    created: str = ""
    served: ServedAs = ServedAs()
    versions: dict[str, str] = {}
