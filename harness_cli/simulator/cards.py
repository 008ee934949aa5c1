"""Product cards: what the tools say of one product, as flat fields in English and Chinese."""

import re
from collections.abc import Mapping
from typing import Any

from harness_cli.records.canonical import whole_numbers
from harness_cli.records.catalogue import Attribute, Catalogue, Product, StockLevel

ALIASES: Mapping[str, tuple[str, ...]] = {
    "battery_life": ("battery", "last on a charge", "per charge", "续航", "电池", "用多久", "几天"),
    "keeps_hot": ("hot", "warm", "保温", "多久凉"),
    "keeps_cold": ("cold", "ice", "保冷", "冰"),
    "waterproof": ("water", "rain", "swim", "splash", "防水", "游泳", "淋雨"),
    "water_resistance": ("waterproof", "water", "swim", "sweat", "防水", "防汗", "游泳"),
    "material": (
        "made of",
        "fabric",
        "cloth",
        "material",
        "材质",
        "材料",
        "料子",
        "面料",
        "什么做的",
    ),
    "size_range": ("sizes", "size", "尺码", "码数", "几码"),
    "size": ("how big", "dimensions", "measure", "尺寸", "多大"),
    "capacity": ("capacity", "hold", "volume", "容量", "装多少", "多少毫升"),
    "volume": ("how many ml", "how much is in", "volume", "容量", "多少毫升", "多少克"),
    "weight": ("heavy", "weigh", "light", "多重", "重不重", "重量"),
    "net_weight": ("how many grams", "weigh", "net weight", "多少克", "净含量", "几克"),
    "shelf_life": ("expire", "expiry", "keep for", "保质期", "放多久", "过期"),
    "skin_type": ("my skin", "oily", "dry skin", "sensitive", "肤质", "敏感肌", "油皮", "干皮"),
    "key_ingredient": ("ingredient", "what is in it", "成分"),
    "care": ("wash", "machine", "clean", "洗涤", "机洗", "怎么洗", "清洗"),
    "sugar": ("sugar", "sweet", "糖", "甜"),
    "flavour": ("taste", "flavor", "flavour", "口味", "味道"),
    "fragrance": ("scent", "smell", "perfume", "香味", "香精"),
    "scent": ("scent", "smell", "fragrance", "香味", "什么味"),
    "age": ("how old", "months old", "age", "月龄", "多大宝宝", "几个月"),
    "noise": ("loud", "noisy", "quiet", "噪音", "吵"),
    "charging": ("charge", "charger", "usb", "充电"),
    "charge_time": ("charge", "charging time", "充电时间", "充满"),
    "wear_time": ("last all day", "stay on", "持妆", "脱妆"),
    "thickness": ("thick", "厚度", "多厚"),
    "power": ("wattage", "watt", "watts", "功率", "多少瓦"),
    "fit": ("fit", "cut", "版型", "宽松", "修身"),
    "origin": ("produced", "grown", "where is it from", "origin", "产地", "哪里产"),
    "flight": ("plane", "airport", "flight", "飞机", "登机"),
    "cabin": ("plane", "cabin", "登机", "飞机"),
    "ports": ("port", "ports", "接口"),
    "compatibility": ("iphone", "android", "ios", "兼容", "苹果", "安卓"),
    "pieces": (
        "how many pieces",
        "how many",
        "in one pack",
        "几片",
        "几件",
        "多少片",
        "几包",
        "多少颗",
    ),
}
"""Words viewers use for an attribute beside its own name, as a product service keeps them."""


class Shelf:
    """The catalogue indexed for the tools; never changes after it is made."""

    def __init__(self, world: Catalogue) -> None:
        self.world = world
        self.products = {p.id: p for p in world.products}
        self._stock: dict[str, list[StockLevel]] = {}
        for level in world.stock:
            self._stock.setdefault(level.product, []).append(level)

    def levels(self, product: Product) -> list[StockLevel]:
        """Units on hand by variant."""
        return self._stock.get(product.id, [])

    def units(self, product: Product) -> int:
        """Units on hand over all variants."""
        return sum(level.units for level in self.levels(product))

    def card(self, product: Product, link_id: int) -> dict[str, Any]:
        """Everything known of one product. Money in yuan; `units` of stock are pieces."""
        units = self.units(product)
        listed = {a.name: shown(a) for a in product.attributes}
        zh_listed = {a.zh_name: a.zh_value for a in product.attributes if a.zh_name}
        card = {
            **listed,
            **self.brief(product, link_id),
            "discount": product.list_price - product.price,
            "sold_out": units == 0,
            "availability": "sold out" if units == 0 else f"{units} in stock",
            "zh_availability": "已售罄" if units == 0 else f"还有{units}件",
            "variants": self.variants(product),
            "attributes": listed,
            "zh_attributes": zh_listed,
            "highlights": ", ".join(f"{label(n)} {v}" for n, v in list(listed.items())[:4]),
            "zh_highlights": "，".join(f"{n}{v}" for n, v in list(zh_listed.items())[:4]),
            "cautions": "; ".join(product.cautions),
            "zh_cautions": "；".join(product.zh_cautions),
            **service(product),
        }
        plain: dict[str, Any] = whole_numbers(card)
        return plain

    def short_card(self, product: Product, link_id: int) -> dict[str, Any]:
        """The card without its lists, for answers that hold several products."""
        lists = ("variants", "attributes", "zh_attributes")
        return {k: v for k, v in self.card(product, link_id).items() if k not in lists}

    def brief(self, product: Product, link_id: int) -> dict[str, Any]:
        """What a list shows of one product."""
        plain: dict[str, Any] = whole_numbers(
            {
                "link_id": link_id,
                "product_id": product.id,
                "name": product.name,
                "zh_name": product.zh_name,
                "category": product.category,
                "zh_category": product.zh_category,
                "price": product.price,
                "list_price": product.list_price,
                "stock": self.units(product),
            }
        )
        return plain

    def variants(self, product: Product) -> list[dict[str, Any]]:
        """Colours, sizes or flavours, each with its units on hand."""
        chinese = dict(zip(product.variants, product.zh_variants, strict=False))
        units = {level.variant: level.units for level in self.levels(product)}
        return [
            {"variant": v, "zh_variant": chinese.get(v, v), "stock": units.get(v, 0)}
            for v in product.variants
        ]


def service(product: Product) -> dict[str, Any]:
    """Shipping, returns and warranty of one product, as numbers and as a host says them."""
    days, months = product.return_days, product.warranty_months
    return {
        "ship_within_hours": product.ship_within_hours,
        "ship_from": product.ship_from,
        "zh_ship_from": product.zh_ship_from,
        "delivery": f"ships within {product.ship_within_hours} hours from {product.ship_from}",
        "zh_delivery": f"{product.ship_within_hours}小时内从{product.zh_ship_from}发货",
        "return_days": days,
        "returns": f"can be returned within {days} days" if days else "cannot be returned",
        "zh_returns": f"支持{days}天无理由退货" if days else "不支持无理由退货",
        "warranty_months": months,
        "warranty": f"comes with a {months} month warranty" if months else "has no extra warranty",
        "zh_warranty": f"保修{months}个月" if months else "没有额外保修",
    }


def shown(attribute: Attribute) -> str:
    """An attribute's value with its unit, as it is said: `50 ml`."""
    value = whole_numbers(attribute.value)
    return f"{value} {attribute.unit}".strip()


def label(name: str) -> str:
    """An attribute's name as a viewer reads it: `skin type`."""
    return name.replace("_", " ")


def asked_attribute(product: Product, wording: str) -> Attribute | None:
    """The attribute that `wording` (English or Chinese, a name or a question) is about.

    The longest name or alias that occurs in the wording decides; ties go to the card's order.
    """
    text = wording.casefold().replace("_", " ")
    best: tuple[int, Attribute] | None = None
    for attribute in product.attributes:
        strength = max((_strength(text, word) for word in _words(attribute)), default=0)
        if strength and (best is None or strength > best[0]):
            best = (strength, attribute)
    return best[1] if best else None


def _words(attribute: Attribute) -> tuple[str, ...]:
    names = (label(attribute.name), attribute.zh_name)
    return tuple(w for w in (*names, *ALIASES.get(attribute.name, ())) if w)


def _strength(text: str, word: str) -> int:
    """0, or how specific the match is; a Chinese character weighs as three Latin letters."""
    word = word.casefold()
    if word.isascii():
        hit = re.search(rf"\b{re.escape(word)}s?\b", text) is not None
        return len(word) if hit else 0
    return 3 * len(word) if word in text else 0
