"""Thinking is kept in the trajectory and never reaches a viewer, half a tag included."""

import re

_TAG = r"(?:think|thinking|thought|reasoning)"
_WHOLE = re.compile(rf"<({_TAG})>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(rf"<{_TAG}>", re.IGNORECASE)
_CLOSE = re.compile(rf"</{_TAG}>", re.IGNORECASE)


def split_reasoning(text: str | None) -> tuple[str, str]:
    """The visible text and the reasoning that stood in it.

    A closing tag alone ends reasoning that began before the text (a server that fills the opening
    tag into the prompt); an opening tag alone begins reasoning that was cut off.
    """
    if not text:
        return "", ""
    if "<" not in text:
        return text.strip(), ""
    thoughts: list[str] = []

    def keep(match: re.Match[str]) -> str:
        thoughts.append(match[2].strip())
        return ""

    shown = _WHOLE.sub(keep, text)
    closes = list(_CLOSE.finditer(shown))
    if closes:
        thoughts.append(_OPEN.sub("", _CLOSE.sub("", shown[: closes[-1].end()])).strip())
        shown = shown[closes[-1].end() :]
    opened = _OPEN.search(shown)
    if opened:
        thoughts.append(_OPEN.sub("", shown[opened.end() :]).strip())
        shown = shown[: opened.start()]
    return shown.strip(), "\n\n".join(t for t in thoughts if t)
