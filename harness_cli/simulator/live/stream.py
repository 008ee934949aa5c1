"""The stream of a room: comments as they come, grouped by the runtime's aggregator into requests.

Time is simulated and moves in ticks. At the start of a tick the room settles (links, offers, orders
until then); its comments are worded for the room as it is then and grouped, and no group outlasts
the tick, so what a request is judged against is what was true when it was made.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from harness_cli.records.canonical import sha256
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Expect, Item
from harness_cli.records.request import Comment, Request
from harness_cli.runtime.aggregate import Aggregator, Group
from harness_cli.simulator.live.arrivals import arrival_times
from harness_cli.simulator.live.commenting import Commenter, Said
from harness_cli.simulator.live.room import RoomState
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.scenarios.draws import generator, pick
from harness_cli.simulator.scenarios.items import assertions, expectations
from harness_cli.simulator.scenarios.library import Library
from harness_cli.simulator.scenarios.pieces import Piece

OPENING = 0.5
"""An episode begins somewhere in the first half of its session."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a room, what is expected of it, and the catalogue that is true of it."""

    item: Item
    said: tuple[Said, ...]
    world: Catalogue
    at: float
    turn: int = 0
    """Of the viewer's dialogue, from 0."""

    @property
    def link(self) -> int | None:
        """The link it is about, where it is about one."""
        return next((p.link for s in self.said for p in s.pieces if p.link is not None), None)


class Stream:
    """The requests of one room, one after another."""

    def __init__(
        self, state: RoomState, library: Library, settings: Settings, seed: object, name: str
    ) -> None:
        self.state = state
        self.settings = settings
        self._name = name
        self._seed = seed
        self._commenter = Commenter(library, settings, state)
        self._filler = library.context.anchor
        self._times = deque(
            arrival_times(
                settings.arrivals,
                settings.session_s,
                generator(seed, "comments"),
                happenings=state.script.stirs(settings.session_s),
            )
        )
        self._tick = int(
            generator(seed, "opening").random() * OPENING * settings.session_s / settings.tick_s
        )
        self._waiting: deque[tuple[Group, dict[Comment, Said]]] = deque()
        self._made = 0
        self._words = 0
        while self._times and self._times[0] < self._tick * settings.tick_s:
            self._times.popleft()

    def next(self) -> Asked | None:
        """The next request; None when the session is over."""
        while not self._waiting:
            start = self._tick * self.settings.tick_s
            if start >= self.settings.session_s or not self._times:
                return None
            self._settle(start)
            self._collect(start + self.settings.tick_s)
            self._tick += 1
        group, heard = self._waiting.popleft()
        said = tuple(heard[c] for c in group.comments)
        self._made += 1
        return self.asked(said, at=group.opened)

    def asked(self, said: Sequence[Said], *, at: float, turn: int = 0) -> Asked:
        """The request of some comments in the room as it is now."""
        pieces = [p for s in said for p in s.pieces]
        several = len(said) > 1
        state, world = self.state, self.state.moment()
        first = pieces[0]
        request = Request(
            comments=tuple(s.comment for s in said),
            anchor=state.anchor,
            room=state.view(),
            faq=tuple({f.id: f for p in pieces for f in p.faq}.values()),
            history=state.history,
            events=(*(e for p in pieces for e in p.events), *state.seen())[-6:],
            mode="multi" if several else "single",
        )
        kept = answerable(pieces)
        tags = {t for p in pieces for t in (*p.scenario.tags, *p.tags)}
        tags |= {first.language, f"scenario:{first.scenario.id}", f"family:{first.family}"}
        tags |= {"multi"} if several else set()
        tags |= {"mixed"} if any(len(s.pieces) > 1 for s in said) else set()
        item = Item(
            id=f"{self._name}-{self._made}" + (f"-{turn}" if turn else ""),
            category=first.scenario.category,
            mode=request.mode,
            request=request,
            expect=_expected(kept, several),
            assert_=assertions(kept),
            tags=tuple(sorted(tags)),
        )
        return Asked(item, tuple(said), world, at, turn)

    def follow_up(self, asked: Asked) -> Asked | None:
        """The same viewer's next question, worded by the library; None where there is none."""
        turn = asked.turn + 1
        rng = generator(self._seed, "follow-up", self._made, turn)
        said = self._commenter.follow_up(asked.said[0], asked.at + turn, rng)
        return None if said is None else self.asked((said,), at=asked.at, turn=turn)

    def _settle(self, start: float) -> None:
        if self.state.advance(start):
            self.state.said(self._host_says())

    def _host_says(self) -> tuple[str, ...]:
        rng = generator(self._seed, "host", self._words)
        self._words += 1
        zh = rng.random() < self.settings.chinese
        link = self.state.current_link
        phrases = self._filler.product if link is not None else self._filler.filler
        line = pick(rng, phrases.of("zh" if zh else "en"))
        if link is None:
            return (line,)
        moment = self.state.moment()
        product = moment.product(self.state.room.products[link - 1])
        if product is None:
            return ()
        return (line.format(name=product.name, zh_name=product.zh_name, link=link),)

    def _collect(self, end: float) -> None:
        """Word and group the comments of one tick."""
        grouping = Aggregator(self.state.view(), self.state.moment())
        heard: dict[Comment, Said] = {}
        groups: list[Group] = []
        while self._times and self._times[0] < end:
            at = self._times.popleft()
            said = self._commenter.say(at, generator(self._seed, "comment", f"{at:.6f}"))
            if said is not None:
                heard[said.comment] = said
                groups += grouping.add(said.comment, at)
        self._waiting.extend((g, heard) for g in groups + grouping.flush())


def answerable(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that ask for something; those that want silence, where no other stands beside."""
    speaking = [p for p in pieces if "silent" not in p.scenario.answers]
    return list(speaking or pieces)


def _expected(pieces: Sequence[Piece], several: bool) -> Expect:
    """What a good answer does; several questions want the strategy for several only with tools."""
    return expectations(pieces, several and any(p.tools for p in pieces))


def fingerprint(asked: Asked) -> str:
    """Of all that the policy and the judges see of a request: equal in all rollouts of a group.

    Of the catalogue only what moves: the rest follows from the room.
    """
    moving = (asked.item, asked.world.stock, asked.world.promotions)
    return sha256(msgspec.json.encode(moving))
