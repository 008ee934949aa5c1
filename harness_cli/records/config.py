"""`harness.yaml`: where things lie, which policies and judges there are, and every time bound."""

from typing import Annotated, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, NotNegative, Positive, Share


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens. A policy without one has unknown cost, never 0."""

    input: NotNegative
    output: NotNegative
    cached: NotNegative | None = None


class CheckpointRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights a policy serves."""

    uri: str
    sha256: str | None = None


class DraftSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Drafting with the head that lies in a checkpoint. 1.0 / 1.0 samples from the policy itself;
    below, drafts are accepted that it would not have sampled so often."""

    num_steps: AtLeastOne = 3
    accept_threshold_single: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    accept_threshold_acc: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0


class PolicyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry under `policies`."""

    kind: Literal["builtin", "local", "checkpoint", "openai", "scripted", "replay"]
    model: str = ""
    base_url: str | None = None
    api_key_env: str | None = None
    transport: Literal["lean", "openai"] = "lean"
    stream: bool = True
    price: Price | None = None
    checkpoint: CheckpointRef | None = None
    fallback: str | None = None
    """Name of the policy that answers when one call of this one fails."""
    pipeline: str = "default"
    """Variant of the prompt pipeline, `compact` for small contexts."""
    context: AtLeastOne | None = None
    """Context length in tokens, where it bounds the prompt."""
    max_tokens: AtLeastOne | None = None
    temperature: NotNegative | None = None
    top_p: Share | None = None
    attempt_timeout_s: Positive = 60.0
    total_timeout_s: Positive = 180.0
    stall_timeout_s: Positive = 20.0
    max_attempts: AtLeastOne = 5
    script: str | None = None
    """File of scripted replies (`scripted`) or a cassette (`replay`)."""
    send_back_reasoning: bool = False
    """Send `reasoning_content` of tool turns back, which DeepSeek's V4 demands."""
    concurrency: AtLeastOne | None = None
    sha256: str | None = None
    mtp: DraftSettings | None = None
    """Sample with the checkpoint's own draft head (`checkpoint`)."""
    adapter: str | None = None
    """Folder of a peft adapter over the checkpoint (`checkpoint`)."""
    template: str | None = None
    """Chat template in place of the checkpoint's own: a Jinja file, a folder, `trl:NAME`."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of a checkpoint's weights on this machine; auto: as stored, where the processor has it."""


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry under `judges`: the grounded judge, or a panel of policies with its own harness."""

    kind: Literal["grounded", "panel"] = "panel"
    panel: tuple[str, ...] = ()
    """Names of policies, one vote each; `grounded` is the deterministic judge as a member."""
    rule: Literal["majority", "unanimous"] = "majority"
    """What a grade needs of the scored votes: more than half of them, or all."""
    split: Literal["median", "lower", "unscored"] = "median"
    """What follows where no grade has that: the median where it is a grade, the lower of the two
    middle votes, or no score."""
    quorum: AtLeastOne | None = None
    """Scored votes below which nothing is scored; more than half of the members by default."""
    harness: str | None = None
    """Folder of the judge's harness; `judges/<name>` of the harness, else `judges/final`."""
    pipeline: str = "default"
    naturalness: Literal["rules", "panel"] = "rules"
    """Who decides an item's `naturalness`: the deterministic rules, or this panel's votes."""
    rounds: AtLeastOne = 6
    """Model calls of one vote."""
    call_s: Positive = 180.0
    """One model call of a vote, with its retries; a vote whose call takes longer is unscored."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of one request, METHODS §1. None is unbounded."""

    rounds: AtLeastOne = 4
    first_call_s: Positive | None = None
    later_call_s: Positive | None = None
    tool_s: Positive = 5.0
    hook_s: Positive = 2.0
    trajectory_s: Positive | None = None
    fallback_s: Positive = 4.0
    """The compact fallback route's own bound, within end-to-end."""
    end_to_end_s: Positive | None = None
    enforce_end_to_end: bool = False
    stall_s: Positive = 20.0
    """A stream that says nothing for so long is stalled, under every profile."""
    call_ceiling_s: Positive = 600.0
    """One model call with its retries, where the profile sets no bound: the loop's own clock."""


class ProjectConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`harness.yaml`."""

    schema: int = 1
    harness: str = "harness_repo"
    evalsets: str = "evalsets"
    manifests: str = "manifests"
    runs: str = ".harness/runs"
    policy: str = "builtin"
    """The policy that verbs use when no flag names one."""
    policies: dict[str, PolicyConfig] = msgspec.field(
        default_factory=lambda: {"builtin": PolicyConfig(kind="builtin")}
    )
    judges: dict[str, JudgeConfig] = msgspec.field(
        default_factory=lambda: {"grounded": JudgeConfig(kind="grounded")}
    )
    roles: dict[str, str] = {}
    gates: str = "gates.yaml"
    limits: dict[str, Limits] = {}
    channel: str = "dev"
