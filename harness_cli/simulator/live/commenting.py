"""What viewers write: scenarios worded for the room as it is, with what a good answer does.

The phrasings are those of the scenario library's *dev* families; test families are never drawn. A
comment that the room's state would answer differently than its scenario expects (a "which one?"
while a link is in the host's hand, a wish to see what is shown already) is not made: another one is
drawn.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from harness_cli.errors import UsageError
from harness_cli.harness.memo import Memo
from harness_cli.records.catalogue import Catalogue, LiveRoom, Product
from harness_cli.records.request import Comment
from harness_cli.simulator.live.room import RoomState
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.scenarios.builders import build
from harness_cli.simulator.scenarios.draws import NothingFits, pick
from harness_cli.simulator.scenarios.library import Context, Library, Needs, Scenario
from harness_cli.simulator.scenarios.noise import noisy
from harness_cli.simulator.scenarios.pieces import Ask, Piece
from harness_cli.simulator.scenarios.setting import REFERENCES, Place, Scene

TRIES = 40
JOINED = {"en": (" and ", " also, ", " btw "), "zh": ("，另外", "，还有", "，顺便问下")}
"""Between the two intents of one comment."""
ON_SCREEN = ("current", "anchor")


@dataclass(frozen=True, slots=True)
class Said:
    """One comment and the intents in it, in their order."""

    comment: Comment
    pieces: tuple[Piece, ...]

    @property
    def kind(self) -> str:
        """`mixed`, or the category of its one intent."""
        return "mixed" if len(self.pieces) > 1 else self.pieces[0].scenario.category


class LiveScene(Scene):
    """The surroundings of one comment, taken from the state of a room instead of drawn."""

    def __init__(self, world: Catalogue, context: Context, state: RoomState) -> None:
        super().__init__(world, context, "dev")
        self.state = state
        self.kind = "link"
        """How the comment at hand points at its product."""

    def candidates(
        self, needs: Needs, room: str | None = None
    ) -> list[tuple[LiveRoom, int, Product]]:
        """The links that can be asked about, and pointed at in the way of this comment."""
        found = super().candidates(needs, room)
        wanted = {"history": self.state.talked}.get(self.kind, self.state.current_link)
        if self.kind in (*ON_SCREEN, "history"):
            return [entry for entry in found if entry[1] == wanted]
        return found

    def point(
        self,
        rng: random.Random,
        where: tuple[LiveRoom, int, Product],
        language: str,
        kind: str,
    ) -> Place:
        """A reference to a product; what resolves it is the room's own past and present."""
        form = {"anchor": "current"}.get(kind, kind)
        place = super().point(rng, where, language, form)
        state = self.state
        return Place(
            place.room,
            place.product,
            place.link,
            place.words,
            place.kind,
            state.current_link,
            state.anchor,
            state.history,
        )

    def presented(self, rng: random.Random, room: LiveRoom) -> int:  # noqa: ARG002  the room knows
        """The link in the host's hand. Raises `NothingFits` where there is none."""
        if self.state.current_link is None:
            raise NothingFits("nothing is presented")
        return self.state.current_link

    def small_talk(self, rng: random.Random, language: str) -> tuple[str, ...]:  # noqa: ARG002
        """What the host said last."""
        return self.state.anchor


class Commenter:
    """Words comments for one room."""

    def __init__(self, library: Library, settings: Settings, state: RoomState) -> None:
        self._library = library
        self._settings = settings
        self._state = state
        made = _CHOICES.get(
            (library.scenarios,),
            (state.room.id, tuple(settings.mix.items())),
            lambda: _choices(library, settings.mix, state.room.id),
        )
        self._scenarios = made
        self._categories = list(made)
        self._weights = [settings.mix[c] for c in made]
        self._scene: LiveScene | None = None

    @property
    def viewers(self) -> tuple[str, ...]:
        """Who may comment."""
        return self._library.context.viewers

    def say(self, at: float, rng: random.Random) -> Said | None:
        """A comment at a time; None where nothing that was drawn fits the room just then."""
        language = "zh" if rng.random() < self._settings.chinese else "en"
        first = self._piece(language, rng)
        if first is None:
            return None
        pieces, text = [first], first.text
        if rng.random() < self._settings.mixed and (second := self._second(first, rng)):
            pieces.append(second)
            text += pick(rng, JOINED[language]) + _lowered(second.text)
        if rng.random() < self._settings.noisy and self._may_spoil(pieces):
            text = noisy(text, language, self._library.context.noise, rng)
        viewer = first.events[0].viewer if first.events else pick(rng, self.viewers)
        return Said(Comment(viewer=viewer, text=text, at=round(at, 3)), tuple(pieces))

    def follow_up(self, said: Said, at: float, rng: random.Random) -> Said | None:
        """Another product question of the same viewer, about the product just spoken of."""
        first = said.pieces[0]
        if first.link is None:
            return None
        fitting = [
            s
            for s in self._scenarios.get("product-qa", ())
            if s.build == "product" and not set(s.answers) & set(first.scenario.answers)
        ]
        tries = (self._try(fitting, first.language, rng, kind="history") for _ in range(TRIES))
        piece = next((p for p in tries if p is not None), None)
        if piece is None:
            return None
        made = Comment(viewer=said.comment.viewer, text=piece.text, at=round(at, 3))
        return Said(made, (piece,))

    def _piece(self, language: str, rng: random.Random) -> Piece | None:
        for _ in range(TRIES):
            category = rng.choices(self._categories, self._weights)[0]
            scenarios = self._scenarios[category]
            scenario = rng.choices(scenarios, [s.weight for s in scenarios])[0]
            piece = self._try([scenario], language, rng)
            if piece is not None:
                return piece
        return None

    def _try(
        self, scenarios: list[Scenario], language: str, rng: random.Random, kind: str | None = None
    ) -> Piece | None:
        """One of the scenarios worded for now; None where it does not fit."""
        if not scenarios:
            return None
        scenario = pick(rng, scenarios)
        scene = self._scene
        if scene is None or scene.world is not self._state.moment():
            scene = LiveScene(self._state.moment(), self._library.context, self._state)
            self._scene = scene
        scene.kind = kind or self._kind(rng)
        ask = Ask(
            scenario=scenario,
            scene=scene,
            language=language,
            rng=rng,
            kind=scene.kind,
            room=self._state.room.id,
        )
        try:
            piece = build(ask)
        except (NothingFits, IndexError, StopIteration):  # what it needs is not in this room
            return None
        if not piece.text.strip() or not fits_now(piece, self._state):
            return None
        return _in_room(piece, self._state)

    def _kind(self, rng: random.Random) -> str:
        """How a product is pointed at, of the ways that are clear just now."""
        kind = rng.choices(list(REFERENCES), list(REFERENCES.values()))[0]
        state = self._state
        if kind in ON_SCREEN and (
            state.current_link is None or state.talked not in (None, state.current_link)
        ):
            return "link"
        return "link" if kind == "history" and state.talked is None else kind

    def _second(self, first: Piece, rng: random.Random) -> Piece | None:
        """A second intent for the same comment: another question that names its own product."""
        if not _joinable(first):
            return None
        categories = [c for c in ("product-qa", "promotion", "after-sales", "chat")
                      if c in self._scenarios]  # fmt: skip
        for _ in range(TRIES // 4):
            if not categories:
                return None
            scenario = pick(rng, self._scenarios[pick(rng, categories)])
            if set(scenario.answers) & set(first.scenario.answers):
                continue
            piece = self._try([scenario], first.language, rng, kind="link")
            if piece is not None and _joinable(piece):
                return piece
        return None

    def _may_spoil(self, pieces: list[Piece]) -> bool:
        tags = {t for p in pieces for t in p.scenario.tags}
        return "injection" not in tags and any(c.isalpha() for c in pieces[0].text)


_CHOICES: Memo[dict[str, list[Scenario]]] = Memo(64)


def _choices(library: Library, mix: Mapping[str, float], room: str) -> dict[str, list[Scenario]]:
    """Category → its scenarios that can come up in a room. Raises `UsageError` without any."""
    found = {
        category: fitting
        for category, weight in mix.items()
        if weight > 0
        and (fitting := [s for s in library.of(category) if s.weight and s.room in (None, room)])
    }
    if not found:
        raise UsageError(f"no scenario of `mix` fits the room `{room}`")
    return found


def fits_now(piece: Piece, state: RoomState) -> bool:
    """Whether the scenario's expectations hold in the room as it is."""
    build_name = piece.scenario.build
    if build_name == "vague":
        return state.current_link is None and state.talked is None
    moves = [t for t in piece.tools if t.name == "change_presentation_order"]
    return all(t.arguments.get("link_id") != state.current_link for t in moves)


def _in_room(piece: Piece, state: RoomState) -> Piece:
    """The piece with the room's own surroundings."""
    return msgspec.structs.replace(
        piece,
        current_link=state.current_link,
        anchor=state.anchor,
        history=state.history,
        tags=(*piece.tags, *_resolved(piece)),
    )


def _resolved(piece: Piece) -> tuple[str, ...]:
    return ("live",) if "live" not in piece.tags else ()


def _joinable(piece: Piece) -> bool:
    """Whether an intent can share a comment: it wants an answer, and is no ordered task."""
    odd: set[Any] = {"silent", "refuse", "clarify"}
    scenario = piece.scenario
    return not (odd & set(scenario.answers) or scenario.order or piece.events or piece.faq)


def _lowered(text: str) -> str:
    """The second half of a sentence does not begin with a capital, but for `I`."""
    return text if text[:2] in ("I ", "I'") else text[:1].lower() + text[1:]
