"""A trajectory as the conversation a trainer reads: messages, and which of them were failures.

What the policy said is taken from its own answers, so that its reasoning and its calls are there;
what it was shown is taken from the steps. A turn is *failed* where hooks or the runtime refused it:
a text the stop gate sent back, a call that was denied, malformed, or of a tool that is not offered.
Whether failures stay is decided by `pruned`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness_cli.records.chat import Message
from harness_cli.records.trajectory import Step, ToolCall, ToolErrorKind, Trajectory
from harness_cli.runtime.messages import HOOK_MARK, tool_turn

REFUSED = (ToolErrorKind.DENIED, ToolErrorKind.INVALID_ARGUMENTS)
"""Errors of calls that were the policy's own mistake, none of the tool's."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation."""

    message: Message
    failed: bool = False
    """Refused by a hook or the runtime, or what they said about it."""
    own: bool = False
    """Said by the policy in this rollout: an assistant turn of an earlier dialogue is not."""
    token_ids: tuple[int, ...] | None = None
    """Of an answer, where the server gave what it sampled."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A whole trajectory as messages."""

    said: tuple[Said, ...]
    unfinished: bool = False
    """The last answer was cut off at its token limit."""

    @property
    def messages(self) -> list[Message]:
        """The messages alone."""
        return [s.message for s in self.said]

    @property
    def failures(self) -> int:
        """Answers and calls that were refused."""
        calls = (c for s in self.said for c in s.message.get("tool_calls") or ())
        texts = sum(s.failed and s.own and not s.message.get("tool_calls") for s in self.said)
        return texts + sum("failed" in c for c in calls)

    @property
    def malformed(self) -> bool:
        """A call's arguments were no JSON object: its text cannot be given again."""
        calls = (c for s in self.said for c in s.message.get("tool_calls") or ())
        return any(c["function"]["arguments"] is None for c in calls)

    def turns(self, *, failed: bool = True) -> list[int]:
        """Positions of the policy's own turns; without those that failed."""
        return [i for i, s in enumerate(self.said) if s.own and (failed or not s.failed)]

    def sampled(self) -> dict[int, tuple[int, ...]]:
        """Token ids of turns, by position, where the server gave them."""
        return {i: s.token_ids for i, s in enumerate(self.said) if s.token_ids}


def conversation_of(trajectory: Trajectory) -> Conversation:
    """Everything that was said, shown and called, in order."""
    said: list[Said] = []
    before: Step | None = None
    last = len(trajectory.steps) - 1
    offered = set(trajectory.tools_offered)
    for number, step in enumerate(trajectory.steps):
        said += _shown(step, before, offered)
        said += _answered(step, offered, refused=number < last and not step.calls)
        before = step
    cut = bool(trajectory.steps) and trajectory.steps[-1].reply.finish_reason == "length"
    return Conversation(tuple(said), unfinished=cut)


def pruned(conversation: Conversation) -> Conversation:
    """The conversation without failed outputs and what hooks said about them (TR §3.4).

    Of several calls of one answer only the refused ones go, with their results.
    """
    kept: list[Said] = []
    for one in conversation.said:
        if one.failed:
            continue
        calls = one.message.get("tool_calls")
        if calls:
            left = [c for c in calls if not c.get("failed")]
            one = replace(one, message={**one.message, "tool_calls": left})
        kept.append(one)
    return replace(conversation, said=tuple(kept))


def plain(messages: Sequence[Message]) -> list[Message]:
    """Messages as they are written: what only this module knows of calls is taken off."""
    return [_plain(m) for m in messages]


def _plain(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls:
        return message
    given = [
        {**{k: v for k, v in c.items() if k != "failed"}, "function": _object(c["function"])}
        for c in calls
    ]
    return {**message, "tool_calls": given}


def _object(function: Mapping[str, object]) -> dict[str, object]:
    arguments = function["arguments"]
    return {**function, "arguments": {} if arguments is None else arguments}


def _shown(step: Step, before: Step | None, offered: set[str]) -> Iterator[Said]:
    """What is new to the policy, without its own last answer and the results of its calls."""
    refused = before is not None and all(_is_refused(c, offered) for c in before.calls)
    for message in step.messages:
        if before is not None and message["role"] in ("assistant", "tool"):
            continue
        ours = str(message.get("content") or "").startswith(HOOK_MARK)
        yield Said(dict(message), failed=refused and ours and message["role"] == "user")


def _answered(step: Step, offered: set[str], *, refused: bool) -> Iterator[Said]:
    """The answer of a step, and the results of its calls."""
    reply = step.reply
    turn: Message = {"role": "assistant", "content": reply.content or ""}
    if reply.reasoning:
        turn["reasoning_content"] = reply.reasoning
    bad = [_is_refused(call, offered) for call in step.calls]
    if step.calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **({"failed": True} if wrong else {}),
            }
            for call, wrong in zip(step.calls, bad, strict=True)
        ]
    failed = refused or (bool(bad) and all(bad))
    yield Said(turn, failed=failed, own=True, token_ids=reply.token_ids)
    for call, wrong in zip(step.calls, bad, strict=True):
        yield Said(tool_turn(call), failed=wrong)


def _is_refused(call: ToolCall, offered: set[str]) -> bool:
    """Whether a call was the policy's own mistake."""
    unknown = bool(offered) and call.name not in offered
    return call.arguments is None or call.result.error in REFUSED or unknown
