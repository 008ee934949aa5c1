"""What stands in the slots of one item, in both languages, and how a rubric recognises it."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness_cli.records.item import Assertion
from harness_cli.simulator.robustness.seeds import Draw
from harness_cli.simulator.scenarios.draws import pick

SLOT = re.compile(r"\{(\w+)(?::(zh|en))?\}")
_ARTICLE = re.compile(r"^(?:an?|the) (?=\w)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
CODE = 4
"""A text of so few characters is a code (a size, a shade): it counts by itself alone."""
Values = Mapping[str, Draw]


def drawn(draws: Mapping[str, Sequence[Draw]], rng: random.Random) -> dict[str, Draw]:
    """One value a slot."""
    return {slot: pick(rng, options) for slot, options in draws.items()}


def said(value: Draw, language: str) -> Any:
    """A value as it is said in a language; numbers stay numbers."""
    if isinstance(value, int):
        return value
    text = value if isinstance(value, str) else value[language == "zh"]
    return text.partition("|")[0]


def fill(template: str, values: Values, language: str) -> Any:
    """A template with its slots filled; one that is a slot alone keeps the slot's type."""
    alone = SLOT.fullmatch(template)
    if alone:
        return said(values[alone[1]], alone[2] or language)
    return SLOT.sub(lambda m: str(said(values[m[1]], m[2] or language)), template)


def wordings(value: Draw) -> list[str]:
    """Every wording that counts as this value, in either language, without its article."""
    texts = value if isinstance(value, tuple) else (str(value),)
    given = [wording for text in texts for wording in text.split("|") if wording]
    return list(dict.fromkeys(_ARTICLE.sub("", wording) for wording in given))


def states(value: Draw) -> Assertion:
    """The check that a reply states a value: a number or a code by itself, words anywhere."""
    if isinstance(value, int):
        return Assertion(type="regex", value=rf"(?<!\d)(?<!\d[.,]){value}(?!\d|[.,]\d)")
    if isinstance(value, str) and _CLOCK.fullmatch(value):
        return Assertion(type="regex", value=rf"(?<!\d)(?:{'|'.join(times(value))})(?!\d)")
    if isinstance(value, str) and len(value) <= CODE:
        return Assertion(type="regex", value=rf"(?<![A-Za-z0-9]){value}(?![A-Za-z0-9])")
    return Assertion(type="icontains-any", value=wordings(value))


def times(clock: str) -> list[str]:
    """A time of day by either clock, in figures and as a Chinese speaker says it."""
    hour, minute = clock.split(":")
    hours = [int(hour), int(hour) - 12] if int(hour) > 12 else [int(hour)]
    spoken = [f"{h}点{'半' if minute == '30' else minute}" for h in hours]
    return [*(f"{h}:{minute}" for h in hours), *spoken]
