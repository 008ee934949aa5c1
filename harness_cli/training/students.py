"""What a student sees of a conversation, and which turns it learns (AR "AgentTuning", METHODS §5).

*agent*: the whole trajectory, every turn that was not refused. *tool*: cut behind the last tool
call, whose output is not shown; thinking and words beside calls taken out, so that the loss falls
on calls alone. *response*: everything, loss on the final answer alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness_cli.models.template_messages import REASONING
from harness_cli.records.chat import Message
from harness_cli.training.conversation import Conversation, plain

Student = Literal["agent", "tool", "response"]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A conversation as one student learns it."""

    student: Student
    messages: tuple[Message, ...]
    trained: tuple[int, ...]
    """Positions of the turns with loss."""
    unfinished: bool = False

    @property
    def prompt(self) -> list[Message]:
        """The messages before the last one."""
        return list(self.messages[:-1])

    @property
    def completion(self) -> list[Message]:
        """The last message."""
        return list(self.messages[-1:])


def lesson(
    student: Student,
    conversation: Conversation,
    *,
    thinking: bool = True,
    include_last: bool = True,
) -> Lesson | str:
    """The lesson, or why there is none in this conversation.

    `thinking` keeps the teacher's reasoning for the agent; both AgentTuning students are Instruct
    models and never get it. `include_last=False` leaves the last call out of the tool student's
    lesson, AR's other phrasing.
    """
    if student == "agent":
        return _agent(conversation, thinking=thinking)
    if student == "tool":
        return _tool(conversation, include_last=include_last)
    return _response(conversation)


def _agent(conversation: Conversation, *, thinking: bool) -> Lesson | str:
    trained = conversation.turns(failed=False)
    if not trained:
        return "nothing was said that is to be learnt"
    messages = plain(conversation.messages)
    if messages[-1]["role"] != "assistant":
        # A call that ends the rollout (`refuse`): its result is nothing that anybody answers.
        messages = messages[: trained[-1] + 1]
    shown = messages if thinking else [_without_thinking(m) for m in messages]
    return Lesson("agent", tuple(shown), tuple(trained), conversation.unfinished)


def _tool(conversation: Conversation, *, include_last: bool) -> Lesson | str:
    messages = plain(conversation.messages)
    calling = [i for i in conversation.turns(failed=False) if messages[i].get("tool_calls")]
    if not calling:
        return "no tool call"
    if not include_last:
        calling = calling[:-1]
        if not calling:
            return "no tool call before the last one"
    shown = [_call_alone(m) for m in messages[: calling[-1] + 1]]
    return Lesson("tool", tuple(shown), tuple(calling))


def _response(conversation: Conversation) -> Lesson | str:
    messages = plain(conversation.messages)
    last = messages[-1]
    if last["role"] != "assistant" or last.get("tool_calls") or not last["content"].strip():
        return "no final answer"
    shown = [_without_thinking(m) for m in messages]
    return Lesson("response", tuple(shown), (len(shown) - 1,), conversation.unfinished)


def _without_thinking(message: Message) -> Message:
    if message["role"] != "assistant":
        return message
    return {k: v for k, v in message.items() if k not in REASONING}


def _call_alone(message: Message) -> Message:
    """A turn without thinking; what was said aloud beside a call is thinking too."""
    made = _without_thinking(message)
    return {**made, "content": ""} if made.get("tool_calls") else made


def tools_column(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Tools as templates and servers take them: none at all is None, never an empty list, which
    some templates (Llama 3.1) take for tools."""
    return list(tools) or None
