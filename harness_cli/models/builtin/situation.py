"""The situation of a comment: what it asks whatever the product, what is open, what happened."""

import re
from functools import lru_cache

from harness_cli.models.builtin.language import (
    THAT,
    THIS,
    cjk_runs,
    features,
    meaningless,
    only_asks,
    spelled_out,
)
from harness_cli.models.builtin.mentions import NUMBERED, by_name, longest_common, mentions
from harness_cli.models.builtin.prompt import Listing
from harness_cli.models.builtin.scene import Scene
from harness_cli.models.builtin.similarity import Similarity

FAQ_NEAR = 0.62
"""A configured question is what the comment asks from this nearness on."""
CUE = 0.45
"""Weight of a situation's own words beside those of the comment."""
HINT = 0.25
"""The same where the situation leaves most open."""
SURE = 1.2
"""The same where the situation alone decides: a bare "how much" with nothing that says of what."""

UNCLEAR = "it is not clear which product is meant, context missing, ask back 不知道哪个商品 追问"
CLEAR = "names a link number or a product, or points at the one being shown 链接 商品"
COMPARING = "compare several products with each other 多个商品对比"
SEVERAL = "several comments of many viewers at once 多条评论"
TALK = "casual talk, small talk, chat 闲聊 聊天"
CONFIGURED = "a configured FAQ entry answers the question 常见问题"
_POINTING = re.compile(f"{THIS.pattern}|{THAT.pattern}", re.IGNORECASE)

_EVENTS = (
    (
        re.compile(r"join|enter|进入|来了", re.IGNORECASE),
        "hello, a new viewer enters the room, welcome",
    ),
    (
        re.compile(r"order|bought|下单", re.IGNORECASE),
        "the viewer has ordered, thank you for the order",
    ),
    (re.compile(r"like|赞", re.IGNORECASE), "the viewer likes the room, praise, thank you"),
    (re.compile(r"cart|加购", re.IGNORECASE), "the viewer put a product into the cart"),
)


def cues(comment: str, scene: Scene, similarity: Similarity) -> list[tuple[float, str]]:
    """What the situation is, in plain words that a description may share, and how much it says."""
    found: list[tuple[float, str]] = []
    meant = mentions(comment, scene)
    if len(meant.said) > 1:
        found.append((CUE, COMPARING))
    if len(scene.comments) > 1:
        found.append((CUE, SEVERAL))
    if asked_before(comment, scene, similarity):
        found.append((CUE, CONFIGURED))
    if lost(comment, scene):
        found.append((SURE, UNCLEAR))
    elif meant.said or (meant.pointed is not None and _POINTING.search(comment)):
        found += [(-SURE, UNCLEAR)]
        if meant.said or THIS.search(comment):
            found.append((HINT, CLEAR))
    if meaningless(comment):
        found.append((SURE, "text without meaning, spam 无意义内容"))
    return found


def happenings(scene: Scene) -> tuple[str, ...]:
    """The last event of a request without comments, in words."""
    for event in scene.events[-1:]:
        return tuple(told for kind, told in _EVENTS if kind.search(event))[:1] or (event,)
    return ()


@lru_cache(maxsize=1024)
def asked_before(comment: str, scene: Scene, similarity: Similarity) -> tuple[str, str] | None:
    """The configured question that a comment asks, with its answer."""
    scored = [(similarity.nearness(comment, q), -i) for i, (q, _) in enumerate(scene.faq)]
    if not scored or max(scored)[0] < FAQ_NEAR:
        return None
    return scene.faq[-max(scored)[1]]


@lru_cache(maxsize=1024)
def lost(comment: str, scene: Scene) -> bool:
    """Whether nothing at all says which product a comment asks about."""
    meant = mentions(comment, scene)
    if not scene.goods.products or meant.numbers:
        return False
    return meant.ambiguous or only_asks(comment)


def masked(comment: str, goods: Listing) -> str:
    """A comment without product names and numbers: they say nothing of what is asked."""
    text = without_products(comment, goods)
    return text if features(text) else comment


@lru_cache(maxsize=1024)
def asked_for(comment: str, scene: Scene) -> str:
    """What a comment asks, whichever the product: its own words and the plain words for them."""
    return spelled_out(masked(comment, scene.goods))


@lru_cache(maxsize=4096)
def without_products(comment: str, goods: Listing) -> str:
    """A comment with the names and numbers of products taken out."""
    text = comment
    for number in by_name(comment, goods)[0]:
        product = goods.numbered(number)
        for name in product.own_names if product else ():
            text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
            for word in re.findall(r"[A-Za-z]{3,}", name):
                text = re.sub(rf"\b{word}s?\b", " ", text, flags=re.IGNORECASE)
            for run in cjk_runs(name):
                piece = longest_common(run, text)
                text = text.replace(piece, " ") if len(piece) >= 2 else text
    return NUMBERED.sub(" ", text)
