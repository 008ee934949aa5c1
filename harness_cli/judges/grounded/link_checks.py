"""Links beside the wrong name, phrases the item forbids, actions beside the reply."""

import re
from itertools import pairwise

from harness_cli.judges.grounded.language import fold, phrases
from harness_cli.judges.grounded.reading import Reading


def check_links(reading: Reading) -> None:
    """A link number beside the name of a product that stands behind another link."""
    folded, mentions = reading.folded, reading.mentions
    for mention in mentions:
        if mention.link is not None and not mention.products and reading.resolver.products:
            count = len(reading.resolver.products)
            detail = f"the room has {count} links"
            reading.find("wrong_link", detail, mention.start, mention.end, "room")
    for first, second in pairwise(mentions):
        if (first.link is None) == (second.link is None):
            continue
        linked, named = (first, second) if first.link is not None else (second, first)
        gap = folded[first.end : second.start]
        if not linked.products or not _BINDS.fullmatch(gap):
            continue
        if linked.products[0] not in named.products:
            right = [
                reading.resolver.products.index(p) + 1
                for p in named.products
                if p in reading.resolver.products
            ]
            detail = f"that product is link {right[0]}" if right else "that link is another product"
            reading.find("wrong_link", detail, first.start, second.end, linked.products[0])


_BINDS = phrases(
    r"""
    \s*(?:\(|（|:|：|,|，|-|is|are|'s|is our|is the|the|our|is called|at|on|in|under|behind
    for|of|here is|这款|这个|的|是|为|就是|在|我们的|咱们的|那款|\s)*\s*
    """
)


def check_forbidden(reading: Reading) -> None:
    """Phrases that the item forbids; a word of Latin letters matches as a whole word."""
    for phrase in reading.item.expect.forbidden:
        folded = fold(phrase).strip()
        if not folded:
            continue
        edge = r"(?<![a-z0-9])" if folded[0].isascii() and folded[0].isalnum() else ""
        match = re.search(edge + re.escape(folded), reading.folded)
        if match:
            reading.find("forbidden_phrase", f"`{phrase}`", match.start(), match.end(), "item")


def check_actions(reading: Reading) -> None:
    """Actions beside the reply: of a product of the room, and of the one that was asked for."""
    room = reading.resolver.products
    for action in reading.trajectory.actions:
        values = {str(k): v for k, v in action.items()}
        arguments = values.get("arguments")
        if isinstance(arguments, dict):
            values |= arguments
        product = values.get("product_id", values.get("product"))
        link = values.get("link_id", values.get("link"))
        if product is None and isinstance(link, int):
            product = room[link - 1] if 0 < link <= len(room) else f"link {link}"
        if product is None or not room:
            continue
        kind = str(values.get("type", values.get("tool", "action")))
        if product not in room:
            reading.find("wrong_action", f"{kind}: `{product}` is not in the room", 0, 0, "room")
        elif reading.focus and product not in reading.focus:
            reading.find(
                "wrong_action", f"{kind}: `{product}` was not asked for", 0, 0, reading.focus[0]
            )
