"""Compressed pieces of a page: many small JSON documents, opened one piece at a time.

A piece is `<script type="application/octet-stream" id="…">` with the base64 of a raw deflate stream
of one JSON array. A browser neither runs nor parses it; the page's script decodes the piece that a
click asks for (`DecompressionStream("deflate-raw")`).
"""

import base64
import zlib
from typing import IO, NamedTuple

SIZE = 64 * 1024
"""Bytes of JSON from which a piece is closed: small enough to open at once, large enough that what
its members share is stored once."""
LEVEL = 6


class Place(NamedTuple):
    """Where a document lies: its piece and its index there."""

    piece: int
    entry: int


class Pieces:
    """The writing side: documents are collected and go to `file` piece by piece."""

    def __init__(self, file: IO[bytes], prefix: str) -> None:
        self.written = 0
        """Bytes in `file` so far."""
        self._file = file
        self._prefix = prefix
        self._open: list[bytes] = []
        self._size = 0
        self._piece = 0

    def add(self, document: bytes) -> Place:
        """Take one JSON document; its place is known at once."""
        place = Place(self._piece, len(self._open))
        self._open.append(document)
        self._size += len(document)
        if self._size >= SIZE:
            self.close()
        return place

    @property
    def bytes(self) -> int:
        """What is written, and about what the open piece will come to (a third of its JSON)."""
        return self.written + self._size // 3

    def close(self) -> None:
        """Write what is open."""
        if not self._open:
            return
        text = script(f"{self._prefix}{self._piece}", deflated(b"[" + b",".join(self._open) + b"]"))
        self._file.write(text)
        self.written += len(text)
        self._open, self._size = [], 0
        self._piece += 1


def deflated(data: bytes) -> bytes:
    """Base64 of a raw deflate stream."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(data) + packer.flush())


def inflated(text: bytes) -> bytes:
    """What `deflated` was given."""
    return zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)


def script(name: str, data: bytes, kind: str = "application/octet-stream") -> bytes:
    """A data block of a page; `data` must hold no `<`."""
    return b'<script type="%b" id="%b">%b</script>\n' % (kind.encode(), name.encode(), data)


def embedded(data: bytes) -> bytes:
    """JSON that may stand in a script element: `</script`, `<!--` and `]]>` cannot occur in it."""
    return data.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
