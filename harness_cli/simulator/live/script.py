"""What happens in a room during one session, drawn before it begins: the plan of the evening.

Everything but the comments: which link is presented when, which offers open and close, what viewers
do. The same seed gives the same script; the room's state follows from it alone (`room.py`).
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from harness_cli.records.catalogue import Catalogue, LiveRoom, Promotion
from harness_cli.simulator.live.arrivals import Arrivals, arrival_times
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.promotions import fitting, runs
from harness_cli.simulator.scenarios.draws import generator

PRESENTED_S = (40.0, 130.0)
"""A link is presented for so long (**choice**) …"""
TALK_S = (10.0, 50.0)
"""… and between two of them the host talks, nothing in hand."""
LAST_S = (0.2, 0.6)
"""Length of an offer's window, as a share of the session."""
Action = Literal["join", "like", "add_to_cart", "order"]
ACTIONS: tuple[Action, ...] = ("join", "like", "add_to_cart", "order")


@dataclass(frozen=True, slots=True)
class Presented:
    """A link is taken up; None: the host talks about nothing in particular."""

    at: float
    link: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """An offer runs from `opens` to `closes`, seconds of the session."""

    offer: str
    opens: float
    closes: float

    def phase(self, at: float) -> int:
        """-1 before it opens, 0 while it runs, 1 when it is over."""
        return -1 if at < self.opens else int(at >= self.closes)


@dataclass(frozen=True, slots=True)
class Deed:
    """What a viewer does; `place` in [0, 1) chooses the variant among those that are left."""

    at: float
    viewer: str
    kind: Action
    link: int | None = None
    units: int = 1
    place: float = 0.0


@dataclass(frozen=True, slots=True)
class Script:
    """One session's plan; every list is in order of time."""

    presented: tuple[Presented, ...]
    windows: tuple[Window, ...]
    deeds: Sequence[Deed]

    def stirs(self, seconds: float) -> list[float]:
        """When something happens that viewers comment on."""
        shown = [p.at for p in self.presented if p.link is not None]
        return sorted([*shown, *(w.opens for w in self.windows if 0 < w.opens < seconds)])

    def link_at(self, at: float) -> int | None:
        """The link that is presented."""
        last = None
        for shown in self.presented:
            if shown.at > at:
                break
            last = shown.link
        return last


class Deeds(Sequence[Deed]):
    """What viewers do, each deed drawn when the room comes to it: a short visit needs few."""

    def __init__(self, count: int, drawn: Iterator[Deed]) -> None:
        self._count, self._drawn = count, drawn
        self._found: list[Deed] = []

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        last = self._count if isinstance(at, slice) or at < 0 else min(at + 1, self._count)
        self._found += islice(self._drawn, max(0, last - len(self._found)))
        return self._found[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Deeds) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def draw_script(
    world: Catalogue, room: LiveRoom, settings: Settings, viewers: tuple[str, ...], seed: object
) -> Script:
    """The plan of one session of `room`."""
    presented = _presented(room, settings.session_s, generator(seed, "presented"))
    windows = _windows(world, room, settings, generator(seed, "windows"))
    plan = Script(presented, windows, ())
    return Script(
        presented, windows, _deeds(plan, room, settings, viewers, generator(seed, "deeds"))
    )


def _presented(room: LiveRoom, seconds: float, rng: random.Random) -> tuple[Presented, ...]:
    found = [Presented(0.0, None)]
    order = list(range(1, len(room.products) + 1))
    rng.shuffle(order)
    # Half of the sessions are joined while a link is being presented.
    now = 0.0 if rng.random() < 0.5 else rng.uniform(*TALK_S)
    while now < seconds and order:
        link = order.pop(0)
        order.append(link)
        found.append(Presented(now, link))
        now += rng.uniform(*PRESENTED_S)
        found.append(Presented(now, None))
        now += rng.uniform(*TALK_S)
    return tuple(found)


def _windows(
    world: Catalogue, room: LiveRoom, settings: Settings, rng: random.Random
) -> tuple[Window, ...]:
    """Some offers of the day open or close meanwhile; the others run all evening."""
    seconds = settings.session_s
    found = []
    for offer in offers_of_the_day(world, room):
        opens = rng.uniform(-0.3, 0.7) * seconds
        lasts = rng.uniform(*LAST_S) * seconds
        if rng.random() < settings.windows:
            found.append(Window(offer.id, opens, opens + lasts))
    return tuple(sorted(found, key=lambda w: (w.opens, w.offer)))


def offers_of_the_day(world: Catalogue, room: LiveRoom) -> list[Promotion]:
    """What runs in a room on the snapshot day, were the session as long as the day."""
    return [o for o in fitting(world, room.id) if runs(o, world.snapshot) == 0]


def _deeds(
    plan: Script,
    room: LiveRoom,
    settings: Settings,
    viewers: tuple[str, ...],
    rng: random.Random,
) -> Deeds:
    actions = settings.actions
    weights: dict[Action, float] = {k: getattr(actions, k) for k in ACTIONS}
    if not actions.per_s or not any(weights.values()):
        return Deeds(0, iter(()))
    rate = Arrivals(base=actions.per_s, branching=0.3)
    times = arrival_times(rate, settings.session_s, rng, happenings=plan.stirs(settings.session_s))
    return Deeds(len(times), _drawn(plan, times, weights, len(room.products), viewers, rng))


def _drawn(
    plan: Script,
    times: Sequence[float],
    weights: Mapping[Action, float],
    shelf: int,
    viewers: tuple[str, ...],
    rng: random.Random,
) -> Iterator[Deed]:
    total = sum(weights.values())
    bounds = [
        (kind, sum(list(weights.values())[: n + 1]) / total) for n, kind in enumerate(weights)
    ]
    drawn = rng.random
    for at in times:
        place = drawn()
        kind = next((k for k, bound in bounds if place < bound), bounds[-1][0])
        viewer = viewers[int(drawn() * len(viewers))]
        if kind in ("join", "like"):
            yield Deed(at, viewer, kind)
            continue
        # What is in the host's hand sells best.
        shown = plan.link_at(at) if drawn() < 0.7 else None
        link = shown or int(drawn() * shelf) + 1
        yield Deed(at, viewer, kind, link, 2 if drawn() < 0.15 else 1, drawn())
