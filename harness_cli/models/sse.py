"""Server-sent events → JSON payloads (WHATWG HTML §9.2, as far as chat streams use it)."""

import json
from typing import Any

import msgspec

from harness_cli.models.provider_errors import malformed, shown

DONE = object()
"""Stands for `data: [DONE]`."""

_LONGEST = 32 * 1024 * 1024
"""Bytes of one line: beyond it the stream is garbage, not an answer."""


class EventReader:
    """Cuts a byte stream into the payloads of its `data` lines, at whatever place it was split.

    Strictly an event ends at a blank line and may have several data lines. Servers forget the blank
    line more often than they use several lines, so a line that is whole JSON is taken at once.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._held = b""
        self.count = 0

    def feed(self, data: bytes) -> list[Any]:
        """The payloads that `data` completes; broken JSON raises a retryable `ProviderError`."""
        lines = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _LONGEST:
            raise malformed("a line of the stream has no end")
        return self._payloads(lines)

    def close(self) -> list[Any]:
        """The payloads of a last line without its end."""
        rest, self._rest = self._rest, b""
        found = self._payloads([rest]) if rest else []
        self._no_rest()
        return found

    def _payloads(self, lines: list[bytes]) -> list[Any]:
        found: list[Any] = []
        for line in lines:
            if line.endswith(b"\r"):
                line = line[:-1]
            if not line:
                self._no_rest()
            elif line.startswith(b"data:"):
                self._data(line[5:], found)
            elif not self.count and line.startswith(b"\xef\xbb\xbfdata:"):
                self._data(line[8:], found)
        return found

    def _data(self, text: bytes, found: list[Any]) -> None:
        text = text.strip()
        if text == b"[DONE]":
            self._no_rest()
            found.append(DONE)
            return
        whole = self._held + b"\n" + text if self._held else text
        if not whole:
            return
        try:
            found.append(decoded(whole))
        except ValueError:
            self._held = whole
            return
        self._held = b""
        self.count += 1

    def _no_rest(self) -> None:
        if self._held:
            raise malformed(f"an event of the stream is no JSON: {shown(self._held)}")


def decoded(data: bytes) -> Any:
    """JSON bytes as plain data; raises `ValueError`.

    msgspec is fast and strict; half a surrogate pair, which some servers cut an emoji into, is
    left to the standard library and made whole later.
    """
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)
