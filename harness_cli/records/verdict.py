"""What a judge says, and what one item of one run came to."""

from typing import Literal

import msgspec

State = Literal["passed", "failed", "unscored", "errored"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One observation of a judge, with what it rests on."""

    kind: str
    """wrong_price, unsupported_claim, false_promise, human_identity, missing_fact, … ."""
    detail: str
    quote: str = ""
    """The words of the reply it is about."""
    evidence: str = ""
    """The tool result, catalogue entry or FAQ entry it was checked against."""
    step: int | None = None


class AssertionResult(msgspec.Struct, frozen=True, kw_only=True):
    """One assertion of an item."""

    type: str
    passed: bool | None
    """None: could not be decided (unscored)."""
    reason: str = ""
    score: float | None = None
    rubric: str = ""
    """The text of an `llm-rubric` that a judge decided."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a vote rests on: a reference of the case or of an evidence tool, and what it says."""

    ref: str
    says: str = ""


class RubricVote(msgspec.Struct, frozen=True, kw_only=True):
    """One rubric of an item (`llm-rubric`) under one vote."""

    id: str
    passed: bool
    reason: str = ""


class Vote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One member of a panel on one trajectory. Without scores it has a reason, never a grade."""

    voter: str
    """The member's name: a policy of harness.yaml, or `grounded`."""
    policy: str = ""
    """name@digest of what answered."""
    scores: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    """Metric → why."""
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    rubrics: tuple[RubricVote, ...] = ()
    unscored: str | None = None
    """Why this vote counts for nothing: refused, timed out, no verdict, two verdicts … ."""
    failed: bool = False
    """Its provider failed: a resume asks again."""
    trajectory_sha256: str = ""
    """Of the member's own rollout, without clocks."""
    looked_up: tuple[str, ...] = ()
    """Its calls of evidence tools, with their arguments."""
    calls: int = 0
    """Model calls it took (when it was made, where it is cached)."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    cached: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's answer on one trajectory. A metric that is None is unscored."""

    judge: str
    """name@digest."""
    scores: dict[str, float | None] = {}
    """Metric → score of METHODS §2: accuracy, effectiveness, avg, tc, tco, skill_selection, … ."""
    findings: tuple[Finding, ...] = ()
    assertions: tuple[AssertionResult, ...] = ()
    unscored_reason: str | None = None
    votes: tuple[Vote, ...] = ()
    cached: bool = False
    """Every vote of a model was taken from the cache."""


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """What the verdict of one item took. Votes from the cache took nothing."""

    votes: int = 0
    unscored: int = 0
    failed: int = 0
    """Of the unscored, those whose provider failed."""
    cached: int = 0
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """One item of one run: the line of a report."""

    item_id: str
    repeat: int = 0
    category: str
    tags: tuple[str, ...] = ()
    state: State
    """passed: accuracy 1, effectiveness 1 and every assertion true; errored: the run broke."""
    scores: dict[str, float | None] = {}
    reply: str = ""
    route: str = "normal"
    stop: str = "completed"
    error: str | None = None
    findings: tuple[Finding, ...] = ()
    assertions: tuple[AssertionResult, ...] = ()
    skills_loaded: tuple[str, ...] = ()
    tools_called: tuple[str, ...] = ()
    hooks_fired: tuple[str, ...] = ()
    rounds: int = 0
    fell_back: bool = False
    """Another route or the per-call fallback policy answered: a miss in attainment."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    trajectory_sha256: str = ""
    """Of the trajectory without clocks."""
    judging: Judging | None = None
    """None where no member of a panel was asked."""
    wall_s: float | None = None
    """None for a cached or replayed one: never timed."""
    ttft_s: float | None = None
