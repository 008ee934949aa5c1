"""One request to the agent: comments of viewers and the room they were made in."""

from typing import Any, Literal

import msgspec


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """One viewer comment."""

    viewer: str = ""
    text: str = ""
    at: float | None = None
    """Seconds since the room opened; the aggregator groups by it."""


class RoomEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A viewer action beside the comments."""

    viewer: str
    kind: Literal["join", "add_to_cart", "order", "like"]
    product: str | None = None
    at: float | None = None


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """The live room at the moment of the request."""

    id: str = ""
    current_link: int | None = None
    """1-based position in `products` of what is presented now."""
    products: tuple[str, ...] = ()
    """Product ids in presentation order; link n is `products[n - 1]`."""
    status: Literal["live", "preview", "ended"] = "live"


class FaqEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A retrieved FAQ entry that travels with the request."""

    id: str
    question: str
    answer: str
    product: str | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent is asked: `x` of π(a | x, h) (TR §3.1)."""

    channel: Literal["public", "private"] = "public"
    comments: tuple[Comment, ...] = ()
    anchor: tuple[str, ...] = ()
    """What the host said last, oldest first."""
    room: Room = Room()
    faq: tuple[FaqEntry, ...] = ()
    history: tuple[dict[str, Any], ...] = ()
    """Earlier turns, OpenAI messages of role user and assistant."""
    events: tuple[RoomEvent, ...] = ()
    mode: Literal["single", "multi"] = "single"
    prompt: str | None = None
    """The bare prompt of `agent: bare` evalsets; comments are empty then."""
