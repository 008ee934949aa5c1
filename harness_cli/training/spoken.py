"""Whether the rendered text of a turn says what the turn said: templates lose things silently.

gpt-oss's renders the first of several parallel calls, DeepSeek-R1's drops calls beside text, others
print a second round of calls without its opening. A mask over such text would be exact and wrong.
"""

import json
from collections.abc import Iterator
from typing import Any

from harness_cli.errors import MaskError
from harness_cli.models.template_messages import calls_of
from harness_cli.records.chat import Message


def check_spoken(text: str, message: Message, turn: int) -> None:
    """Raise `MaskError` where the text of a turn lacks its words, a call, or an argument."""
    said = _visible(message)
    if said and said not in text:
        raise MaskError(f"the template drops or changes the text of turn {turn}")
    at = 0
    for name, arguments in calls_of(message):
        found = text.find(name, at)
        if found < 0:
            raise MaskError(f"the template loses the call of `{name}` in turn {turn}")
        at = found + len(name)
        for value in _leaves(arguments):
            if not any(form in text for form in _forms(value)):
                raise MaskError(f"the template loses an argument of `{name}` in turn {turn}")


def _visible(message: Message) -> str:
    """What a turn said aloud; reasoning that travels in the text is not."""
    content = message.get("content")
    return content.rpartition("</think>")[2].strip() if isinstance(content, str) else ""


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _forms(value: Any) -> tuple[str, ...]:
    """How a template may write a value: as itself, or as JSON; Python's words for true and null."""
    if isinstance(value, str):
        return value, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]
    return json.dumps(value), str(value)
