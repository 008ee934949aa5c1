"""The judge's index of a catalogue serves the next run of the process, and no other catalogue."""

from harness_cli.judges.grounded.indexed import indexed
from harness_cli.records.catalogue import Catalogue, Product


def catalogue(price: float) -> Catalogue:
    cup = Product(id="cup", name="Red Cup", category="cups", price=price, list_price=30)
    return Catalogue(snapshot="2026-06-01", products=(cup,), digest="same digest")


def test_a_catalogue_that_says_the_same_is_indexed_once():
    assert indexed(catalogue(20)) is indexed(catalogue(20))


def test_a_changed_catalogue_is_indexed_anew_even_under_an_old_digest():
    before = indexed(catalogue(20))
    after = indexed(catalogue(21))
    assert after is not before
    assert after.world.cards["cup"].product.price == 21
    assert indexed(catalogue(20)).world.cards["cup"].product.price == 20
