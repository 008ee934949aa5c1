"""The catalogue replica: one value of several files, checked, named by its content."""

from pathlib import Path

import msgspec
import pytest

from harness_cli.errors import BadFile
from harness_cli.records.canonical import digest
from harness_cli.store.catalogue import read_catalogue

SHIPPED = Path(__file__).parents[2] / "evalsets" / "catalogue"
PRODUCT = "{id: p-1, name: Cup, category: home, price: 10, list_price: 12}"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_the_shipped_catalogue_has_rooms_products_and_all_that_hangs_on_them():
    world = read_catalogue(SHIPPED)
    assert len(world.rooms) >= 4
    assert len(world.products) >= 60
    assert len(world.faq) >= 60
    assert len(world.promotions) >= 25
    assert {p.category for p in world.products} == {
        "apparel", "beauty", "electronics", "food", "home", "mother-baby", "sports",
    }  # fmt: skip
    assert all(p.zh_name and p.attributes and p.images for p in world.products)
    assert all(a.zh_name and a.zh_value for p in world.products for a in p.attributes)
    assert all(p.price < p.list_price for p in world.products)
    units = {p.id: 0 for p in world.products}
    for level in world.stock:
        units[level.product] += level.units
    assert 0 in units.values()


def test_every_product_has_stock_for_the_whole_or_for_each_variant():
    world = read_catalogue(SHIPPED)
    for product in world.products:
        levels = [s.variant for s in world.stock if s.product == product.id]
        assert levels == list(product.variants or ("",))
        assert len(product.zh_variants) == len(product.variants)


def test_how_a_catalogue_is_split_into_files_does_not_matter(tmp_path):
    one = tmp_path / "one"
    two = tmp_path / "two"
    one.mkdir()
    two.mkdir()
    stock = "stock: [{product: p-1, units: 3}]\n"
    write(one, all=f'snapshot: "2026-01-01"\nproducts: [{PRODUCT}]\n{stock}')
    write(two, a='snapshot: "2026-01-01"\n', b=f"products:\n  - {PRODUCT}\n", c=stock)
    assert read_catalogue(one).digest == read_catalogue(two).digest


def test_a_changed_price_changes_the_digest(tmp_path):
    before = read_catalogue(write(tmp_path, all=f'snapshot: "2026-01-01"\nproducts: [{PRODUCT}]\n'))
    changed = PRODUCT.replace("price: 10,", "price: 11,")
    after = read_catalogue(write(tmp_path, all=f'snapshot: "2026-01-01"\nproducts: [{changed}]\n'))
    assert before.digest != after.digest
    assert before.digest == digest(msgspec.structs.replace(before, digest=""))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("products: [{id: p-1, name: Cup}]\n", "missing required field `category`"),
        ("prodcts: []\n", "unknown key `prodcts`"),
        (f"products: [{PRODUCT}, {PRODUCT}]\n", "`p-1` stands twice in products"),
        (
            "rooms: [{id: r, name: R, host: H, products: [p-9]}]\n",
            "room `r` names no product `p-9`",
        ),
        ("stock: [{product: p-9, units: 1}]\n", "stock names no product `p-9`"),
        (
            f"products: [{PRODUCT.replace('}', ', variants: [S]}')}]\n"
            "stock: [{product: p-1, variant: M, units: 1}]\n",
            "names no variant `M`",
        ),
        ("promotions: [{id: x, name: X, kind: coupon, room: r-9}]\n", "names no room `r-9`"),
        ("- 1\n", "a mapping is needed"),
    ],
)
def test_a_broken_catalogue_says_what_is_wrong(tmp_path, text, words):
    write(tmp_path, a='snapshot: "2026-01-01"\n', b=text)
    with pytest.raises(BadFile) as caught:
        read_catalogue(tmp_path)
    assert words in str(caught.value)


def test_a_folder_without_a_catalogue_is_an_error(tmp_path):
    with pytest.raises(BadFile, match="no catalogue in"):
        read_catalogue(tmp_path)


def test_an_unknown_schema_number_is_said(tmp_path):
    write(tmp_path, a='schema: 2\nsnapshot: "2026-01-01"\n')
    with pytest.raises(BadFile, match="schema 2 is not known"):
        read_catalogue(tmp_path)
