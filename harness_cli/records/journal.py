"""The records of `journal.jsonl`: one per model call, tool call, trajectory, verdict and item."""

from typing import Any

import msgspec

from harness_cli.records.chat import ChatReply
from harness_cli.records.trajectory import ToolResult, Trajectory
from harness_cli.records.verdict import ItemResult, Verdict


class CallError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `ProviderError` as it was classified, so that a resume raises the same one."""

    kind: str
    message: str
    retryable: bool = True
    status: int | None = None
    seconds: float | None = None
    """From dispatch to the error, retries included."""


class _Record(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="kind",
    tag=lambda name: name.removesuffix("Record").lower(),
):
    """A journal record: its JSON starts with `"kind"`, by which a scan passes over it."""


class ModelRecord(_Record, frozen=True, kw_only=True):
    """One finished model call of one rollout: an answer, or the error it ended in."""

    item: str
    repeat: int = 0
    judge: str = ""
    """Member of the judging panel whose call it is; the policy under test has none."""
    index: int
    request: str
    """Digest of messages, tools and sampling settings; the text itself is in the trajectory."""
    reply: ChatReply | None = None
    error: CallError | None = None


class ToolRecord(_Record, frozen=True, kw_only=True):
    """One finished tool call of one rollout."""

    item: str
    repeat: int = 0
    judge: str = ""
    index: int
    name: str
    arguments: str
    """Digest of the arguments."""
    result: ToolResult | None = None
    error: CallError | None = None
    """A `ToolError`; `kind` is its typed kind."""


class TextRecord(_Record, frozen=True, kw_only=True):
    """A long prompt text that the trajectories after it refer to by `id`."""

    id: str
    text: str


class TrajectoryRecord(_Record, frozen=True, kw_only=True):
    """A finished rollout; long prompt texts are `{"$text": id}` in place of the content."""

    item: str
    repeat: int = 0
    trajectory: Trajectory


class VerdictRecord(_Record, frozen=True, kw_only=True):
    """What the judge said of one rollout; None and a reason when it could not say."""

    item: str
    repeat: int = 0
    verdict: Verdict | None = None
    error: str | None = None


class ItemRecord(_Record, frozen=True, kw_only=True):
    """One finished item: after it, a resume does nothing for this item."""

    item: str
    repeat: int = 0
    resumed: bool = False
    """Its rollout was partly replayed from the journal of a killed process: never timed."""
    result: ItemResult


class NoteRecord(_Record, frozen=True, kw_only=True):
    """What happened to the run itself: started, resumed, interrupted, budget reached."""

    event: str
    at: str
    pid: int
    detail: dict[str, Any] = {}


JournalRecord = (
    ModelRecord
    | ToolRecord
    | TextRecord
    | TrajectoryRecord
    | VerdictRecord
    | ItemRecord
    | NoteRecord
)
