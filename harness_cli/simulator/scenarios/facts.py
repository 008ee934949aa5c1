"""What a good reply must carry: facts of the catalogue with the wordings that count as them."""

from collections.abc import Iterable
from typing import Any

from harness_cli.records.canonical import whole_numbers
from harness_cli.records.catalogue import Attribute, Product, Promotion
from harness_cli.records.item import Fact
from harness_cli.simulator.cards import Shelf, shown

SOLD_OUT = (
    "sold out", "out of stock", "no stock", "none left", "not available", "all gone",
    "售罄", "卖完", "没货", "没有货", "抢光", "断货", "拍完",
)  # fmt: skip
AVAILABLE = (
    "in stock", "available", "still have", "left", "we have", "you can get",
    "有货", "还有", "现货", "可以拍", "能拍",
)  # fmt: skip
NO_RETURN = (
    "cannot be returned", "can't be returned", "no return", "not returnable", "can't return",
    "不支持", "不能退", "不退", "不可以退",
)  # fmt: skip
_WORDS = {2: "two", 3: "three", 6: "six", 7: "seven", 12: "twelve", 15: "fifteen"}


def product_fact(name: str, product: Product, shelf: Shelf, answer: str) -> Fact:
    """The fact `name` of a product: a price, a stock level, a service, `attribute:<name>`."""
    if name.startswith("attribute:"):
        return _attribute(product, name.partition(":")[2], answer)
    units = shelf.units(product)
    price = _number(product.price)
    if name == "price":
        return _fact(product, "price", price, answer)
    if name == "list_price":
        return _fact(product, "list_price", _number(product.list_price), answer)
    if name == "discount":
        return _fact(product, "discount", _number(product.list_price - product.price), answer)
    if name == "stock":
        return _fact(product, "stock", units, answer)
    if name == "availability":
        return _fact(product, "stock", units, answer, AVAILABLE if units else SOLD_OUT)
    return _service(name, product, answer)


def variant_fact(product: Product, units: int, answer: str) -> Fact:
    """Whether one size, colour or flavour is to be had."""
    return _fact(product, "stock", units, answer, AVAILABLE if units else SOLD_OUT)


def named(product: Product, answer: str, others: Iterable[Product] = ()) -> Fact:
    """The product's name in either language; the names of `others` do as well."""
    forms = [product.zh_name]
    for other in others:
        forms += [other.name, other.zh_name]
    return _fact(product, "name", product.name, answer, tuple(forms))


def keyed(field: str, english: tuple[str, ...], chinese: tuple[str, ...], answer: str) -> Fact:
    """A configured answer, by the words without which it is not given."""
    return Fact(field=field, value=english[0], answer=answer, forms=(*english[1:], *chinese))


def offer_facts(promotion: Promotion, answer: str) -> tuple[Fact, ...]:
    """What must be said of a campaign: its saving and its threshold, or its gift."""
    field = f"promotion.{promotion.id}"
    facts = []
    if promotion.gift:
        gift = promotion.gift.removeprefix("one ")
        chinese = {"storage tin": "收纳罐"}.get(gift)
        forms = (gift, chinese) if chinese else (gift,)
        facts.append(Fact(field=field, value=promotion.gift, answer=answer, forms=forms))
    elif promotion.amount:
        facts.append(_saving(promotion, field, answer))
    if promotion.threshold:
        value = _number(promotion.threshold)
        facts.append(Fact(field=field, value=value, answer=answer))
    return tuple(facts)


def _saving(promotion: Promotion, field: str, answer: str) -> Fact:
    value = _number(promotion.amount)
    if promotion.kind == "percent" or (promotion.kind == "member" and not promotion.threshold):
        fold = _number(100 - promotion.amount)
        short = f"{fold // 10}折" if isinstance(fold, int) and fold % 10 == 0 else f"{fold}折"
        forms = (f"{value} percent", f"{value}%", short)
        return Fact(field=field, value=f"{value} percent", answer=answer, forms=forms)
    return Fact(field=field, value=value, answer=answer)


def _service(name: str, product: Product, answer: str) -> Fact:
    if name == "delivery":
        hours = product.ship_within_hours
        days = hours // 24
        forms = [f"{hours} hours", f"{hours}小时", f"{hours} h"]
        if days > 1:
            forms += [f"{days} days", f"{_WORDS.get(days, days)} days", f"{days}天"]
            forms += ["两天"] if days == 2 else ["三天"]
        else:
            forms += ["1 day", "one day", "一天", "a day"]
        return _fact(product, "ship_within_hours", hours, answer, tuple(forms))
    if name == "returns":
        days = product.return_days
        if not days:
            return _fact(product, "return_days", NO_RETURN[0], answer, NO_RETURN[1:])
        forms = [f"{days} days", f"{days}-day", f"{_WORDS.get(days, days)} days", f"{days}天"]
        return _fact(product, "return_days", days, answer, tuple(forms))
    months = product.warranty_months
    forms = [f"{months} month", f"{months}个月"]
    if months % 12 == 0:
        years = months // 12
        forms += [["1 year", "one year", "一年"], ["2 years", "two years", "两年"]][years - 1]
    return _fact(product, "warranty_months", months, answer, tuple(forms))


def _attribute(product: Product, name: str, answer: str) -> Fact:
    attribute = next(a for a in product.attributes if a.name == name)
    value = shown(attribute)
    return _fact(product, name, value, answer, attribute_forms(attribute))


def attribute_forms(attribute: Attribute) -> tuple[str, ...]:
    """Wordings of an attribute's value: Chinese, without blanks, its first part alone."""
    value = shown(attribute)
    forms = [attribute.zh_value, value.partition(",")[0], attribute.zh_value.partition("，")[0]]
    if attribute.unit:
        number = whole_numbers(attribute.value)
        forms += [f"{number}{attribute.unit}", f"{number}-{attribute.unit.rstrip('s')}"]
    return tuple(dict.fromkeys(f for f in forms if f and f != value))


def _fact(
    product: Product, field: str, value: Any, answer: str, forms: tuple[str, ...] = ()
) -> Fact:
    return Fact(product=product.id, field=field, value=value, answer=answer, forms=forms)


def _number(value: float) -> Any:
    return whole_numbers(round(value, 2))
