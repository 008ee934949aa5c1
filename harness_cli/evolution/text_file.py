"""A text file that can be edited without disturbing the bytes around the edit.

Edits are written against text with `\\n` line ends and without a byte-order mark, which is what a
person or a model sees. Splicing maps them back onto the file as it lies there, so that CRLF files
stay CRLF files and a BOM stays where it was.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from harness_cli.errors import BadFile

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


class Splice(NamedTuple):
    """Replace `text[start:end]` by `new`; offsets count characters of `TextFile.text`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a file, and what is needed to write a change of it back."""

    text: str
    """With `\\n` line ends, without BOM."""
    raw: str
    """As decoded."""
    bom: bytes
    encoding: str
    newline: str
    """The line end that most lines have; new lines get it."""

    @classmethod
    def of(cls, data: bytes, *, name: str) -> "TextFile":
        """The text of `data`. Raises `BadFile` for bytes that are no text."""
        bom, encoding = next(((b, e) for b, e in _BOMS if data.startswith(b)), (b"", "utf-8"))
        try:
            raw = data[len(bom) :].decode(encoding)
        except UnicodeDecodeError as exc:
            raise BadFile(
                f"{name}: byte {exc.start} is not {encoding.upper()}",
                hint="text operations need a text file; save it as UTF-8",
            ) from exc
        text = raw.replace("\r\n", "\n").replace("\r", "\n")
        return cls(text=text, raw=raw, bom=bom, encoding=encoding, newline=_dominant(raw))

    def splice(self, splices: Iterable[Splice]) -> bytes:
        """The file's bytes after the splices, which must not overlap; all else stays as it is."""
        pairs = _collapsed(self.raw)
        out, done = [], 0
        for splice in sorted(map(self._tight, splices)):
            start = splice.start + bisect_left(pairs, splice.start)
            end = splice.end + bisect_left(pairs, splice.end)
            if start < done:
                raise ValueError("splices overlap")
            out += [self.raw[done:start], splice.new.replace("\n", self.newline)]
            done = end
        out.append(self.raw[done:])
        return self.bom + "".join(out).encode(self.encoding)

    def rewrite(self, text: str) -> bytes:
        """The bytes of the whole file holding `text`, in this file's encoding and line ends."""
        return self.splice([Splice(0, len(self.text), text.replace("\r\n", "\n"))])

    def _tight(self, splice: Splice) -> Splice:
        """The splice without what old and new text have in common at both ends."""
        old, new = self.text[splice.start : splice.end], splice.new
        head = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        return Splice(splice.start + head, splice.end - tail, new[head : len(new) - tail])


def _dominant(raw: str) -> str:
    pairs = raw.count("\r\n")
    feeds, returns = raw.count("\n") - pairs, raw.count("\r") - pairs
    if pairs > feeds and pairs >= returns:
        return "\r\n"
    return "\r" if returns > feeds else "\n"


def _collapsed(raw: str) -> list[int]:
    """Offsets, in normalised text, of the `\\n` that are `\\r\\n` in `raw`."""
    found: list[int] = []
    at = raw.find("\r\n")
    while at >= 0:
        found.append(at - len(found))
        at = raw.find("\r\n", at + 2)
    return found
