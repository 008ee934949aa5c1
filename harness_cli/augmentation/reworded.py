"""Text in other words: the model's where there are some, else the curated table's."""

import re
from collections.abc import Sequence
from random import Random

from harness_cli.augmentation.draft import Draft
from harness_cli.augmentation.wording import paraphrased

_LANGUAGE = re.compile(r"(?<=[.。!?\"”'])\s+(?=[\u3400-\u9fff])|(?<=[。])\s*(?=[A-Z])")


def reworded(draft: Draft, text: str, draw: Random, chance: float) -> str:
    """Other words for one line that say the same; the line itself where no other are known."""
    written = draft.book.get(text)
    if written and draw.random() < draft.share:
        return draw.choice(written)
    return paraphrased(text, draw, chance)


def described(draft: Draft, text: str, known: Sequence[str], draw: Random) -> str:
    """Another description: a model's, one of the known, or the same with its halves the other way
    round (Chinese first) and reworded."""
    written = draft.book.get(text)
    if written and draw.random() < draft.share:
        return draw.choice(written)
    choices = [k for k in known if k != text]
    if choices and draw.random() < len(choices) / (len(choices) + 1):
        return draw.choice(choices)
    halves = _LANGUAGE.split(text)
    if len(halves) == 2:
        text = " ".join(reversed(halves))
    return paraphrased(text, draw, 1.0)
