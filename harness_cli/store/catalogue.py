"""The catalogue replica read from its folder, checked, and named by its content."""

from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.canonical import digest
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.reader import decode, load_yaml, read_text

_LISTS = ("products", "stock", "rooms", "faq", "policies", "promotions", "orders")
_FIELDS = {field.name for field in msgspec.structs.fields(Catalogue)} - {"digest"}


def read_catalogue(folder: Path) -> Catalogue:
    """Every `*.yaml` and `*.json` of `folder` as one catalogue; lists of several files join.

    `digest` is the SHA-256 of the canonical JSON of the content, so that neither the split into
    files nor their layout matters. Raises `BadFile` with the file and what is wrong in it.
    """
    files = sorted(p for p in folder.glob("*") if p.suffix in (".yaml", ".yml", ".json"))
    if not files:
        raise BadFile(
            f"no catalogue in `{folder}`", hint="it holds catalogue.yaml and lists of products"
        )
    merged: dict[str, Any] = {}
    for path in files:
        _merge(merged, path)
    catalogue = decode(Catalogue, merged, where=str(folder))
    if catalogue.schema != 1:
        raise BadFile(f"{folder}: schema {catalogue.schema} is not known", hint="this is 1")
    _check(catalogue, folder)
    return msgspec.structs.replace(catalogue, digest=digest(catalogue))


def _merge(merged: dict[str, Any], path: Path) -> None:
    part = load_yaml(read_text(path), name=str(path))
    if not isinstance(part, dict):
        raise BadFile(f"{path}: a mapping is needed, such as `products:` and a list")
    for key, value in part.items():
        if key not in _FIELDS:
            raise BadFile(f"{path}: unknown key `{key}`", hint=f"known: {', '.join(_LISTS)}")
        if key in _LISTS and isinstance(value, list):
            merged.setdefault(key, []).extend(value)
        elif key in merged:
            raise BadFile(f"{path}: the key `{key}` stands in two files")
        else:
            merged[key] = value


def _check(catalogue: Catalogue, folder: Path) -> None:
    """Identifiers that stand twice and references that lead nowhere, all in one error."""
    faults = [*_repeated(catalogue), *_dangling(catalogue), *_stock_faults(catalogue)]
    if faults:
        raise BadFile(f"{folder}: " + "; ".join(faults))


def _repeated(catalogue: Catalogue) -> list[str]:
    faults = []
    for name in ("products", "rooms", "faq", "promotions", "orders"):
        seen: set[str] = set()
        for entry in getattr(catalogue, name):
            if entry.id in seen:
                faults.append(f"`{entry.id}` stands twice in {name}")
            seen.add(entry.id)
    return faults


def _dangling(catalogue: Catalogue) -> list[str]:
    products = {p.id for p in catalogue.products}
    rooms = {r.id for r in catalogue.rooms}
    used = [(f"room `{r.id}`", p) for r in catalogue.rooms for p in r.products]
    used += [(f"faq `{f.id}`", f.product) for f in catalogue.faq if f.product]
    used += [(f"promotion `{m.id}`", p) for m in catalogue.promotions for p in m.products]
    used += [(f"order `{o.id}`", o.product) for o in catalogue.orders]
    used += [("stock", level.product) for level in catalogue.stock]
    faults = [f"{who} names no product `{what}`" for who, what in used if what not in products]
    return faults + [
        f"promotion `{m.id}` names no room `{m.room}`"
        for m in catalogue.promotions
        if m.room and m.room not in rooms
    ]


def _stock_faults(catalogue: Catalogue) -> list[str]:
    variants = {p.id: p.variants for p in catalogue.products}
    return [
        f"stock of `{level.product}` names no variant `{level.variant}`"
        for level in catalogue.stock
        if level.variant and level.variant not in variants.get(level.product, (level.variant,))
    ]
