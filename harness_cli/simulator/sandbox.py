"""The tools of a live room on the catalogue replica: same arguments, same answer, no shared state.

A link n is the n-th product of the request's room. What changes the room (a product moved, an
image shown) is answered from the request alone and remembered nowhere, so that rollouts can run
side by side and be repeated.
"""

import json
from collections.abc import Callable
from typing import Any

from harness_cli.errors import ToolError
from harness_cli.records.catalogue import Catalogue, LiveRoom, OrderPolicy, Product
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult
from harness_cli.simulator.cards import Shelf, asked_attribute, label, service, shown
from harness_cli.simulator.matching import faq_score, product_score, ranked
from harness_cli.simulator.variants import asked_variant

FAQ_THRESHOLD = 0.3
"""Below this overlap a question counts as not configured (choice: an entry asked in its own words
scores 1, most small talk scores 0)."""
SEARCH_THRESHOLD = 0.3
VIEWS = ("front", "detail", "in-use")

Arguments = dict[str, Any]


class SandboxExecutor:
    """Runs the sandbox tools of FORMATS against a catalogue."""

    def __init__(self, world: Catalogue) -> None:
        self._shelf = Shelf(world)
        self._tools: dict[str, Callable[[Request, Arguments], dict[str, Any]]] = {
            "get_product_info_by_link_id": self._product_info,
            "search_product_by_keyword": self._search,
            "compare_products": self._compare,
            "get_faq": self._faq,
            "get_room_status": self._room_status,
            "get_inventory": self._inventory,
            "get_order_policy": self._order_policy,
            "change_presentation_order": self._change_order,
            "select_product_image": self._image,
        }

    @property
    def operations(self) -> tuple[str, ...]:
        """The names it answers to."""
        return tuple(self._tools)

    async def call(self, tool: Tool, arguments: Arguments, request: Request) -> ToolResult:
        """One call on the request's room; raises a typed `ToolError` for what it cannot answer."""
        run = self._tools.get(tool.operation)
        if run is None:
            raise ToolError.of("unavailable", f"the sandbox has no tool `{tool.operation}`")
        found = chosen(tool, run(request, arguments))
        return ToolResult(ok=True, content=json.dumps(found, ensure_ascii=False), structured=found)

    async def close(self) -> None:
        """Nothing was started."""

    # What a request's room is

    def _room(self, request: Request) -> LiveRoom:
        known = self._shelf.world.room(request.room.id)
        products = request.room.products or (known.products if known else ())
        return LiveRoom(
            id=request.room.id or (known.id if known else ""),
            name=known.name if known else "",
            host=known.host if known else "",
            products=products,
            status=request.room.status,
            viewers=known.viewers if known else 0,
            notice=known.notice if known else "",
        )

    def _product(self, request: Request, link_id: int) -> Product:
        links = self._room(request).products
        if not links:
            raise ToolError.of("not_found", "this room has no products")
        if not 1 <= link_id <= len(links):
            raise ToolError.of(
                "not_found", f"link {link_id} does not exist, this room has links 1 to {len(links)}"
            )
        product = self._shelf.products.get(links[link_id - 1])
        if product is None:
            raise ToolError.of("not_found", f"link {link_id} has no product in the catalogue")
        return product

    def _links(self, request: Request) -> list[tuple[int, Product]]:
        named = enumerate(self._room(request).products, 1)
        return [(n, self._shelf.products[p]) for n, p in named if p in self._shelf.products]

    # The tools

    def _product_info(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        link_id = int(arguments["link_id"])
        product = self._product(request, link_id)
        card = self._shelf.card(product, link_id)
        if not arguments.get("attribute"):
            return card
        asked = asked_attribute(product, str(arguments["attribute"]))
        if asked is None:
            return {**card, "asked_found": False}
        return {
            **card,
            "asked_found": True,
            "asked_name": label(asked.name),
            "asked_value": shown(asked),
            "asked_zh_name": asked.zh_name or label(asked.name),
            "asked_zh_value": asked.zh_value or shown(asked),
        }

    def _search(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        keyword = str(arguments["keyword"])
        limit = int(arguments.get("limit", 3))
        top_price = arguments.get("max_price")
        links = self._links(request)
        order = ranked(
            (score, place)
            for place, (_, product) in enumerate(links)
            if (top_price is None or product.price <= float(top_price))
            and (score := product_score(keyword, product)) >= SEARCH_THRESHOLD
        )
        chosen = [links[place] for _, place in order[:limit]]
        hits = [self._shelf.short_card(product, n) for n, product in chosen]
        if not hits:
            raise ToolError.of("not_found", f"no product in this room matches `{keyword}`")
        return {
            "keyword": keyword,
            "count": len(hits),
            "names": ", ".join(f"{h['name']} (link {h['link_id']})" for h in hits),
            "zh_names": "、".join(f"{h['link_id']}号链接{h['zh_name']}" for h in hits),
            "best": next((h for h in hits if not h["sold_out"]), hits[0]),
            "products": [_brief(h) for h in hits],
        }

    def _compare(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        wanted = list(dict.fromkeys(int(n) for n in arguments["link_ids"]))
        if len(wanted) < 2:
            raise ToolError.of("invalid_arguments", "compare needs two different links")
        named = [(n, self._product(request, n)) for n in wanted]
        cards = [self._shelf.short_card(product, n) for n, product in named]
        by_price = sorted(cards, key=lambda card: (card["price"], card["link_id"]))
        attributes = [a.name for a in named[0][1].attributes]
        shared = [k for k in attributes if all(k in c for c in cards[1:])]
        return {
            "products": [_brief(card) for card in cards],
            "first": cards[0],
            "second": cards[1],
            "cheapest": _brief(by_price[0]),
            "price_gap": by_price[-1]["price"] - by_price[0]["price"],
            "differences": {
                label(k): {c["name"]: c[k] for c in cards}
                for k in shared
                if len({c[k] for c in cards}) > 1
            },
        }

    def _faq(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        query = str(arguments["query"])
        link_id = arguments.get("link_id")
        links = self._links(request)
        here = {product.id: n for n, product in links}
        if link_id is not None:
            here = {self._product(request, int(link_id)).id: int(link_id)}
        entries = [f for f in self._shelf.world.faq if f.product is None or f.product in here]
        order = ranked((faq_score(query, entry), place) for place, entry in enumerate(entries))
        best = [entries[place] for score, place in order[:3] if score >= FAQ_THRESHOLD]
        if not best:
            raise ToolError.of("not_found", f"no FAQ entry answers `{query}`")
        listed = [
            {
                "id": f.id,
                "question": f.question,
                "answer": f.answer,
                "zh_question": f.zh_question,
                "zh_answer": f.zh_answer,
                "link_id": here.get(f.product or ""),
            }
            for f in best
        ]
        return {**listed[0], "count": len(listed), "others": listed[1:]}

    def _room_status(self, request: Request, arguments: Arguments) -> dict[str, Any]:  # noqa: ARG002
        room = self._room(request)
        links = self._links(request)
        current = next((p for n, p in links if n == request.room.current_link), None)
        return {
            "room_id": room.id,
            "name": room.name,
            "host": room.host,
            "status": room.status,
            "viewers": room.viewers,
            "notice": room.notice,
            "product_count": len(links),
            "current_link": request.room.current_link,
            "current_name": current.name if current else "",
            "current_zh_name": current.zh_name if current else "",
            "products": [
                {"link_id": n, "name": p.name, "zh_name": p.zh_name, "category": p.category}
                for n, p in links
            ],
        }

    def _inventory(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        link_id = int(arguments["link_id"])
        product = self._product(request, link_id)
        card = self._shelf.card(product, link_id)
        found = {**_brief(card), "sold_out": card["sold_out"], "variants": card["variants"]}
        found["availability"], found["zh_availability"] = (
            card["availability"],
            card["zh_availability"],
        )
        left = [v for v in card["variants"] if v["stock"]]
        found["in_stock"] = ", ".join(v["variant"] for v in left)
        found["zh_in_stock"] = "、".join(v["zh_variant"] for v in left)
        wording = str(arguments.get("variant") or "").casefold()
        if wording:
            found.update(asked_variant(card["variants"], wording, product.name))
        return found

    def _order_policy(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        topic = str(arguments["topic"])
        policy = next((p for p in self._shelf.world.policies if p.topic == topic), None)
        if policy is None:
            known = ", ".join(p.topic for p in self._shelf.world.policies)
            raise ToolError.of("not_found", f"no policy on `{topic}`; topics: {known}")
        found = _policy(policy)
        if arguments.get("link_id") is not None:
            link_id = int(arguments["link_id"])
            product = self._product(request, link_id)
            found.update(self._shelf.brief(product, link_id), **service(product))
        return found

    def _change_order(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        link_id = int(arguments["link_id"])
        product = self._product(request, link_id)
        if request.room.status == "ended":
            raise ToolError.of("denied", "the live has ended, nothing can be moved")
        position = str(arguments.get("position", "now"))
        return {
            "moved": True,
            "already_current": request.room.current_link == link_id,
            "position": position,
            "previous_link": request.room.current_link,
            **self._shelf.brief(product, link_id),
        }

    def _image(self, request: Request, arguments: Arguments) -> dict[str, Any]:
        link_id = int(arguments["link_id"])
        product = self._product(request, link_id)
        view = str(arguments.get("view", VIEWS[0]))
        image = next((i for i in product.images if i.rpartition("/")[2].startswith(view)), None)
        if image is None:
            raise ToolError.of("not_found", f"link {link_id} has no `{view}` image")
        brief = self._shelf.brief(product, link_id)
        return {"image": image, "view": view, **brief}


def chosen(tool: Tool, found: dict[str, Any]) -> dict[str, Any]:
    """The result, or the fields of it that the tool names in `_meta.harness.fields`: a harness for
    a small context has tools of few words."""
    fields = tool.meta.get("harness.fields")
    return found if fields is None else {k: found[k] for k in fields if k in found}


def _brief(card: dict[str, Any]) -> dict[str, Any]:
    kept = ("link_id", "product_id", "name", "zh_name", "category", "price", "list_price", "stock")
    return {**{k: card[k] for k in kept}, "highlights": card["highlights"]}


def _policy(policy: OrderPolicy) -> dict[str, Any]:
    found = {"topic": policy.topic, "text": policy.text, "zh_text": policy.zh_text}
    return found if policy.days is None else {**found, "days": policy.days}
