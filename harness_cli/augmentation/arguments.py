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


def with_arguments(text: str, parameters: Parameters) -> str:
    """The text with every mention of a renamed parameter under its new name."""
    old = sorted({name for names in parameters.values() for name in names})
    if not any(name in text for name in old):
        return text
    mention = _mention("|".join(map(re.escape, old)))
    if not mention.search(text):
        return text
    return "".join(
        _chunk(piece, parameters) if mention.search(piece) else piece for piece in _pieces(text)
    )


@lru_cache(maxsize=256)
def _mention(names: str) -> re.Pattern[str]:
    return re.compile(f"`(?:{names})`|{EDGE}(?:{names})\\s*=")


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
