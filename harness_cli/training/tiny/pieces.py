"""Pieces of a document with the weight of their loss, and the ids that come of them."""

from collections.abc import Sequence
from typing import Final

from tokenizers import Tokenizer

from harness_cli.training.chatml import END, START

Piece = tuple[str, float]
"""Text and the weight of its tokens' loss."""
NAME: Final = 2.0
"""Marks the piece of a name that was looked up: its first token decides and weighs `FIRST`."""
FIRST: Final = 4.0


def shown(role: str, text: str) -> list[Piece]:
    """A turn that nobody is trained on."""
    return [(f"{START}{role}\n{text}{END}\n", 0.0)]


def said(text: str) -> list[Piece]:
    """A turn of the assistant."""
    return [(f"{START}assistant\n", 0.0), (f"{text}{END}", 1.0), ("\n", 0.0)]


def called(name: str, parameter: str, value: str, *, aloud: Sequence[Piece] = ()) -> list[Piece]:
    """An assistant's turn that calls a tool; `value` is a name, or a number."""
    quote, closed = ("", "}}") if value.isdigit() else ('"', '"}}')
    return [
        (f"{START}assistant\n", 0.0),
        *aloud,
        ('<tool_call>{"name": "', 1.0),
        (name, NAME),
        ('", "arguments": {"', 1.0),
        (parameter, 1.0),
        (f'": {quote}', 1.0),
        (value, NAME),
        (f"{closed}</tool_call>{END}", 1.0),
        ("\n", 0.0),
    ]


class Encoder:
    """Pieces into ids and weights, cut where spans begin and end as rollouts are."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def row(self, pieces: Sequence[Piece]) -> tuple[list[int], list[float]]:
        """Ids, and the weight of the loss of predicting each."""
        ids: list[int] = []
        weights: list[float] = []
        for encoded, (_, weight) in zip(
            self.tokenizer.encode_batch([text for text, _ in pieces]), pieces, strict=True
        ):
            ids += encoded.ids
            first = weight if weight < NAME else FIRST
            weights += [first, *[min(weight, 1.0)] * (len(encoded.ids) - 1)]
        return ids, weights
