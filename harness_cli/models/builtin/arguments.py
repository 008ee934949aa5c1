"""Arguments of a tool call, filled by the tool's own schema from the prompt and the comment."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness_cli.models.builtin.amounts import without_amounts
from harness_cli.models.builtin.keywords import keywords
from harness_cli.models.builtin.language import (
    THAT,
    THIS,
    cjk_runs,
    language_of,
    options,
)
from harness_cli.models.builtin.mentions import Mentions, context_numbers, mentions
from harness_cli.models.builtin.scene import Offer, Scene
from harness_cli.models.builtin.similarity import Candidate, Similarity

ENUM_FLOOR = 0.18
"""An optional enum is set only when a value is at least this near to the comment."""

_MONEY = re.compile(r"amount|price|budget|total|spend|yuan|money|金额|价格|预算", re.IGNORECASE)
_COUNT = re.compile(r"quantit|count|units|pieces|how many|number of|数量|件数", re.IGNORECASE)
_LIMIT = re.compile(r"\blimit\b|\btop\b|\bpage\b|offset", re.IGNORECASE)
_PLACE = re.compile(r"position|target|slot|place|order|位置|顺序", re.IGNORECASE)
_REFERENCE = re.compile(r"\bid\b|_id\b|link|number|product|item|链接|编号|商品", re.IGNORECASE)
_TERMS = re.compile(r"keyword|query|search|name|term|phrase|关键词|名称", re.IGNORECASE)
_WORDS = re.compile(
    r"question|comment|message|text|utterance|own words|asks about|问题|原话|评论", re.IGNORECASE
)
_OPTION = re.compile(r"colou?r|\bsize\b|variant|flavou?r|颜色|尺码|规格|口味", re.IGNORECASE)
_WHO = re.compile(r"^(?:viewer|buyer|user|customer|member)s?\b|观众|用户|买家", re.IGNORECASE)
_LANGUAGE = re.compile(r"\blang(?:uage)?\b|locale|语言", re.IGNORECASE)
_REASON = re.compile(r"reason|why|cause|原因|理由", re.IGNORECASE)
_VIEWER_ID = re.compile(
    r"\b(?:viewer|buyer|user|观众|用户)\W{0,3}(?:id\W{0,3})?([A-Za-z]*[-_]?\d[\w-]*)", re.IGNORECASE
)


@dataclass(frozen=True)
class Filled:
    """Arguments and whether everything the schema requires could be found."""

    arguments: dict[str, Any]
    missing: tuple[str, ...] = ()


@dataclass
class _Asked:
    """What one call is filled from. Product numbers are used up as properties take them."""

    comment: str
    scene: Scene
    similarity: Similarity
    meant: Mentions
    left: list[int]
    counts: list[int]
    money: list[float]

    def pointing(self) -> bool:
        """Whether the comment itself points at a product, so that an optional one is meant."""
        words = THIS.search(self.comment) or THAT.search(self.comment)
        return bool(self.meant.said) or bool(words)


def fill(
    offer: Offer,
    comment: str,
    scene: Scene,
    similarity: Similarity,
    *,
    meant: tuple[int, ...] | None = None,
) -> Filled:
    """Arguments for one call; `meant` are the products it is about, when the caller knows."""
    found = mentions(comment, scene)
    numbers = list(found.numbers if meant is None else meant)
    asked = _Asked(
        comment, scene, similarity, found, numbers, list(found.counts), list(found.money)
    )
    return _object(offer.properties, offer.required, asked)


def takes_one_product(offer: Offer) -> bool:
    """Whether a call is about one product: one required reference and no list of them."""
    kinds = [_kind(n, s) for n, s in offer.properties.items() if _type(s) in _SCALAR]
    lists = any(_type(s) == "array" for s in offer.properties.values())
    return "reference" in kinds and not lists


def takes(offer: Offer, products: int) -> bool:
    """Whether a call asks for that many products: one, or a list of several."""
    if products == 0:
        return False
    lists = any(
        _type(offer.properties[n]) == "array" for n in offer.required if n in offer.properties
    )
    return lists if products > 1 else needs_product(offer) and not lists


def needs_product(offer: Offer) -> bool:
    """Whether a call cannot be made without knowing the product."""
    return any(
        _kind(n, offer.properties[n]) == "reference" or _type(offer.properties[n]) == "array"
        for n in offer.required
        if n in offer.properties
    )


_SCALAR = ("integer", "number", "string")


def _object(
    properties: dict[str, dict[str, Any]], required: tuple[str, ...], asked: _Asked
) -> Filled:
    arguments: dict[str, Any] = {}
    for name in sorted(properties, key=lambda n: (n not in required, list(properties).index(n))):
        value = _value(name, properties[name], name in required, asked)
        if value is not None:
            arguments[name] = value
    missing = tuple(n for n in required if n not in arguments)
    return Filled({n: arguments[n] for n in properties if n in arguments}, missing)


def _type(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), "string")
    if kind is None:
        options = schema.get("anyOf") or schema.get("oneOf") or []
        kinds = [o.get("type") for o in options if isinstance(o, dict) and o.get("type") != "null"]
        kind = kinds[0] if kinds else "string"
    return str(kind)


def _value(name: str, schema: dict[str, Any], required: bool, asked: _Asked) -> Any:
    if "const" in schema:
        return schema["const"]
    kind = _type(schema)
    if schema.get("enum"):
        return _choice(schema, required, asked)
    if kind in ("integer", "number"):
        return _amount(name, schema, required, asked)
    if kind == "array":
        return _array(name, schema, required, asked)
    if kind == "object":
        nested = schema.get("properties") or {}
        filled = _object(nested, tuple(schema.get("required") or ()), asked)
        return filled.arguments if filled.arguments and not filled.missing else None
    if kind == "boolean":
        return schema.get("default", False) if required else None
    return _string(name, schema, required, asked)


def _choice(schema: dict[str, Any], required: bool, asked: _Asked) -> Any:
    values = list(schema["enum"])
    told = str(schema.get("description") or "")
    candidates = [
        Candidate(str(v), (str(v).replace("_", " ").replace("-", " "), *_said_of(told, str(v))))
        for v in values
    ]
    ranking = asked.similarity.rank(asked.comment, candidates)
    if required and (ranking.top < ENUM_FLOOR and "default" in schema):
        return schema["default"]
    if not required and ranking.top < ENUM_FLOOR:
        return None
    return next((v for v in values if str(v) == ranking.best), values[0] if required else None)


def _said_of(description: str, value: str) -> tuple[str, ...]:
    """The part of a property's description that explains one of its values."""
    found = re.search(
        rf"(?<![\w-])[`'\"]?{re.escape(value)}[`'\"]?\s*(?:=|:|：|—|\(|\s-\s)\s*([^;；.。\n)]+)",
        description,
    )
    return (found[1],) if found else ()


def _kind(name: str, schema: dict[str, Any]) -> str:
    """What a property stands for, by its name first and its description second."""
    return _stands_for(name, str(schema.get("description") or ""))


@lru_cache(maxsize=2048)
def _stands_for(name: str, description: str) -> str:
    kinds = (
        (_LIMIT, "limit"),
        (_COUNT, "count"),
        (_MONEY, "money"),
        (_PLACE, "place"),
        (_REFERENCE, "reference"),
    )
    for text in (name.replace("_", " ") + " " + name, description):
        found = [kind for pattern, kind in kinds if pattern.search(text)]
        if found:  # a limit of the budget is money; the position of an item says which item
            second = found[:2] in (["limit", "money"], ["place", "reference"])
            return found[1] if second else found[0]
    return "other"


def _amount(name: str, schema: dict[str, Any], required: bool, asked: _Asked) -> Any:
    kind = _kind(name, schema)
    value: float | None = None
    if kind == "reference":
        value = asked.left.pop(0) if asked.left and (required or asked.pointing()) else None
    elif kind == "count":
        value = asked.counts.pop(0) if asked.counts else (1 if required else None)
    elif kind == "money":
        value = asked.money.pop(0) if asked.money else None
    elif kind == "place":
        value = asked.left.pop(0) if len(asked.left) > 0 and required else None
    if value is None:
        return schema.get("default") if required else None
    return _within(value, schema)


def _within(value: float, schema: dict[str, Any]) -> Any:
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        return None
    return int(value) if _type(schema) == "integer" or value == int(value) else value


def _array(name: str, schema: dict[str, Any], required: bool, asked: _Asked) -> Any:
    items = schema.get("items") if isinstance(schema.get("items"), dict) else {}
    assert isinstance(items, dict)
    if items.get("enum"):
        chosen = _choice({**items, "description": schema.get("description")}, required, asked)
        return None if chosen is None else [chosen]
    if _type(items) == "string" and _kind(name, schema) != "reference":
        return [asked.comment] if required else None
    numbers = list(asked.left)
    least = int(schema.get("minItems") or 1)
    if len(numbers) < least and THIS.search(asked.comment):
        around = [n for n in context_numbers(asked.scene) if n not in numbers]
        numbers += around[: least - len(numbers)]
    made = [v for n in numbers if (v := _element(items, n, asked)) is not None]
    if len(made) < least:
        return None
    asked.left.clear()
    return made[: int(schema.get("maxItems") or len(made))]


def _element(items: dict[str, Any], number: int, asked: _Asked) -> Any:
    one = _Asked(
        asked.comment, asked.scene, asked.similarity, asked.meant, [number], asked.counts, []
    )
    if _type(items) == "object":
        nested = items.get("properties") or {}
        filled = _object(nested, tuple(items.get("required") or ()), one)
        return None if filled.missing else filled.arguments
    if _type(items) in ("integer", "number"):
        return number
    product = asked.scene.goods.numbered(number)
    return product.names[0] if product and product.names else str(number)


def _string(name: str, schema: dict[str, Any], required: bool, asked: _Asked) -> str | None:
    told = f"{name.replace('_', ' ')} {name} {schema.get('description') or ''}"
    first = name.replace("_", " ") + " " + name
    if _WORDS.search(told) and not _OPTION.search(told):
        return asked.comment
    for text in (first, told):
        for pattern, make in _STRINGS:
            if pattern.search(text):
                return make(asked, required)
    if "default" in schema:
        return str(schema["default"]) if required else None
    return asked.comment if required else None


def _who(asked: _Asked, required: bool) -> str | None:
    found = _VIEWER_ID.search(asked.scene.opening)
    if found:
        return found[1]
    return "viewer" if required else None


def _terms(asked: _Asked, required: bool) -> str | None:
    """The name of the product that is meant, else the comment without its asking words."""
    language = language_of(asked.comment)
    if asked.meant.said:
        product = asked.scene.goods.numbered(asked.left[0] if asked.left else asked.meant.said[0])
        if product and product.names:
            chinese = [n for n in product.names if cjk_runs(n)]
            return chinese[0] if language == "zh" and chinese else product.names[0]
    return keywords(without_amounts(asked.comment)) or (asked.comment if required else None)


_STRINGS = (
    (_OPTION, lambda asked, _: options(asked.comment) or None),
    (_LANGUAGE, lambda asked, _: language_of(asked.comment)),
    (_WHO, _who),
    (_REASON, lambda asked, _: f"The comment asks: {asked.comment[:200]}"),
    (_TERMS, _terms),
    (_WORDS, lambda asked, _: asked.comment),
)
