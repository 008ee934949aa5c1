"""The state of one live room: current link, stock that sells, offers that open and close.

It moves by its script and by what the host does (`moved`), never by a clock of this machine.
Between two moves the facts stand still, and `moment()` is the catalogue that is true then: what
tools are answered from, what a judge checks against. Stock never falls below 0: an order that finds
nothing left is not placed.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from harness_cli.records.catalogue import Catalogue, LiveRoom, Promotion, StockLevel
from harness_cli.records.request import Request, Room, RoomEvent
from harness_cli.runtime.live_room import REMEMBERED, SPOKEN
from harness_cli.simulator.live.script import Deed, Script, Window
from harness_cli.simulator.promotions import runs

SEEN_S = 30.0
"""A viewer's action is told with the requests of so many seconds after it …"""
SEEN = 4
"""… the last ones of them."""


class RoomState:
    """One room of one episode. Nothing of it is shared with another one but the catalogue."""

    def __init__(self, base: Catalogue, script: Script) -> None:
        """`base` is the catalogue `narrowed` to the room."""
        self.script = script
        self.at = 0.0
        self.current_link: int | None = None
        self.taken_up: int | None = None
        """The link the host was asked to present, until the script takes up another."""
        self.anchor: tuple[str, ...] = ()
        self.history: tuple[dict[str, Any], ...] = ()
        self.talked: int | None = None
        """The link the last answered comment was about."""
        self.events: list[RoomEvent] = []
        self.refused_orders = 0
        self._base = base
        self._stock = {(s.product, s.variant): s.units for s in self._base.stock}
        self._windows = {w.offer: w for w in script.windows}
        self._next = 0
        self._shown = 0
        self._moment: Catalogue | None = None
        self._phases: tuple[int, ...] = ()

    @property
    def room(self) -> LiveRoom:
        """Its configuration."""
        return self._base.rooms[0]

    def advance(self, at: float) -> bool:
        """Let everything happen that the script has until `at`; whether a link was taken up."""
        changed = self._present(at)
        deeds = self.script.deeds
        while self._next < len(deeds) and deeds[self._next].at <= at:
            self._do(deeds[self._next])
            self._next += 1
        self.at = max(self.at, at)
        phases = tuple(w.phase(self.at) for w in self.script.windows)
        if phases != self._phases:
            self._phases, self._moment = phases, None
        return changed

    def _present(self, at: float) -> bool:
        shown = self.script.presented
        before = self._shown
        while self._shown < len(shown) and shown[self._shown].at <= at:
            self._shown += 1
        if self._shown == before:
            return False
        self.current_link = shown[self._shown - 1].link
        self.taken_up = None
        return True

    def _do(self, deed: Deed) -> None:
        product = None if deed.link is None else self.room.products[deed.link - 1]
        if deed.kind == "order" and not (product and self._sell(product, deed.units, deed.place)):
            self.refused_orders += 1
            return
        self.events.append(
            RoomEvent(viewer=deed.viewer, kind=deed.kind, product=product, at=round(deed.at, 3))
        )
        del self.events[:-64]

    def _sell(self, product: str, units: int, place: float) -> bool:
        """Take units of one variant that has as many left; False where none has."""
        able = [k for k, left in self._stock.items() if k[0] == product and left >= units]
        if not able:
            return False
        chosen = able[int(place * len(able))]
        self._stock[chosen] -= units
        self._moment = None
        return True

    def moved(self, link: int, position: str) -> None:
        """The host moved a product: what `change_presentation_order` did in this room."""
        if position == "now" and 1 <= link <= len(self.room.products):
            self.current_link = self.taken_up = link

    def said(self, words: Sequence[str]) -> None:
        """The host said something on the way, beside replies."""
        self.anchor = (*self.anchor, *words)[-SPOKEN:]

    def replied(self, request: Request, reply: str, link: int | None) -> None:
        """A reply was spoken: it and what it answers belong to the history of the room."""
        if not reply:
            return
        asked = "\n".join(c.text for c in request.comments)
        turns = (
            *self.history,
            {"role": "user", "content": asked},
            {"role": "assistant", "content": reply},
        )
        self.history = turns[-2 * REMEMBERED :]
        self.talked = link

    def seen(self) -> tuple[RoomEvent, ...]:
        """The actions that travel with a request now."""
        recent = [e for e in self.events if e.at is not None and e.at > self.at - SEEN_S]
        return tuple(recent[-SEEN:])

    def view(self) -> Room:
        """The room as a request has it."""
        return Room(id=self.room.id, current_link=self.current_link, products=self.room.products)

    def units(self, product: str) -> int:
        """Units of one product that are left."""
        return sum(left for (p, _), left in self._stock.items() if p == product)

    def moment(self) -> Catalogue:
        """The catalogue of this room as it is true now; the same object until something moves."""
        if self._moment is None:
            stock = tuple(
                StockLevel(product=p, variant=v, units=left) for (p, v), left in self._stock.items()
            )
            offers = tuple(self._offers())
            self._moment = msgspec.structs.replace(self._base, stock=stock, promotions=offers)
        return self._moment

    def _offers(self) -> list[Promotion]:
        found = []
        for offer in self._base.promotions:
            window = self._windows.get(offer.id)
            if window is None or runs(offer, self._base.snapshot):
                found.append(offer)
            elif shown := windowed(offer, window, self.at, self._base.snapshot):
                found.append(shown)
        return found


def windowed(offer: Promotion, window: Window, at: float, day: str) -> Promotion | None:
    """An offer with a window as the catalogue has it at `at`; None once it is over.

    One that opens later begins "today at" its second, which sorts behind the day itself, so every
    reader of the catalogue takes it for an offer that has not begun.
    """
    phase = window.phase(at)
    if phase > 0:
        return None
    if phase == 0:
        return msgspec.structs.replace(offer, ends=day)
    opens = int(window.opens)
    clock = f"{20 + opens // 3600:02d}:{opens // 60 % 60:02d}:{opens % 60:02d}"
    return msgspec.structs.replace(offer, starts=f"{day}T{clock}", ends="")


def narrowed(world: Catalogue, room: LiveRoom) -> Catalogue:
    """The part of the catalogue that one room can speak of; no digest, for it moves."""
    here = set(room.products)
    return msgspec.structs.replace(
        world,
        products=tuple(p for p in world.products if p.id in here),
        stock=tuple(s for s in world.stock if s.product in here),
        rooms=(room,),
        faq=tuple(f for f in world.faq if f.product is None or f.product in here),
        promotions=tuple(p for p in world.promotions if not p.room or p.room == room.id),
        orders=tuple(o for o in world.orders if o.product in here),
        digest="",
    )
