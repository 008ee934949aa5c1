"""Which colour, size or flavour a viewer means."""

from typing import Any

from harness_cli.errors import ToolError
from harness_cli.simulator.matching import terms


def asked_variant(variants: list[dict[str, Any]], wording: str, product: str) -> dict[str, Any]:
    """The variants that a wording names; typed not found when there is none.

    The longest name that stands in the wording wins (`XL` is no `L`); a wording that is only part
    of names, such as a colour, means all of them.
    """
    whole = [(n, v) for v in variants if (n := _named_in(v, wording))]
    if whole:
        longest = max(n for n, _ in whole)
        found = [v for n, v in whole if n == longest]
    else:
        wanted = terms(wording)
        found = [v for v in variants if wanted & terms(f"{v['variant']} {v['zh_variant']}")]
    if not found:
        raise ToolError.of("not_found", f"{product} has no variant `{wording}`")
    units = sum(v["stock"] for v in found)
    return {
        "variant": ", ".join(v["variant"] for v in found),
        "zh_variant": "、".join(v["zh_variant"] for v in found),
        "variant_stock": units,
        "variant_availability": f"{units} left" if units else "sold out",
        "zh_variant_availability": f"还有{units}件" if units else "已售罄",
    }


def _named_in(variant: dict[str, Any], wording: str) -> int:
    """The length of the variant's name that stands whole in the wording, 0 when none does."""
    names = (variant["variant"].casefold(), variant["zh_variant"].casefold())
    return max((len(name) for name in names if name in wording), default=0)
