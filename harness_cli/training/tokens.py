"""Rows of token ids with the segment of each: what a trainer of any engine reads.

The text is encoded piece by piece, cut where spans begin and end, so that no token lies on both
sides of an edge: a rollout too has the prompt's tokens, then the policy's own, then the prompt's
again. Where a server gave the ids that were sampled they are taken as they are; the same text
encoded anew may come out as other tokens. Either way a row is refused unless its trained ids decode
to exactly the text of its spans.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer as Loaded

from harness_cli.errors import BadFile, MaskError
from harness_cli.records.canonical import sha256
from harness_cli.training.segments import Kind, Segments, Span

FILE: Final = "tokenizer.json"
IGNORED: Final = -100
"""The label of a token without loss, as PyTorch and TRL have it."""
KINDS: Final[dict[Kind, int]] = {"tool": 1, "reply": 2}
"""Segment numbers of tokens; 0 is masked."""


class Tokenizer:
    """A tokenizer of Hugging Face's form; the template writes special tokens, it adds none."""

    def __init__(self, loaded: Loaded, *, name: str, digest: str) -> None:
        self._loaded = loaded
        self._loaded.no_truncation()
        self._loaded.no_padding()
        self.name, self.sha256 = name, digest

    @classmethod
    def read(cls, path: Path) -> "Tokenizer":
        """`tokenizer.json`, or the one in a model's folder. Raises `BadFile` without one."""
        file = path / FILE if path.is_dir() else path
        try:
            data = file.read_bytes()
            return cls(Loaded.from_str(data.decode()), name=path.name, digest=sha256(data))
        except FileNotFoundError as exc:
            raise BadFile(f"`{path}` holds no `{FILE}`", hint="a model's folder has one") from exc
        except Exception as exc:  # tokenizers raises plain Exceptions
            raise BadFile(f"`{file}` is no tokenizer: {exc}") from exc

    def encode(self, text: str) -> list[int]:
        """The ids of a piece of text; special tokens in it are understood."""
        return self._loaded.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens included."""
        return self._loaded.decode(list(ids), skip_special_tokens=False)

    def vocabulary(self) -> dict[str, int]:
        """Every token, special ones among them, with its id."""
        return dict(self._loaded.get_vocab(with_added_tokens=True))

    def same(self, ids: Sequence[int], text: str) -> bool:
        """Whether ids are the tokens of this text: it, or what the tokenizer's normaliser makes
        of it (Qwen composes characters)."""
        decoded = self.decode(ids)
        if decoded == text:
            return True
        normalizer = self._loaded.normalizer
        return normalizer is not None and decoded == normalizer.normalize_str(text)


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One conversation as tokens; the three lists are of one length."""

    input_ids: list[int]
    segment_ids: list[int]
    """`KINDS` of the turn that a token belongs to, 0 for everything that nobody generated."""
    thought_ids: list[int]
    """1 for tokens of reasoning, for a penalty on its length."""

    def labels(self, trained: Collection[Kind] = ("tool", "reply")) -> list[int]:
        """The ids of the tokens with loss, `IGNORED` elsewhere."""
        wanted = {KINDS[kind] for kind in trained}
        pairs = zip(self.input_ids, self.segment_ids, strict=True)
        return [token if segment in wanted else IGNORED for token, segment in pairs]

    def first(self, tokens: int) -> "TokenRow":
        """The row cut off behind so many tokens; what is left of a span stays trained."""
        return TokenRow(
            self.input_ids[:tokens], self.segment_ids[:tokens], self.thought_ids[:tokens]
        )


def token_row(
    tokenizer: Tokenizer,
    segments: Segments,
    *,
    sampled: Mapping[int, Sequence[int]] | None = None,
) -> TokenRow:
    """The tokens of a conversation. `sampled` are ids that a server gave, by message.

    Raises `MaskError` where the trained ids do not decode to the trained text.
    """
    row = TokenRow([], [], [])
    at = 0
    for span in segments.spans:
        _add(row, tokenizer.encode(segments.text[at : span.start]), 0, 0)
        _add_span(row, tokenizer, segments.text, span, (sampled or {}).get(span.message))
        at = span.end
    if at < len(segments.text):
        _add(row, tokenizer.encode(segments.text[at:]), 0, 0)
    return row


def _add_span(
    row: TokenRow, tokenizer: Tokenizer, text: str, span: Span, given: Sequence[int] | None
) -> None:
    words = text[span.start : span.end]
    number = KINDS[span.kind]
    if given is not None and tokenizer.same(given, words):
        thought = _tokens_upto(tokenizer, given, span.thought - span.start)
        _add(row, given[:thought], number, 1)
        _add(row, given[thought:], number, 0)
        return
    ids = tokenizer.encode(text[span.start : span.thought]) if span.thought > span.start else []
    rest = tokenizer.encode(text[span.thought : span.end])
    if not tokenizer.same([*ids, *rest], words):
        raise MaskError(
            f"turn {span.message}: `{tokenizer.name}` decodes its own tokens to another text",
            hint="a tokenizer that adds blanks or drops characters cannot be masked exactly",
        )
    _add(row, ids, number, 1)
    _add(row, rest, number, 0)


def _tokens_upto(tokenizer: Tokenizer, ids: Sequence[int], characters: int) -> int:
    """How many of the ids it takes to say so many characters."""
    count = 0
    while characters > 0 and count < len(ids) and len(tokenizer.decode(ids[:count])) < characters:
        count += 1
    return count


def _add(row: TokenRow, ids: Sequence[int], segment: int, thought: int) -> None:
    row.input_ids.extend(ids)
    row.segment_ids.extend([segment] * len(ids))
    row.thought_ids.extend([thought] * len(ids))
