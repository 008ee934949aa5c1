"""Reasoning apart from what is said: think tags, whole or half."""

import re

_BLOCK = re.compile(r"<(think|thinking|reasoning)>(.*?)</\1>", re.DOTALL)
_OPENED = re.compile(r"<(?:think|thinking|reasoning)>")
_CLOSED = re.compile(r"</(?:think|thinking|reasoning)>")
_CUT = re.compile(r"<(?:/?t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)$")


def split_thinking(text: str) -> tuple[str, str | None]:
    """(what is said, reasoning) of a text with think tags.

    Half a tag is common: a chat template that opens the block in the prompt leaves only the
    closing tag in the answer, and an answer cut short leaves only the opening one. What stands
    before a lone closing tag, or after a lone opening one, is reasoning.
    """
    if "<" not in text:
        return text, None
    thoughts: list[str] = []

    def keep(found: re.Match[str]) -> str:
        thoughts.append(found[2])
        return ""

    said = _BLOCK.sub(keep, text)
    closed = [*_CLOSED.finditer(said)]
    if closed:
        last = closed[-1]
        thoughts.insert(0, _CLOSED.sub("", said[: last.start()]))
        said = said[last.end() :]
    opened = _OPENED.search(said)
    if opened:
        thoughts.append(_CUT.sub("", said[opened.end() :]))
        said = said[: opened.start()]
    if not thoughts:
        return text, None
    reasoning = "\n".join(t.strip() for t in thoughts if t.strip())
    return said.strip(), reasoning or None
