"""What an order may cost on the snapshot day, worked out from the catalogue alone.

Written apart from the simulator's own calculation on purpose: a judge that checked a host's sum
with the host's own calculator would agree with its mistakes.
"""

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations
from typing import Any

from harness_cli.records.catalogue import Catalogue, Product, Promotion

_CENT = Decimal("0.01")
MOST_OFFERS = 8
"""Offers of one order that are combined with each other."""


def running_offers(world: Catalogue, room: str, product: str | None = None) -> list[Promotion]:
    """The offers that run on the snapshot day in a room, for one product or for any."""
    day = world.snapshot
    return [
        offer
        for offer in world.promotions
        if (not offer.room or not room or offer.room == room)
        and (product is None or not offer.products or product in offer.products)
        and (not offer.starts or offer.starts <= day)
        and (not offer.ends or day <= offer.ends)
    ]


def payable(
    product: Product, quantity: int, offers: Sequence[Promotion], *, member: bool
) -> list[dict[str, Any]]:
    """Every sum that `quantity` pieces may come to, cheapest first, with the offers it takes.

    Rules, as the catalogue's campaigns state them: an offer counts from its threshold on, measured
    on the undiscounted price; several count together only when each says that it stacks and no two
    are of one kind; percentages first, each of the undiscounted price, then amounts. Sums in yuan.
    """
    base = Decimal(str(product.price)) * quantity
    usable = [
        offer
        for offer in offers
        if offer.amount and offer.kind not in ("gift", "shipping")
        if (member or not offer.member_only) and base >= Decimal(str(offer.threshold))
    ][:MOST_OFFERS]
    found: dict[Decimal, list[str]] = {}
    for chosen in _together(usable):
        pays = _pays(base, chosen)
        names = [offer.name for offer in chosen]
        if pays not in found or len(names) < len(found[pays]):
            found[pays] = names
    return [{"pays": plain(pays), "with": names} for pays, names in sorted(found.items())]


def _together(offers: Sequence[Promotion]) -> Iterator[tuple[Promotion, ...]]:
    for size in range(len(offers) + 1):
        for chosen in combinations(offers, size):
            kinds = {offer.kind for offer in chosen}
            if size < 2 or (len(kinds) == size and all(offer.stackable for offer in chosen)):
                yield chosen


def _pays(base: Decimal, chosen: Sequence[Promotion]) -> Decimal:
    left = base
    for offer in sorted(chosen, key=lambda o: not takes_share(o)):
        amount = Decimal(str(offer.amount))
        saving = base * amount / 100 if takes_share(offer) else amount
        left -= min(left, saving.quantize(_CENT, rounding=ROUND_HALF_UP))
    return left.quantize(_CENT)


def takes_share(offer: Promotion) -> bool:
    """Whether `amount` is percent: by kind; `member` where no threshold makes it a coupon."""
    return offer.kind == "percent" or (
        offer.kind == "member" and not offer.threshold and not offer.gift
    )


def plain(amount: Decimal) -> float | int:
    """89 rather than 89.00."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)
