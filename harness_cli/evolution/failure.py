"""What diagnosis works on: one failed item with the facts that were observed about it."""

import msgspec

from harness_cli.records.diagnosis import Side
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One fact about a failed rollout, found without a model and citing the step where it shows."""

    kind: str
    """tool_not_called, wrong_skill, loop, hook, missing_fact …: the words of docs/evolution.md."""
    detail: str = ""
    """What it is about: a tool, a skill, a hook, a field."""
    step: int | None = None
    side: Side = "harness"
    note: str = ""
    """For a reader: numbers and quotes. Never part of the key."""
    where: str = ""
    """For a fact that a tool gave and the reply lacks: `tool:field.path` of the result."""

    @property
    def key(self) -> str:
        """`kind` or `kind:detail`: what failures are grouped and classes are matched by."""
        return f"{self.kind}:{self.detail}" if self.detail else self.kind


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a run, failed or passed, as far as diagnosis and proposals need it."""

    item_id: str
    category: str
    tags: tuple[str, ...] = ()
    state: str
    comment: str
    skills: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    expected_skills: tuple[str, ...] = ()
    expected_tools: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Nothing was wrong with it."""
        return self.state == "passed"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failed, unscored or errored item and what was observed."""

    seen: Seen
    reply: str = ""
    observations: tuple[Observation, ...] = ()
    """Most telling first."""
    failed_metrics: tuple[str, ...] = ()
    steps: int = 0
    """Steps of the trajectory: a citation names one below it."""

    @property
    def item_id(self) -> str:
        """The item."""
        return self.seen.item_id

    @property
    def leading(self) -> Observation | None:
        """The most telling observation."""
        return self.observations[0] if self.observations else None

    @property
    def keys(self) -> frozenset[str]:
        """Every observation's key."""
        return frozenset(o.key for o in self.observations)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to look at for one item: the result always, the rest when it is there."""

    result: ItemResult
    trajectory: Trajectory | None = None
    item: Item | None = None
    skill_names: tuple[str, ...] = ()
    """Skills of the harness state; empty when it is not known."""


def comment_of(evidence: Evidence) -> str:
    """What the viewers wrote; without the item, the last user message of the first step."""
    if evidence.item is not None:
        return request_text(evidence.item.request)
    if evidence.trajectory is not None and evidence.trajectory.steps:
        for message in reversed(evidence.trajectory.steps[0].messages):
            if message.get("role") == "user" and isinstance(message.get("content"), str):
                return str(message["content"])[-400:]
    return ""


def request_text(request: Request) -> str:
    """The comments, one a line, or the bare prompt."""
    return "\n".join(c.text for c in request.comments) or (request.prompt or "")
