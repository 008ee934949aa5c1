"""What an annotator sees of a request, and of what was done to answer it."""

from typing import TypedDict

from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.runs import RunFolder

LONGEST = 2_000
"""Characters of one tool result that a trace shows."""


class Shown(TypedDict):
    """The fields of a `BlindPair` that come from the item."""

    comments: tuple[str, ...]
    history: tuple[str, ...]
    anchor: tuple[str, ...]
    products: tuple[str, ...]


def request_of(item: Item, world: Catalogue) -> Shown:
    """Comments, dialogue history, the host's last words and the room's products by link."""
    request = item.request
    comments = tuple(f"{c.viewer}: {c.text}" if c.viewer else c.text for c in request.comments)
    if request.prompt is not None:
        comments = (*comments, request.prompt)
    return {
        "comments": comments,
        "history": tuple(
            f"{m.get('role', '?')}: {m.get('content') or ''}" for m in request.history
        ),
        "anchor": request.anchor,
        "products": _products(item, world),
    }


def _products(item: Item, world: Catalogue) -> tuple[str, ...]:
    room = item.request.room
    lines = []
    for link, product_id in enumerate(room.products, 1):
        product = world.product(product_id)
        names = [n for n in (product.name, product.zh_name) if n] if product else [product_id]
        now = " (presented now)" if link == room.current_link else ""
        lines.append(f"{link}: {' / '.join(names)}{now}")
    return tuple(lines)


def trace_of(run: RunFolder, items: set[str]) -> dict[str, tuple[str, ...]]:
    """Item id → the tool calls of its first rollout, with what came back."""
    found = run.trajectories(lambda key: key.repeat == 0 and key.item in items)
    return {t.item_id or "": _calls(t) for t in found}


def _calls(trajectory: Trajectory) -> tuple[str, ...]:
    lines = []
    for call in trajectory.calls:
        lines.append(f"{call.name} {call.arguments_raw} → {call.result.content[:LONGEST]}")
    return tuple(lines)
