"""Builders by the name a scenario file uses: a scenario and a seed become one comment."""

from collections.abc import Callable

from harness_cli.simulator.scenarios import about_products, about_rooms
from harness_cli.simulator.scenarios.pieces import Ask, Piece

BUILDERS: dict[str, Callable[[Ask], Piece]] = {
    "product": about_products.product,
    "variant": about_products.variant,
    "wrong_price": about_products.wrong_price,
    "final": about_products.final,
    "switch": about_products.switch,
    "switch_if_there": about_products.switch_if_there,
    "compare": about_products.compare,
    "cheaper": about_products.cheaper,
    "search": about_rooms.search,
    "plain": about_rooms.plain,
    "event": about_rooms.event,
    "status": about_rooms.status,
    "vague": about_rooms.vague,
    "policy": about_rooms.policy,
    "faq": about_rooms.faq,
    "promotion": about_rooms.promotion,
}


def build(ask: Ask) -> Piece:
    """One piece by the scenario's own builder."""
    return BUILDERS[ask.scenario.build](ask)
