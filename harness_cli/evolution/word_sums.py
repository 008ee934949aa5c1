"""Word vectors summed, not averaged: the mean of a text follows from its words, each read once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness_cli.models.builtin.vectors import WordVectors


class WordSums(WordVectors):
    """The shipped static vectors. Their lengths say how much a token matters: they are kept."""

    def of(self, words: Sequence[str]) -> NDArray[np.float64]:
        """The sum of the token vectors of each word, (words, 256)."""
        found = np.zeros((len(words), self._table.shape[1]))
        for row, word in enumerate(words):
            tokens = self._tokenizer.encode(word, add_special_tokens=False).ids
            if tokens:
                found[row] = self._table[tokens].astype(np.float64).sum(axis=0)
        return found
