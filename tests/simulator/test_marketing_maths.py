"""Promotions in whole cents, against a brute force over all subsets in exact fractions."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.records.catalogue import Catalogue, Product, Promotion
from harness_cli.simulator.promotions import (
    Line,
    best,
    cents,
    combinable,
    quote,
    reached,
    running,
    runs,
    shortfall,
    yuan,
)


def thing(name="p-1", price=100.0):
    return Product(id=name, name=name, category="x", price=price, list_price=price)


def offer(name, kind, amount=0.0, threshold=0.0, **more):
    return Promotion(id=name, name=name, kind=kind, amount=amount, threshold=threshold, **more)


PRICES = st.integers(1, 90_000).map(lambda c: c / 100)
LINES = st.lists(
    st.builds(
        lambda n, p, q: Line(thing(f"p-{n}", p), q), st.integers(1, 4), PRICES, st.integers(1, 5)
    ),
    min_size=1,
    max_size=4,
)
OFFERS = st.lists(
    st.builds(
        lambda n, kind, amount, threshold, stackable, products, member: offer(
            f"o-{n}",
            kind,
            min(amount, 60) if kind == "percent" else amount,
            threshold,
            stackable=stackable,
            products=products,
            member_only=member,
        ),
        st.integers(0, 999),
        st.sampled_from(["full_reduction", "percent", "coupon", "member"]),
        st.integers(1, 20_000).map(lambda c: c / 100),
        st.integers(1, 60_000).map(lambda c: c / 100),
        st.booleans(),
        st.sampled_from([(), ("p-1",), ("p-1", "p-2")]),
        st.booleans(),
    ),
    max_size=6,
    unique_by=lambda o: o.id,
)


def brute_force(lines, offers, member):
    """Every subset, every rule read again from the text, money as fractions."""
    prices = [(ln.product.id, Fraction(str(ln.product.price)) * ln.quantity) for ln in lines]
    total = sum(p for _, p in prices)
    cheapest = total
    for size in range(len(offers) + 1):
        for chosen in combinations(offers, size):
            if size > 1 and (
                not all(o.stackable for o in chosen) or len({o.kind for o in chosen}) < size
            ):
                continue
            left, fine = total, True
            for o in sorted(chosen, key=lambda o: o.kind != "percent"):
                base = sum(p for i, p in prices if not o.products or i in o.products)
                enough = base > 0 and base >= Fraction(str(o.threshold))
                fine = fine and enough and (member or not o.member_only)
                off = Fraction(str(o.amount))
                if o.kind == "percent":
                    exact = base * off  # cents: base * off / 100 * 100
                    whole = exact.numerator // exact.denominator
                    off = Fraction(whole + (exact - whole >= Fraction(1, 2)), 100)
                left = max(Fraction(0), left - off)
            if fine:
                cheapest = min(cheapest, left)
    return cheapest


@settings(max_examples=300, deadline=None)
@given(LINES, OFFERS, st.booleans())
def test_the_best_order_is_the_cheapest_of_all_subsets(lines, offers, member):
    found = best(lines, offers, member=member)
    assert Fraction(found.final, 100) == brute_force(lines, offers, member)
    assert combinable([a.offer for a in found.applied])
    assert all(reached(lines, a.offer) for a in found.applied)
    assert found.saving == sum(a.saving for a in found.applied)


@settings(max_examples=100, deadline=None)
@given(LINES, OFFERS)
def test_membership_never_costs_more_and_no_price_is_negative(lines, offers):
    ordinary, member = best(lines, offers), best(lines, offers, member=True)
    assert 0 <= member.final <= ordinary.final <= ordinary.original


@pytest.mark.parametrize(
    ("price", "percent", "expected"),
    [(0.29, 50, 14), (0.3, 50, 15), (99.99, 12, 8799), (89.9, 5, 8540), (0.01, 50, 0)],
)
def test_percent_is_rounded_half_up_in_cents(price, percent, expected):
    assert quote([Line(thing(price=price))], [offer("o", "percent", percent)]).final == expected


def test_prices_that_binary_floats_cannot_hold_are_exact():
    assert cents(0.1) + cents(0.2) == cents(0.3)
    assert quote([Line(thing(price=19.99), 3)], ()).final == 5997
    assert yuan(8900) == 89
    assert isinstance(yuan(8900), int)
    assert yuan(8990) == 89.9


def test_thresholds_are_met_by_undiscounted_prices_and_reached_exactly():
    lines = [Line(thing(price=200))]
    both = [
        offer("a", "full_reduction", 30, 200, stackable=True),
        offer("b", "coupon", 10, 200, stackable=True),
    ]
    assert best(lines, both).final == 16_000
    assert best([Line(thing(price=199.99))], both).final == 19_999


def test_an_offer_that_does_not_stack_stands_alone():
    offers = [
        offer("a", "full_reduction", 30, 100, stackable=True),
        offer("b", "percent", 40),
        offer("c", "coupon", 5, stackable=True),
    ]
    found = best([Line(thing())], offers)
    assert (found.final, [a.offer.id for a in found.applied]) == (6_000, ["b"])


def test_a_gift_comes_along_with_an_offer_that_does_not_stack():
    offers = [offer("g", "gift", gift="one comb"), offer("b", "percent", 40)]
    assert [o.id for o in best([Line(thing())], offers).extras] == ["g"]


def test_what_is_missing_to_the_nearest_threshold():
    offers = [offer("a", "full_reduction", 30, 200), offer("b", "full_reduction", 10, 120)]
    missed, gap = shortfall([Line(thing(price=109.5))], offers)
    assert (missed.id, gap) == ("b", 1_050)
    assert shortfall([Line(thing(price=500))], offers) is None


@pytest.mark.parametrize(
    ("day", "expected"),
    [("2026-11-17", -1), ("2026-11-18", 0), ("2026-11-24", 0), ("2026-11-25", 1)],
)
def test_an_offer_runs_from_its_first_to_its_last_day(day, expected):
    assert runs(offer("o", "coupon", starts="2026-11-18", ends="2026-11-24"), day) == expected


def test_offers_of_a_room_and_a_product():
    world = Catalogue(
        snapshot="2026-11-20",
        promotions=(
            offer("a", "coupon", 5, room="r1"),
            offer("b", "coupon", 5, room="r2"),
            offer("c", "percent", 5, room="r1", products=("p-9",)),
            offer("d", "coupon", 5),
            offer("e", "coupon", 5, room="r1", ends="2026-11-01"),
        ),
    )
    assert [o.id for o in running(world, "r1")] == ["a", "c", "d"]
    assert [o.id for o in running(world, "r1", product="p-1")] == ["a", "d"]
