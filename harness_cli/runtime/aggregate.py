"""Multi-comment mode: a stream of comments into groups that get one reply each (TR §2.4).

Comments belong together when they come within one window, are about the same product and the same
topic. A pure function of the comments and their times, so a recorded room groups the same again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from harness_cli.harness.memo import Memo
from harness_cli.records.catalogue import Catalogue, Product
from harness_cli.records.request import Comment, Request, Room

WINDOW_S = 6.0
"""**choice**: about as long as a host speaks before the next reply can begin."""
LARGEST = 8
"""Comments of one group; the next one opens another."""

TOPICS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "aftersales",
            r"refund|return|exchange|broken|complain|my order|退|换货|售后|投诉|坏了|订单",
        ),
        (
            "promotion",
            r"discount|coupon|deal|promo|voucher|gift|member|优惠|券|满减|活动|赠|会员|到手",
        ),
        ("delivery", r"\bship|deliver|arriv|courier|发货|快递|物流|包邮|几天到|多久到"),
        ("stock", r"in stock|sold out|how many left|available|restock|有货|库存|还有吗|断货|补货"),
        (
            "presentation",
            r"(?:show|see|present|explain).{0,20}(?:link|#|next)|讲一下|讲讲|看一下|下一个",
        ),
        ("price", r"how much|price|cost|cheap|expensive|yuan|多少钱|价格|几块|贵|便宜|怎么卖"),
        (
            "attribute",
            r"size|colou?r|material|suit|ingredient|batter|weigh|warranty|spf|fit\b|which|better"
            r"|尺码|颜色|材质|成分|适合|多重|保修|哪个|区别|推荐|能不能|可以.{0,8}吗",
        ),
        ("thanks", r"thank|thx|谢谢|感谢|多谢"),
        ("greeting", r"^\W*(?:hi|hello|hey|good (?:morning|evening))\b|你好|大家好|晚上好|来了"),
    )
)
OF_PRODUCTS = frozenset({"delivery", "stock", "presentation", "price", "attribute"})
"""Topics that are about what is presented now when no product is named."""
_LINK = re.compile(
    r"(?:#|\blinks?\s*(?:no\.?|number)?\s*|\bnumber\s+|\bno\.\s*)(\d{1,3})\b|(\d{1,3})\s*号",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Group:
    """Comments that get one reply."""

    product: str | None
    topic: str
    comments: tuple[Comment, ...]
    opened: float
    """When its first comment came, seconds since the room opened."""


@dataclass(slots=True)
class _Open:
    product: str | None
    topic: str
    opened: float
    comments: list[Comment] = field(default_factory=list)
    said: set[str] = field(default_factory=set)

    def close(self) -> Group:
        return Group(self.product, self.topic, tuple(self.comments), self.opened)


class Aggregator:
    """Groups comments as they come. Feed it in order of time; ask it what is ready."""

    def __init__(
        self, room: Room, world: Catalogue, *, window_s: float = WINDOW_S, largest: int = LARGEST
    ) -> None:
        self._room = room
        self._names = _NAMES.get((world.products,), room.products, lambda: _names(room, world))
        self._window_s = window_s
        self._largest = largest
        self._open: dict[tuple[str | None, str], _Open] = {}

    def add(self, comment: Comment, at: float) -> list[Group]:
        """Take a comment in; the groups that closed by it or before it, oldest first."""
        ready = self.ready(at)
        if not comment.text.strip():
            return ready
        topic = topic_of(comment.text)
        product = self._product(comment.text, topic)
        group = self._open.setdefault((product, topic), _Open(product, topic, at))
        said = _plain(comment.text)
        if said in group.said:
            return ready  # the same words again need no second answer
        group.said.add(said)
        group.comments.append(comment)
        if len(group.comments) >= self._largest:
            ready.append(self._open.pop((product, topic)).close())
        return ready

    def ready(self, now: float) -> list[Group]:
        """Close and give the groups whose window is over, oldest first."""
        over = [k for k, g in self._open.items() if now - g.opened >= self._window_s]
        return sorted((self._open.pop(k).close() for k in over), key=lambda g: g.opened)

    def flush(self) -> list[Group]:
        """Close and give everything."""
        groups, self._open = [g.close() for g in self._open.values()], {}
        return sorted(groups, key=lambda g: g.opened)

    def next_at(self) -> float | None:
        """When the next group will be ready; None while nothing waits."""
        return min((g.opened + self._window_s for g in self._open.values()), default=None)

    def _product(self, text: str, topic: str) -> str | None:
        """The product a comment is about: by link, by name, else what is presented now."""
        products = self._room.products
        linked = _LINK.search(text)
        if linked:
            link = int(linked[1] or linked[2])
            return products[link - 1] if 1 <= link <= len(products) else None
        low = text.casefold()
        named = [(len(name), product) for name, product in self._names if name in low]
        if named:
            return max(named)[1]
        current = self._room.current_link
        if topic in OF_PRODUCTS and current is not None and 1 <= current <= len(products):
            return products[current - 1]
        return None


def group_comments(
    comments: Iterable[Comment],
    room: Room,
    world: Catalogue,
    *,
    window_s: float = WINDOW_S,
    largest: int = LARGEST,
) -> list[Group]:
    """All groups of a recorded stream, in the order in which they are answered.

    A comment without a time comes together with the one before it.
    """
    aggregator = Aggregator(room, world, window_s=window_s, largest=largest)
    groups: list[Group] = []
    now = 0.0
    for comment in comments:
        now = max(now, comment.at if comment.at is not None else now)
        groups += aggregator.add(comment, now)
    return groups + aggregator.flush()


def request_of(group: Group, base: Request) -> Request:
    """The request of one group: the base's room and context, this group's comments."""
    mode = "multi" if len(group.comments) > 1 else "single"
    return msgspec.structs.replace(base, comments=group.comments, mode=mode)


def topic_of(text: str) -> str:
    """The first topic whose words occur, else `chat`."""
    return next((name for name, words in TOPICS if words.search(text[:500])), "chat")


_NAMES: Memo[list[tuple[str, str]]] = Memo(64)
"""By products, which stand still while stock and offers of a catalogue move."""


def _names(room: Room, world: Catalogue) -> list[tuple[str, str]]:
    """Names and keywords of the room's products, each with its product."""
    found: list[tuple[str, str]] = []
    for product_id in room.products:
        product = world.product(product_id)
        if product is not None:
            found += [(name, product_id) for name in _called(product)]
    return found


def _called(product: Product) -> set[str]:
    names = {product.name, product.zh_name, *product.keywords}
    return {n.casefold() for n in names if len(n) >= 2}


def _plain(text: str) -> str:
    return re.sub(r"\W+", "", text.casefold()) or text.strip()
