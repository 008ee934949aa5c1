"""Parameters as texts speak of them: in calls, `get_inventory(link_id=4)`, and in backticks.

The same parameter may keep its name in one tool and change it in another, so a mention goes by the
tools that the same list entry or paragraph names.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from harness_cli.augmentation.speech import EDGE, END

Parameters = Mapping[str, Mapping[str, str]]
"""Tool → parameter → new name."""
_CHUNK = re.compile(r"\n(?=\s*(?:[-*]|\d{1,2}\.) )|\n\s*\n")
_CALL = re.compile(EDGE + r"(?P<tool>[A-Za-z][\w-]*)\((?P<given>[^()]*)\)")
_TICKED = re.compile(r"`([A-Za-z_]\w*)`")
_BEFORE = re.compile(EDGE + r"([A-Za-z_]\w*)(?=\s*=)")


class Arguments:
    """Renames the parameters of one mapping in texts."""

    def __init__(self, parameters: Parameters) -> None:
        self._new = parameters
        old = sorted({name for names in parameters.values() for name in names})
        self._ticked = [f"`{name}`" for name in old]
        self._given = _given("|".join(map(re.escape, old)))

    def renamed(self, text: str) -> str:
        """The text with every mention of a renamed parameter under its new name."""
        if not self._in(text):
            return text
        pieces = _pieces(text)
        return "".join(_chunk(p, self._new) if self._in(p) else p for p in pieces)

    def _in(self, text: str) -> bool:
        """Whether a parameter is mentioned. Most texts have no `=`, which is found at once."""
        if any(map(text.__contains__, self._ticked)):
            return True
        return "=" in text and self._given.search(text) is not None


@lru_cache(maxsize=256)
def _given(names: str) -> re.Pattern[str]:
    return re.compile(f"{EDGE}(?:{names})\\s*=")


def _pieces(text: str) -> Iterator[str]:
    """The text in list entries and paragraphs; together they are the text."""
    at = 0
    for found in _CHUNK.finditer(text):
        yield text[at : found.start()]
        yield found[0]
        at = found.end()
    yield text[at:]


def _chunk(piece: str, parameters: Parameters) -> str:
    piece = _CALL.sub(lambda m: _call(m, parameters), piece)
    named = [t for t in parameters if t in piece and _stands(t).search(piece)]
    return _TICKED.sub(lambda m: f"`{_new(m[1], named, parameters)}`", piece)


@lru_cache(maxsize=256)
def _stands(name: str) -> re.Pattern[str]:
    return re.compile(f"{EDGE}{re.escape(name)}{END}")


def _call(match: re.Match[str], parameters: Parameters) -> str:
    names = parameters.get(match["tool"], {})
    given = _BEFORE.sub(lambda m: names.get(m[1], m[1]), match["given"])
    return f"{match['tool']}({given})"


def _new(name: str, named: list[str], parameters: Parameters) -> str:
    """The new name of a parameter: that of the tools named beside it, else the one there is.

    `parameters` also lists tools that keep a name, as `{name: name}`.
    """
    beside = {parameters[t][name] for t in named if name in parameters[t]}
    if beside:
        return beside.pop() if len(beside) == 1 else name
    anywhere = {names[name] for names in parameters.values() if name in names} - {name}
    return anywhere.pop() if len(anywhere) == 1 else name
