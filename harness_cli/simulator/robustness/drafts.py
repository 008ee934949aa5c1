"""A draft: one item on trial, with what the reference solver does about it."""

import random
from dataclasses import dataclass, field
from typing import Any

from harness_cli.records.catalogue import LiveRoom
from harness_cli.records.item import Assertion, Item
from harness_cli.records.request import Comment, Request, Room
from harness_cli.simulator.robustness.seeds import Draw, SeedTool, ToolSeed
from harness_cli.simulator.robustness.values import drawn, fill, states
from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.setting import Place, Scene

Call = tuple[str, dict[str, Any]]
KINDS = ("link", "link", "name", "current", "anchor")


@dataclass(frozen=True, slots=True)
class Draft:
    """One item on trial."""

    item: Item
    calls: tuple[Call, ...]
    """The reference solver's calls, in order."""
    reply: str
    """And what it says."""
    wrong_calls: tuple[Call, ...]
    """What a solver calls that goes by the sound of the names."""
    wrong_reply: str
    key: str
    """Two drafts of one key ask the same."""


@dataclass(slots=True)
class Asked:
    """The seed's part of a draft: the comment in its room, and the values of this item."""

    seed: ToolSeed
    language: str
    values: dict[str, Draw]
    comment: str
    room: LiveRoom
    place: Place | None
    tool_name: str
    viewer: str
    at: float
    arguments: dict[str, Any] = field(default_factory=dict)
    returns: dict[str, Any] = field(default_factory=dict)

    @property
    def reply(self) -> str:
        """The reference answer in the comment's language."""
        language = "zh" if self.language == "zh" else "en"
        return str(fill(self.seed.reply[language], self.values, language))


def ask(seed: ToolSeed, scene: Scene, language: str, rng: random.Random) -> Asked:
    """Draw everything of one comment."""
    place = None
    if seed.about_product:
        where = pick(rng, scene.candidates(seed.needs))
        place = scene.point(rng, where, language, pick(rng, KINDS))
    room = place.room if place else pick(rng, scene.rooms())
    viewer = pick(rng, scene.context.viewers)
    values: dict[str, Draw] = drawn(seed.draws, rng)
    values |= {"viewer": viewer, "room": room.id}
    if place:
        values |= {"ref": place.words, "link": place.link}
    phrases = seed.comments.of(language)
    return Asked(
        seed=seed,
        language=language,
        values=values,
        comment=str(fill(pick(rng, phrases), values, language)),
        room=room,
        place=place,
        tool_name=pick(rng, seed.tool.names),
        viewer=viewer,
        at=float(rng.randrange(300, 5000)),
        arguments={k: fill(v, values, language) for k, v in seed.arguments.items()},
        returns={k: fill(v, values, "en") for k, v in seed.returns.items()},
    )


def request_of(asked: Asked, scene: Scene, rng: random.Random) -> Request:
    """The request around the comment."""
    place, room = asked.place, asked.room
    shown = place.current_link if place else pick(rng, [None, *range(1, len(room.products) + 1)])
    anchor = place.anchor if place else scene.small_talk(rng, asked.language)
    return Request(
        comments=(Comment(viewer=asked.viewer, text=asked.comment, at=asked.at),),
        anchor=anchor,
        room=Room(id=room.id, current_link=shown, products=room.products),
    )


def definition(tool: SeedTool, name: str) -> dict[str, Any]:
    """A tool of a seed in MCP form, under one of its names."""
    properties = {key: {"type": kind} for key, kind in tool.parameters.items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = list(properties)
    return {"name": name, "description": tool.description, "inputSchema": schema}


def addresses(asked: Asked) -> Assertion:
    """ADR: the core of the query is answered, and the answer is no refusal."""
    core = tuple(states(asked.values[slot]) for slot in asked.seed.core)
    declined = Assertion(type="not-is-refusal")
    return Assertion(type="assert-set", metric="adr", assert_=(*core, declined))


def informs(asked: Asked) -> Assertion:
    """RC: everything required of the tool's return is in the reply."""
    required = tuple(states(asked.values[slot]) for slot in asked.seed.info)
    return Assertion(type="assert-set", metric="rc", assert_=required)
