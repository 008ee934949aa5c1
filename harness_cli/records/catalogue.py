"""The catalogue replica on one snapshot day: rooms, products, FAQ, stock, orders, promotions."""

from typing import Any

import msgspec


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """One attribute with its English and Chinese wording."""

    name: str
    value: Any
    unit: str = ""
    zh_name: str = ""
    zh_value: str = ""


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """One product. Money is in yuan."""

    id: str
    name: str
    zh_name: str = ""
    category: str
    zh_category: str = ""
    price: float
    list_price: float
    attributes: tuple[Attribute, ...] = ()
    keywords: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    ship_within_hours: int = 48
    ship_from: str = ""
    zh_ship_from: str = ""
    return_days: int = 7
    warranty_months: int = 0
    variants: tuple[str, ...] = ()
    zh_variants: tuple[str, ...] = ()
    """The Chinese wording of `variants`, in the same order."""
    cautions: tuple[str, ...] = ()
    zh_cautions: tuple[str, ...] = ()


class StockLevel(msgspec.Struct, frozen=True, kw_only=True):
    """Units on hand of one product, by variant; an empty variant is the whole product."""

    product: str
    variant: str = ""
    units: int


class LiveRoom(msgspec.Struct, frozen=True, kw_only=True):
    """A live room: what it presents and how it speaks of itself."""

    id: str
    name: str
    host: str
    products: tuple[str, ...]
    status: str = "live"
    viewers: int = 0
    notice: str = ""


class Faq(msgspec.Struct, frozen=True, kw_only=True):
    """A configured FAQ entry; without a product it holds for the whole shop."""

    id: str
    question: str
    answer: str
    zh_question: str = ""
    zh_answer: str = ""
    product: str | None = None
    tags: tuple[str, ...] = ()


class OrderPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for an order topic: shipping, returns, exchange, invoice, payment, warranty."""

    topic: str
    text: str
    zh_text: str = ""
    days: int | None = None


class Promotion(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign, coupon or benefit, with the conditions under which it applies."""

    id: str
    name: str
    zh_name: str = ""
    kind: str
    """full_reduction | percent | coupon | gift | member | shipping."""
    threshold: float = 0.0
    amount: float = 0.0
    """Yuan off, or percent off for `percent`."""
    products: tuple[str, ...] = ()
    """Empty: the whole room."""
    room: str | None = None
    member_only: bool = False
    stackable: bool = False
    gift: str = ""
    starts: str = ""
    ends: str = ""
    conditions: str = ""
    zh_conditions: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A viewer's order: only what a host may know of it."""

    id: str
    viewer: str
    product: str
    status: str
    placed: str = ""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything facts come from. Its digest is bound by runs and manifests."""

    schema: int = 1
    snapshot: str
    """ISO date of the snapshot."""
    currency: str = "CNY"
    products: tuple[Product, ...] = ()
    stock: tuple[StockLevel, ...] = ()
    rooms: tuple[LiveRoom, ...] = ()
    faq: tuple[Faq, ...] = ()
    policies: tuple[OrderPolicy, ...] = ()
    promotions: tuple[Promotion, ...] = ()
    orders: tuple[Order, ...] = ()
    digest: str = ""

    def product(self, product_id: str) -> Product | None:
        """The product of that id."""
        return next((p for p in self.products if p.id == product_id), None)

    def room(self, room_id: str) -> LiveRoom | None:
        """The room of that id."""
        return next((r for r in self.rooms if r.id == room_id), None)
