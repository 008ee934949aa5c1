"""Who asks: a viewer of the library's own words, or a language model that plays one.

Dialogues have several turns: after a reply the viewer may come back. What the viewer wants was
drawn with the scenario and stays what it is (so that what a good answer does is known); a model
chooses the words, and when it is content. What a model says is data: one line, cut, never obeyed.
"""

import re
from importlib.resources import files
from typing import Protocol

import msgspec

from harness_cli.errors import ProviderError
from harness_cli.models.base import Deadline, Policy
from harness_cli.records.chat import ChatRequest, Message
from harness_cli.records.trajectory import Trajectory
from harness_cli.simulator.live.commenting import Said
from harness_cli.simulator.live.stream import Asked, Stream

DONE = "[done]"
MOST = 280
"""Characters of one comment."""
CALL_S = 60.0
_LINES = re.compile(r"\s+")


class Viewer(Protocol):
    """The viewer of one episode."""

    lines: list[str | None]
    """Its own words so far, for the record of the episode."""

    async def opening(self, asked: Asked) -> Asked:
        """The request as this viewer words it."""
        ...

    async def next(self, asked: Asked, trajectory: Trajectory, stream: Stream) -> Asked | None:
        """What it says to the reply; None where it has no more to say."""
        ...


class ScriptedViewer:
    """Words of the scenario library; it comes back with another question where one fits."""

    def __init__(self) -> None:
        self.lines: list[str | None] = []

    async def opening(self, asked: Asked) -> Asked:
        """As drawn."""
        return asked

    async def next(self, asked: Asked, trajectory: Trajectory, stream: Stream) -> Asked | None:
        """Another question about the product that was spoken of, where something was said."""
        if not trajectory.reply.strip() or len(asked.said) > 1:
            return None
        return stream.follow_up(asked)


class ModelViewer:
    """Any policy as a viewer (role `user_simulator`). One instance serves one episode.

    With `rewords` the first comment too is in the model's words; without, it is as drawn, so that
    the rollouts of a group share their request. A model that fails or says nothing ends the
    dialogue; it never ends the episode.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        rewords: bool = False,
        temperature: float = 1.0,
        seed: int | None = None,
    ) -> None:
        self._policy, self._rewords = policy, rewords
        self._temperature, self._seed = temperature, seed
        self.lines: list[str | None] = []
        self._turns: list[Message] = []

    async def opening(self, asked: Asked) -> Asked:
        """The drawn comment, in the viewer's own words where it rewords and has some."""
        self._turns = []
        if len(asked.said) > 1:
            return asked
        wish = asked.said[0].comment.text
        self._turns = [
            {"role": "system", "content": prompt().replace("{wish}", quoted(wish))},
            {"role": "user", "content": "(The show is on. Write your comment.)"},
        ]
        if not self._rewords:
            self._turns.append({"role": "assistant", "content": wish})
            self.lines.append(None)
            return asked
        line = await self._line()
        return asked if line is None else reworded(asked, line)

    async def next(
        self,
        asked: Asked,
        trajectory: Trajectory,
        stream: Stream,
    ) -> Asked | None:
        """What the viewer says to the reply, wanting what it wanted."""
        if not self._turns:
            return None
        heard = trajectory.reply.strip() or "(The host says nothing to you.)"
        self._turns.append({"role": "user", "content": f"The host: {quoted(heard)}"})
        line = await self._line()
        if line is None:
            return None
        said = asked.said[0]
        words = msgspec.structs.replace(said.comment, text=line)
        return stream.asked((Said(words, said.pieces),), at=asked.at, turn=asked.turn + 1)

    async def _line(self) -> str | None:
        request = ChatRequest(
            messages=tuple(self._turns),
            temperature=self._temperature,
            max_tokens=200,
            seed=self._seed,
            text_calls=False,
        )
        try:
            reply = await self._policy.complete(request, Deadline.within(CALL_S))
            line = one_line(reply.content or "")
        except ProviderError:
            line = None
        self.lines.append(line)
        if line is not None:
            self._turns.append({"role": "assistant", "content": line})
        return line


class RecordedViewer:
    """Says what a viewer of an earlier episode said."""

    def __init__(self, lines: tuple[str | None, ...]) -> None:
        self._left = list(lines)
        self.lines: list[str | None] = []

    async def opening(self, asked: Asked) -> Asked:
        """As it was worded then."""
        line = self._say() if len(asked.said) == 1 else None
        return asked if line is None else reworded(asked, line)

    async def next(self, asked: Asked, trajectory: Trajectory, stream: Stream) -> Asked | None:  # noqa: ARG002  one protocol
        """What was said then."""
        line = self._say() if len(asked.said) == 1 else None
        if line is None:
            return None
        said = asked.said[0]
        words = msgspec.structs.replace(said.comment, text=line)
        return stream.asked((Said(words, said.pieces),), at=asked.at, turn=asked.turn + 1)

    def _say(self) -> str | None:
        line = self._left.pop(0) if self._left else None
        self.lines.append(line)
        return line


def reworded(asked: Asked, line: str) -> Asked:
    """The same wish in other words."""
    said = asked.said[0]
    comment = msgspec.structs.replace(said.comment, text=line)
    request = msgspec.structs.replace(asked.item.request, comments=(comment,))
    item = msgspec.structs.replace(asked.item, request=request)
    return Asked(item, (Said(comment, said.pieces),), asked.world, asked.at, asked.turn)


def one_line(text: str) -> str | None:
    """A model's words as one comment; None where it is done or says nothing."""
    plain = _LINES.sub(" ", text).strip().strip('"“”').strip()
    return None if not plain or DONE in plain.casefold() else plain[:MOST]


def quoted(text: str) -> str:
    """Words that a model is told, as words and no more."""
    return '"' + _LINES.sub(" ", text).replace('"', "'")[:1000] + '"'


def prompt() -> str:
    """What a model that plays a viewer is told."""
    return files("harness_cli.simulator.live").joinpath("viewer.md").read_text("utf-8")
