"""A live room fed line by line: comments are grouped, each group gets one reply, talk goes on.

Lines are comments, `name: text` with the viewer's name before; lines that begin with `/` steer:

    /link N       N is presented now        /host TEXT     the host said TEXT
    /private      replies go to the viewer  /public        replies are spoken (as at the start)
    /status WORD  live, preview or ended    /quit          end
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.request import Comment, Request
from harness_cli.records.trajectory import Trajectory
from harness_cli.runtime.aggregate import Aggregator, Group, request_of

REMEMBERED = 6
"""Turns of talk that travel with the next request."""
SPOKEN = 4
"""Last words of the host that do."""
_VIEWER = re.compile(r"^([^\s:：/][^:：]{0,30})[:：]\s+(.+)$")

Answer = Callable[[Request, Group], Awaitable[Trajectory]]


class LiveRoom:
    """The state of the room between comments."""

    def __init__(self, base: Request, world: Catalogue, *, window_s: float) -> None:
        self.request = base
        self._world = world
        self._window_s = window_s
        self._groups = self._grouping()

    def _grouping(self) -> Aggregator:
        return Aggregator(self.request.room, self._world, window_s=self._window_s)

    async def play(self, lines: AsyncIterator[str], answer: Answer) -> int:
        """Take lines until they end or `/quit`; returns how many groups were answered."""
        clock = asyncio.get_running_loop().time
        started, answered = clock(), 0
        coming = asyncio.ensure_future(_next(lines))
        try:
            while True:
                due = self._groups.next_at()
                wait = None if due is None else max(0.0, due - (clock() - started))
                done, _ = await asyncio.wait((coming,), timeout=wait)
                now = clock() - started
                text = coming.result() if done else ""
                ready = self._groups.ready(now)
                if done and text is not None:
                    ready += self._take(text, now)
                    coming = asyncio.ensure_future(_next(lines))
                if text is None or text.strip() == "/quit":
                    ready += self._groups.flush()
                for group in ready:
                    await self._reply(group, answer)
                    answered += 1
                if text is None or text.strip() == "/quit":
                    return answered
        finally:
            coming.cancel()

    def _take(self, text: str, now: float) -> list[Group]:
        """One line: a comment into its group, or a change of the room."""
        text = text.strip()
        if not text or text == "/quit":
            return []
        if text.startswith("/"):
            ready = self._groups.flush()
            self.request = steered(self.request, text)
            self._groups = self._grouping()
            return ready
        named = _VIEWER.match(text)
        viewer, said = (named[1], named[2]) if named else ("viewer", text)
        return self._groups.add(Comment(viewer=viewer, text=said, at=now), now)

    async def _reply(self, group: Group, answer: Answer) -> None:
        """Answer a group and remember what was said."""
        request = request_of(group, self.request)
        done = await answer(request, group)
        if not done.reply:
            return
        asked = "\n".join(c.text for c in group.comments)
        turns = (
            *self.request.history,
            {"role": "user", "content": asked},
            {"role": "assistant", "content": done.reply},
        )
        self.request = msgspec.structs.replace(self.request, history=turns[-2 * REMEMBERED :])


def steered(request: Request, line: str) -> Request:
    """The request after a `/` line; raises `UsageError` for one that is not known."""
    word, _, rest = line.partition(" ")
    room = request.room
    if word == "/link" and rest.strip().isdigit() and 1 <= int(rest) <= len(room.products):
        room = msgspec.structs.replace(room, current_link=int(rest))
    elif word == "/status" and rest.strip() in ("live", "preview", "ended"):
        room = msgspec.structs.replace(room, status=rest.strip())
    elif word == "/host" and rest.strip():
        spoken = (*request.anchor, rest.strip())[-SPOKEN:]
        return msgspec.structs.replace(request, anchor=spoken)
    elif word in ("/private", "/public"):
        return msgspec.structs.replace(request, channel=word[1:])
    else:
        raise UsageError(
            f"`{line}` is not known here",
            hint=f"/link 1-{len(room.products)}, /host TEXT, /private, /public, /status, /quit",
        )
    return msgspec.structs.replace(request, room=room)


async def _next(lines: AsyncIterator[str]) -> str | None:
    return await anext(lines, None)
