"""What an order costs after campaigns, coupons and member benefits: exact, in whole cents.

Rules (**choice**, as the shipped campaigns state them):
- an offer counts when it runs on the day, fits the room and a product, and the *undiscounted* price
  of the products it is for reaches its threshold;
- offers are combined only when every one of them is stackable, and at most one of each kind; an
  offer that is not stackable stands alone;
- a percentage is taken off the products it is for, rounded half up in cents; then amounts come off;
- gifts and free shipping change no price and come with whatever else applies.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import product as every_choice

from harness_cli.records.catalogue import Catalogue, Product, Promotion

AUTOMATIC = ("full_reduction", "percent")
"""Kinds that apply at checkout by themselves; a coupon has to be collected first."""
FREE = ("gift", "shipping")
"""Kinds that change no price."""


@dataclass(frozen=True, slots=True)
class Line:
    """A product and how many of it."""

    product: Product
    quantity: int = 1

    @property
    def cents(self) -> int:
        """The undiscounted price."""
        return cents(self.product.price) * self.quantity


@dataclass(frozen=True, slots=True)
class Applied:
    """One offer and what it takes off, in cents."""

    offer: Promotion
    saving: int


@dataclass(frozen=True, slots=True)
class Quote:
    """An order with its offers. Amounts are cents."""

    original: int
    final: int
    applied: tuple[Applied, ...] = ()
    extras: tuple[Promotion, ...] = ()
    """Gifts and free shipping that come along."""

    @property
    def saving(self) -> int:
        """What the offers take off."""
        return self.original - self.final


def cents(yuan: float) -> int:
    """A price of the catalogue in whole cents."""
    return int((Decimal(str(yuan)) * 100).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def yuan(amount: int) -> float | int:
    """Cents as the number a host says: 89, not 89.0."""
    return amount // 100 if amount % 100 == 0 else amount / 100


def running(
    world: Catalogue, room: str | None, *, product: str | None = None, day: str | None = None
) -> list[Promotion]:
    """The offers that run in a room (for one product) on a day, the snapshot's by default."""
    return [p for p in fitting(world, room, product=product) if runs(p, day or world.snapshot) == 0]


def fitting(world: Catalogue, room: str | None, *, product: str | None = None) -> list[Promotion]:
    """All offers of a room (for one product), past and coming ones too."""
    return [
        p
        for p in world.promotions
        if (not p.room or p.room == room) and (product is None or covers(p, product))
    ]


def runs(offer: Promotion, day: str) -> int:
    """0 while an offer runs, -1 before it begins, 1 after it ended. Days are ISO dates."""
    if offer.starts and day < offer.starts:
        return -1
    return 1 if offer.ends and day > offer.ends else 0


def covers(offer: Promotion, product: str) -> bool:
    """Whether an offer is for a product."""
    return not offer.products or product in offer.products


def is_percent(offer: Promotion) -> bool:
    """Whether `amount` is percent: by kind; for `member` where no threshold makes it a coupon."""
    return offer.kind == "percent" or (
        offer.kind == "member" and not offer.threshold and not offer.gift
    )


def eligible(lines: Sequence[Line], offer: Promotion) -> int:
    """The undiscounted price of the products an offer is for."""
    return sum(line.cents for line in lines if covers(offer, line.product.id))


def reached(lines: Sequence[Line], offer: Promotion) -> bool:
    """Whether the order has something the offer is for, and enough of it."""
    amount = eligible(lines, offer)
    return amount > 0 and amount >= cents(offer.threshold)


def combinable(chosen: Sequence[Promotion]) -> bool:
    """Whether offers may be used together."""
    if len(chosen) < 2:
        return True
    kinds = [o.kind for o in chosen]
    return all(o.stackable for o in chosen) and len(set(kinds)) == len(kinds)


def quote(
    lines: Sequence[Line], chosen: Iterable[Promotion], *, extras: Iterable[Promotion] = ()
) -> Quote:
    """The order under exactly these offers, which must be reached and combinable."""
    original = left = sum(line.cents for line in lines)
    applied = []
    for offer in sorted(chosen, key=lambda o: (not is_percent(o), o.id)):
        saving = min(left, _saving(lines, offer))
        left -= saving
        applied.append(Applied(offer, saving))
    return Quote(original, left, tuple(applied), tuple(extras))


def best(lines: Sequence[Line], offers: Sequence[Promotion], *, member: bool = False) -> Quote:
    """The cheapest order that the offers allow; of equal prices the one with fewest offers.

    Exhaustive over all combinations (one offer of each kind or none), so it is the optimum.
    """
    usable = [o for o in offers if reached(lines, o) and (member or not o.member_only)]
    extras = [o for o in usable if o.gift or o.kind in FREE]
    pricing = [o for o in usable if o.amount and o.kind not in FREE]
    kinds = sorted({o.kind for o in pricing})
    choices = [[None, *(o for o in pricing if o.kind == kind)] for kind in kinds]
    found = quote(lines, (), extras=extras)
    for picked in every_choice(*choices):
        chosen = [o for o in picked if o is not None]
        if not combinable(chosen):
            continue
        other = quote(lines, chosen, extras=extras)
        if (other.final, len(other.applied)) < (found.final, len(found.applied)):
            found = other
    return found


def shortfall(lines: Sequence[Line], offers: Sequence[Promotion]) -> tuple[Promotion, int] | None:
    """The offer whose threshold is missed by least, and by how many cents."""
    missed = []
    for offer in offers:
        gap = cents(offer.threshold) - eligible(lines, offer)
        if gap > 0 and eligible(lines, offer) > 0 and offer.amount:
            missed.append((gap, offer.id, offer))
    if not missed:
        return None
    gap, _, offer = min(missed)
    return offer, gap


def _saving(lines: Sequence[Line], offer: Promotion) -> int:
    if not is_percent(offer):
        return cents(offer.amount)
    share = Decimal(eligible(lines, offer)) * Decimal(str(offer.amount)) / 100
    return int(share.quantize(Decimal(1), rounding=ROUND_HALF_UP))
