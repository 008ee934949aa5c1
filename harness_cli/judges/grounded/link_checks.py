"""Links beside the wrong name, phrases the item forbids, actions beside the reply."""

import re
from itertools import pairwise

from harness_cli.judges.grounded import acts
from harness_cli.judges.grounded.focus import Mention, products_of
from harness_cli.judges.grounded.language import fold, phrases
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.searched import Phrases


def check_links(reading: Reading) -> None:
    """A link number beside the name of a product that stands behind another link."""
    folded, mentions = reading.folded, reading.mentions
    for mention in mentions:
        if mention.link is not None and not mention.products and reading.resolver.products:
            count = len(reading.resolver.products)
            detail = f"the room has {count} links"
            reading.find("wrong_link", detail, mention.start, mention.end, "room")
    bound: set[int] = set()
    for first, second in pairwise(mentions):
        if (first.link is None) == (second.link is None):
            continue
        linked, named = (first, second) if first.link is not None else (second, first)
        gap = folded[first.end : second.start]
        if not linked.products or not _binds(gap):
            continue
        bound.add(linked.start)
        if linked.products[0] not in named.products:
            right = [
                reading.resolver.products.index(p) + 1
                for p in named.products
                if p in reading.resolver.products
            ]
            detail = f"that product is link {right[0]}" if right else "that link is another product"
            reading.find("wrong_link", detail, first.start, second.end, linked.products[0])

    for mention in mentions:
        if mention.link is not None and mention.products and mention.start not in bound:
            _check_placed(reading, mention)


def _check_placed(reading: Reading, linked: Mention) -> None:
    """ "… go grab it at link 4": the link is where the product just spoken of should be."""
    before = reading.folded[max(0, linked.start - 28) : linked.start]
    after = reading.folded[linked.end : linked.end + 12]
    if not (_PLACES.search(before) or _PLACED_AFTER.match(after)):
        return
    named = [m for m in reading.mentions if m.link is None and m.end <= linked.start]
    spoken = named[-1].products if named else reading.focus
    if (
        len(spoken) != 1
        or spoken[0] == linked.products[0]
        or spoken[0] not in reading.resolver.products
    ):
        return
    if not named and _asked_link(reading, linked):
        return
    right = reading.resolver.products.index(spoken[0]) + 1
    detail = f"that product is link {right}"
    reading.find("wrong_link", detail, linked.start, linked.end, spoken[0])


def _asked_link(reading: Reading, linked: Mention) -> bool:
    """The viewer spoke of this link or its product."""
    asked = reading.resolver.mentions(reading.evidence.asked.text)
    return any(linked.products[0] in m.products for m in asked)


_PLACES = phrases(
    r"""
    (?:\bit's|\bit is|\bit at|\bit in|\bit on|\bit under|\bone at|\btap|\bclick|\bgo to|\bgrab
    \bfind|\border|\bis at|\bis on\
    |\bare at|\bat|\bunder|\bover at|\bhead to)\s*(?:it )?(?:at |on |in |under )?(?:the )?$
    (?:就?在|点|拍|去|看|找|戳|是|就是|认准|请拍|直接拍|上)\s*$
    """
)
_PLACED_AFTER = phrases(r"""\s*(?:链接)?(?:直接拍|拍就行|下单|自取|就能拍|就是它|就是了|去拍|拍)""")


def _binds(gap: str) -> bool:
    """A link and a name stand together: little between them, and nothing that parts them."""
    return len(gap) <= 26 and not _PARTS.search(gap)


_PARTS = phrases(
    r"""
    [\d.。！!？?;；\n]|\b(?:and|or|vs|versus|with|than|not|but|after|before|instead|plus|also|like\
    |compared|next|then|both|cheaper|while|go|goes|match|matches|try|if|see|over)\b
    和|跟|与|或|比|不|但|还有|加|配|搭|再|以及|、|而|同|及|也|要|或者|先|后
    """
)


def check_forbidden(reading: Reading) -> None:
    """Phrases that the item forbids; a word of Latin letters matches as a whole word."""
    for phrase in reading.item.expect.forbidden:
        folded = fold(phrase).strip()
        if not folded or folded not in reading.folded:
            continue
        edge = r"(?<![a-z0-9])" if folded[0].isascii() and folded[0].isalnum() else ""
        match = re.search(edge + re.escape(folded), reading.folded)
        if match:
            reading.find("forbidden_phrase", f"`{phrase}`", match.start(), match.end(), "item")


def check_presented(reading: Reading) -> None:
    """A product that is presented or shown in words is one that a call or an action moved or
    showed, or that was asked for."""
    done = _acted_on(reading)
    if not done:
        return
    for start, end in acts.presented(reading.folded):
        named = [m for m in reading.mentions if start <= m.start < end and len(m.products) == 1]
        products = {m.products[0] for m in named}
        if products and not products & done:
            right = next(iter(sorted(done)))
            reading.find("wrong_link", "another product was moved or shown", start, end, right)


_PRESENTS = Phrases(r"(?i)present|order|image|picture|photo|顺序|讲解|图")


def _acted_on(reading: Reading) -> set[str]:
    """Products that calls and actions of presenting or showing were about."""
    calls = [c for c in reading.trajectory.calls if c.result.ok and _PRESENTS.search(c.name)]
    given = [c.arguments or {} for c in calls] + list(reading.trajectory.actions)
    return {p for one in given for p in products_of(one, reading.resolver)}


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
