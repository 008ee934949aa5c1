"""The evidence tools of a judge: catalogue, FAQ, policies, offers, sums, the host's own results.

They read the bound catalogue, not the tools that the host called: a tool that lied to the host does
not lie to the judge. Every row has a `ref`, by which a verdict cites it.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from harness_cli.errors import ToolError
from harness_cli.judges.panel.case import AnyCase
from harness_cli.judges.panel.catalogue_view import (
    faq_card,
    faq_words,
    nearest,
    offer_card,
    product_card,
    product_words,
    room_links,
)
from harness_cli.judges.panel.fence import compact_json
from harness_cli.judges.panel.pricing import payable, running_offers
from harness_cli.records.catalogue import Product
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult

RESULT_MOST = 20_000
"""Characters of one of the host's tool results that a judge is given at once."""
Arguments = dict[str, Any]


class EvidenceExecutor:
    """Runs the evidence tools for one case (executor `evidence`)."""

    def __init__(self, case: AnyCase) -> None:
        self._case = case
        self._world = case.world
        self._tools: dict[str, Callable[[Arguments], Any]] = {
            "look_up_product": self._product,
            "search_catalogue": self._search,
            "look_up_faq": self._faq,
            "look_up_policy": self._policy,
            "list_offers": self._offers,
            "calculate_price": self._price,
            "read_tool_result": self._result,
        }

    async def call(self, tool: Tool, arguments: Arguments, request: Request) -> ToolResult:  # noqa: ARG002  the case has its own
        """One look-up. Raises a typed `ToolError` for what the catalogue does not hold."""
        run = self._tools.get(tool.operation)
        if run is None:
            raise ToolError.of("unavailable", f"there is no evidence tool `{tool.operation}`")
        found = run(arguments)
        return ToolResult(ok=True, content=compact_json(found), structured=found)

    async def close(self) -> None:
        """Nothing was started."""

    @property
    def _room(self) -> str:
        return self._case.item.request.room.id

    @cached_property
    def _links(self) -> dict[str, int]:
        return room_links(self._world, self._room, self._case.item.request.room.products)

    def _found(self, arguments: Arguments) -> Product:
        """The product that `link` or `product_id` names."""
        link, product_id = arguments.get("link"), arguments.get("product_id")
        if link is not None:
            product_id = next((p for p, n in self._links.items() if n == link), None)
            if product_id is None:
                raise ToolError.of("not_found", f"the room has no link {link}: {self._range()}")
        product = self._world.product(str(product_id or ""))
        if product is None:
            raise ToolError.of("not_found", f"the catalogue has no product `{product_id}`")
        return product

    def _range(self) -> str:
        return f"its links are 1 to {len(self._links)}" if self._links else "it has no products"

    def _card(self, product: Product) -> Arguments:
        return product_card(self._world, product, self._links.get(product.id), self._room)

    def _product(self, arguments: Arguments) -> Any:
        return self._card(self._found(arguments))

    def _search(self, arguments: Arguments) -> Any:
        here = [p for p in self._world.products if p.id in self._links]
        found = nearest(
            str(arguments["query"]), [(product_words(p), p) for p in here or self._world.products]
        )
        if not found:
            raise ToolError.of("not_found", "no product of the room holds these words")
        return {"products": [self._card(p) for p in found]}

    def _faq(self, arguments: Arguments) -> Any:
        entries = [f for f in self._world.faq if not f.product or f.product in self._links]
        if arguments.get("link") is not None:
            product = self._found(arguments).id
            entries = [f for f in self._world.faq if not f.product or f.product == product]
        found = nearest(str(arguments["query"]), [(faq_words(f), f) for f in entries])
        if not found:
            raise ToolError.of("not_found", "no FAQ entry holds these words")
        return {"entries": [faq_card(f) for f in found]}

    def _policy(self, arguments: Arguments) -> Any:
        wanted = str(arguments.get("topic") or "")
        rows = [
            {
                "ref": f"policy:{p.topic}",
                "topic": p.topic,
                "text": p.text,
                "zh_text": p.zh_text,
                "days": p.days,
            }
            for p in self._world.policies
            if not wanted or p.topic == wanted
        ]
        if not rows:
            known = ", ".join(p.topic for p in self._world.policies)
            raise ToolError.of("not_found", f"no policy on `{wanted}`; topics: {known or 'none'}")
        return {"policies": rows}

    def _offers(self, arguments: Arguments) -> Any:
        named = any(arguments.get(key) is not None for key in ("link", "product_id"))
        product = self._found(arguments).id if named else None
        offers = running_offers(self._world, self._room, product)
        return {
            "ref": f"offers:{product or self._room or 'all'}",
            "day": self._world.snapshot,
            "offers": [offer_card(o) for o in offers],
        }

    def _price(self, arguments: Arguments) -> Any:
        product = self._found(arguments)
        quantity = int(arguments.get("quantity") or 1)
        offers = running_offers(self._world, self._room, product.id)
        return {
            "ref": f"price:{product.id}x{quantity}",
            "product_id": product.id,
            "quantity": quantity,
            "piece": product.price,
            "everybody": payable(product, quantity, offers, member=False),
            "members": payable(product, quantity, offers, member=True),
            "not_in_the_price": [offer_card(o) for o in offers if o.gift or o.kind == "shipping"],
        }

    def _result(self, arguments: Arguments) -> Any:
        ref, calls = str(arguments["ref"]), self._case.host_calls
        if ref not in calls:
            raise ToolError.of("not_found", f"no `{ref}`: the host made {len(calls)} calls")
        call, start = calls[ref], int(arguments.get("start") or 0)
        text = call.result.content[start : start + RESULT_MOST]
        return {
            "ref": ref,
            "tool": call.name,
            "ok": call.result.ok,
            "text": text,
            "characters_left": max(0, len(call.result.content) - start - len(text)),
        }
