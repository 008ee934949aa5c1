"""Sockets that know when bytes reached this machine, not only when a busy program looked.

A program that works on eight answers at once reads the ninth late. Linux notes when each segment
came and hands the note over with the bytes (SO_TIMESTAMPNS); asyncio reads by `recv`, or under TLS
by `recv_into`, and drops it, so both are answered by `recvmsg` here. Elsewhere, and where the
kernel says nothing, the time of reading is all there is.
"""

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable
from typing import Any, Final

_SO_TIMESTAMPNS: Final = 35
"""Of <asm-generic/socket.h>; Python has no name for it."""
_KNOWN: Final = sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64")
_TIMESPEC: Final = struct.Struct("@qq")
_ROOM: Final = socket.CMSG_SPACE(_TIMESPEC.size)


class StampedSocket(socket.socket):
    """A connected stream socket that remembers when what it gave last came."""

    _stamp = 0.0
    """Seconds of the wall clock, which is the kernel's for this; 0.0: it did not say."""

    def begin(self) -> None:
        """Ask the kernel for its notes; one that has none to give refuses, which costs nothing."""
        if _KNOWN:
            with contextlib.suppress(OSError):
                self.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """As `socket.recv`."""
        data, notes, _, _ = self.recvmsg(bufsize, _ROOM, flags)
        self._note(notes)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """As `socket.recv_into`."""
        into = memoryview(buffer)[:nbytes] if nbytes else buffer
        count, notes, _, _ = self.recvmsg_into([into], _ROOM, flags)
        self._note(notes)
        return count

    def came(self, after: float) -> float:
        """When the bytes that were read last came, by `time.perf_counter`.

        That of the last of them where several segments were read at once: never before the first
        was here. A note from before `after`, or from the future, tells of a wall clock that was
        set meanwhile, and is not believed.
        """
        now = time.perf_counter()
        if not self._stamp:
            return now
        then = now - (time.time() - self._stamp)
        self._stamp = 0.0
        return then if after <= then <= now else now

    def _note(self, notes: Iterable[tuple[int, int, bytes]]) -> None:
        self._stamp = 0.0
        for level, kind, data in notes:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(data) == 16:
                seconds, nanoseconds = _TIMESPEC.unpack(data)
                self._stamp = seconds + nanoseconds / 1e9
