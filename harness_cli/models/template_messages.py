"""Messages in the one form that every template reads the same way.

Templates disagree about `content: null`, a missing content, an empty list of calls, and arguments
as text or as an object (docs/training_data.md has the table): null prints "None" in one, raises in
another and loses the calls in a third. What goes in here comes out as: content always text, calls
only where there are any, arguments in the form that was found to work, reasoning under both names
that templates read.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from harness_cli.errors import MaskError
from harness_cli.records.chat import Message

ArgumentForm = Literal["object", "text"]
REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of a message's reasoning; templates read the first two."""


def as_template_reads(messages: Sequence[Message], form: ArgumentForm | None) -> list[Message]:
    """The conversation for a template that takes arguments in this form.

    Raises `MaskError` for a call that such a template would lose (`form` None), and for arguments
    that are no JSON object.
    """
    return [_message(m, form) for m in messages]


def reasoning_of(message: Message) -> str:
    """What a turn says it thought, under any of the names."""
    return next((str(message[name]) for name in REASONING if message.get(name)), "")


def calls_of(message: Message) -> list[tuple[str, dict[str, Any]]]:
    """(name, arguments) of each call of a turn."""
    found = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call
        found.append((str(function["name"]), object_of(function.get("arguments"))))
    return found


def object_of(arguments: Any) -> dict[str, Any]:
    """Arguments as an object, whether they came as one, as text, or not at all."""
    value = arguments
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except ValueError:
            value = arguments
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MaskError("the arguments of a call are no JSON object: nothing to be trained on")
    return value


def _message(message: Message, form: ArgumentForm | None) -> Message:
    made: Message = {
        key: value
        for key, value in message.items()
        if value is not None and key not in ("tool_calls", *REASONING)
    }
    made["content"] = _text(message.get("content"))
    thought = reasoning_of(message)
    if thought and message.get("role") == "assistant":
        made |= {"reasoning_content": thought, "thinking": thought}
    calls = message.get("tool_calls")
    if calls:
        if form is None:
            raise MaskError(
                "the template loses or garbles tool calls, and the conversation has one"
            )
        made["tool_calls"] = [_call(call, form) for call in calls]
    return made


def _text(content: Any) -> Any:
    """Text; a list of text parts is joined, since only some templates read one."""
    if content is None:
        return ""
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "".join(part["text"] for part in content)
    return content


def _call(call: dict[str, Any], form: ArgumentForm) -> dict[str, Any]:
    function = call.get("function") or call
    arguments = object_of(function.get("arguments"))
    given = arguments if form == "object" else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": call.get("id", ""),
        "type": "function",
        "function": {"name": function["name"], "arguments": given},
    }
