"""What the policy knows of language in general: scripts, words, numbers, cues.

Nothing here belongs to one harness: stop words, number words, question and pointing words,
units, and how English and Chinese text is cut into comparable pieces.
"""

import re
from functools import lru_cache

CJK = r"\u3400-\u4dbf\u4e00-\u9fff"
_CJK_CHAR = re.compile(f"[{CJK}]")
_CJK_RUN = re.compile(f"[{CJK}]+")
_LATIN = re.compile(r"[a-zA-Z][a-zA-Z'’]*[a-zA-Z]|[a-zA-Z]|\d+(?:\.\d+)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？；;\n]+")
_CLAUSE = re.compile(
    r"(?<=[?!.])\s+|[。？！?!；;，、\n]+|,\s+|\s+(?:and|also|plus|but)\s+"
    r"|还有|另外|以及|而且|顺便|(?<=吗)|(?<=呢)",
    re.IGNORECASE,
)

_STOP = """
a an the is are was were be been am do does did doing have has had of to in on at by
for with from as it its this that these those there here i me my we us our you your he
she they them his her their or and if so then than too very can could would should
will shall may might must just about into over up down out off no not any some please
pls hi oh um ok okay let get got whats what's i'm im it's s t re ve ll d m u ur yo
dear all
"""
STOP_WORDS = frozenset(_STOP.split())
_STOP_CJK = frozenset("的了吗呢吧啊呀哦嘛是在有我你他她它们这那个和与就都也请给把被很要会能")

_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
NUMBER_WORDS = {w: n for row in (_CARDINALS, _ORDINALS) for n, w in enumerate(row, 1)}
CJK_NUMBERS = {c: n for n, c in enumerate("一二三四五六七八九", 1)} | {"两": 2, "十": 10}

THIS = re.compile(
    r"\b(?:this|these|here|now|current|showing|screen)\b|这|此|现在|当前|正在|手上|手里",
    re.IGNORECASE,
)
NEXT = re.compile(
    r"\b(?:the )?next (?:one|link|product|item)\b|^next\b|下一[个款件]", re.IGNORECASE
)
PREVIOUS = re.compile(
    r"\bprevious (?:one|link|product|item)\b|\bgo back\b|上一[个款件]", re.IGNORECASE
)
THAT = re.compile(
    r"\b(?:it|its|it's|that|those|them|one|earlier|previous|before)\b|那|它|刚才|之前|上一",
    re.IGNORECASE,
)
COMMON_ADJECTIVES = frozenset(
    {
        "light", "small", "big", "large", "mini", "portable", "soft", "warm", "cold", "hot", "dry",
        "fresh", "clean", "new", "fast", "slim", "long", "short", "thick", "thin", "natural",
        "sweet", "strong", "gentle", "classic", "pure", "heavy", "quick", "easy", "white", "simple",
        "black", "red", "blue", "green", "pink", "grey", "smart", "free", "super", "deep", "full",
    }
)  # fmt: skip
"""Words that describe anything: in a product's name they hardly tell which product."""
NEGATIVE_USE = re.compile(
    r"\b(?:do not (?:use|load|call|apply)|don't (?:use|load|call)|not (?:for|when|to be used)|"
    r"never (?:use|for|when)|except|other than|rather than|instead of|unless)\b"
    r"|不用于|不要用|不适用|不处理|不负责|而不是|除了",
    re.IGNORECASE,
)
OBLIGATION = r"(?:call it )?(?:always|must|first|every|each time)\b|必须|一定要|每次|务必|先调用"
"""How an instruction begins that leaves no choice; part of an expression."""


_COLOURS = (
    r"\b(?:black|white|red|blue|green|pink|grey|gray|yellow|purple|brown|beige|navy|orange|khaki|silver"
    r"|gold|ivory|cream|rose)\b"
)
_OPTIONS = re.compile(
    rf"(?i:{_COLOURS})|(?<!['’])\b(?:X{{0,4}}[SL]|M)\b(?!['’])"
    r"|(?i:\bone size\b|\b\d{2,3}\s?(?:ml|g|cm)\b"
    r"|[黑白红蓝绿粉灰黄紫棕米橙金银杏]色|(?:x{0,4}[sl]|m|\d{2})码|[大中小加均]码)"
)


def options(comment: str) -> str:
    """The colours and sizes a comment names, in its order."""
    named = _IN_OPTION.search(comment)
    if named and not _OPTIONS.search(comment):
        return named[1] or named[2]
    return " ".join(m[0] for m in _OPTIONS.finditer(comment))


_IN_OPTION = re.compile(
    r"\bin (?!stock|there|here|the|this|that|my|your|an?\b|it\b)([A-Za-z-]{3,}(?: [A-Za-z-]{3,})?)"
    r"|\bsize (\w{1,4})\b",
    re.IGNORECASE,
)


QUESTION_FORMS = (
    (
        r"\bhow much\b(?! (?:does it (?:hold|weigh)|water|time))|多少钱|几块|什么价",
        "price cost 价格",
    ),
    (
        r"\bhow many (?:ml|g|grams?|kg|cm|lit(?:re|er)s?)\b|多少(?:毫升|克|升)",
        "volume weight size 容量",
    ),
    (
        r"\bhow many (?!ml|g\b|grams?|kg|cm|lit(?:re|er)s?)|多少[个件片颗只包]|几[个件片颗只包]",
        "quantity count 数量",
    ),
    (r"\bhow long\b|多久|多长时间", "time duration 时间"),
    (r"\bwhen\b|\bwhat time\b|什么时候|几点|啥时候", "time date 时间"),
    (r"\bhow big\b|\bhow tall\b|多大|多高", "size dimensions 尺寸"),
    (r"\bhow heavy\b|多重", "weight 重量"),
    (r"\b(?:under|below|within|budget)\b|以内|以下|预算", "budget recommend 预算 推荐"),
    (r"\bwhere\b|哪里|哪儿", "place where 地点"),
    (
        r"\bwhich (?:one )?is\b|\bversus\b|\bvs\b|哪个(?:更)?好|哪款|对比|比较|区别|差别|差多少",
        "compare choose difference 对比",
    ),
    (
        r"\b(?:looking for|suggest|(?:something|anything) (?:for|to|that))\b"
        r"|有没有适合|想找|想买个|推荐",
        "recommend find 推荐",
    ),
    (r"\b(?:made of|made from)\b|什么做的", "material 材质"),
    (r"\b(?:left|sold out|available|in stock)\b|有货|还有吗|卖完|卖光", "stock available 库存"),
)
"""Forms of asking, and the plain words for what they ask, in both languages."""
_FORMS = tuple((re.compile(form, re.IGNORECASE), words) for form, words in QUESTION_FORMS)


def spelled_out(comment: str) -> str:
    """A comment with the plain words for its question forms added."""
    added = [words for form, words in _FORMS if form.search(comment)]
    return " ".join([comment, *added])


PERSONAL = re.compile(
    r"\bwhere (?:do|did) you (?:come from|live|grow up)\b|\bwhere are you (?:\w+ )?from\b"
    r"|\bhow old are you\b|\bwhat(?:'s| is) your (?:name|age|home ?town)\b"
    r"|\bare you (?:single|married)\b"
    r"|哪[里儿]人|什么地方人|(?:你|您|主播)(?:叫(?:什么|啥)|多大(?:了|啦|年纪)|几岁|结婚|住哪)",
    re.IGNORECASE,
)
"""A question about the one who is spoken to: where they are from, their name, their age, family."""


def squeezed(text: str) -> str:
    """A text without letters drawn out (`pleeease`) and without opening phrases of politeness."""
    text = re.sub(r"([A-Za-z])\1{2,}", r"\1", text)
    return _OPENERS.sub("", text).strip() or text


_OPENERS = re.compile(
    r"^\s*(?:(?:hi|hey|hello|excuse me|sorry|quick question|question)\s*[,:!.]\s*(?=\S{2,}\s)"
    r"|(?:请问一?下?|问一?下|想问一?下?|主播|老板)[，,：: ]*(?=\S{3,}))+",
    re.IGNORECASE,
)


def only_asks(text: str) -> bool:
    """Whether a text holds a form of asking or a pointing word and names nothing beside it."""
    if not re.search(rf"[A-Za-z{CJK}]", text):
        return False
    bare = text.lower()
    for form, added in _FORMS:
        bare = form.sub(" ", bare)
        for word in added.split():
            bare = re.sub(rf"\b{word}s?\b" if word.isascii() else word, " ", bare)
    bare = THAT.sub(" ", THIS.sub(" ", bare))
    left = [w for w in words(bare) if w not in _WEAK and w not in _BARE]
    return not left and len(re.sub(_SMALL_CJK, "", "".join(cjk_runs(bare)))) <= 1


_BARE = frozenset(("what", "how", "much", "many", "it", "does", "work", "take", "tell", "know"))
_SMALL_CJK = (
    "[的了吗呢吧啊呀哦嘛是在有我你他她们个款件还能买到要想给来份请问那哪怎样么好不行没可以多少]"
)


def meaningless(text: str) -> bool:
    """Whether a text has no word in it: only signs, or letters that form none."""
    bare = re.sub(r"[\W\d_]+", "", text)
    if not bare:
        return not re.search(r"\d", text)
    return bool(re.fullmatch(r"[A-Za-z]+", bare)) and bool(
        re.search(r"[bcdfghjklmnpqrstvwxz]{5,}", bare, re.IGNORECASE)
    )


def is_chinese(text: str) -> bool:
    """Whether a text is to be answered in Chinese: more Chinese characters than Latin words."""
    cjk = len(_CJK_CHAR.findall(text))
    return cjk > 0 and cjk >= len(re.findall(r"[A-Za-z]{2,}", text))


def language_of(text: str) -> str:
    """`zh` or `en`."""
    return "zh" if is_chinese(text) else "en"


def sentences(text: str) -> list[str]:
    """The sentences of a text, without blanks."""
    return [s.strip() for s in _SENTENCE.split(text) if s and s.strip()]


def clauses(text: str) -> list[str]:
    """The parts of a comment that may each ask something."""
    return [c.strip() for c in _CLAUSE.split(text) if c and features(c.strip())]


def stem(word: str) -> str:
    """A word without the commonest English endings: `ships`, `shipping`, `shipped` → `ship`."""
    word = word.lower().replace("’", "'")
    word = word.removesuffix("'s")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lse":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


_ASKING_CJK = re.compile(
    "什么|怎么|么办|多少|哪个|哪些|可以|有没|没有|一个|一下|一件|这个|那个|这款|请问|还是|想要"
)
_WEAK_WORDS = "good nice well really want how what which who when where why"
_WEAK = frozenset(stem(w) for w in (*COMMON_ADJECTIVES, *_WEAK_WORDS.split()))


@lru_cache(maxsize=8192)
def words(text: str) -> list[str]:
    """The stemmed Latin words of a text that carry meaning."""
    found = (w.lower() for w in _LATIN.findall(text))
    return [stem(w) for w in found if w not in STOP_WORDS]


def cjk_runs(text: str) -> list[str]:
    """The runs of Chinese characters."""
    return _CJK_RUN.findall(text)


@lru_cache(maxsize=8192)
def features(text: str) -> dict[str, float]:
    """Comparable pieces of a text and their weight.

    Stemmed words (1.0, adjectives of all trades 0.4) and their 4-character pieces (0.1: typing
    errors); of Chinese runs the single characters (0.3), pairs (1.0) and triples (1.0).
    """
    found: dict[str, float] = {}
    for word in words(text):
        found[word] = 0.4 if word in _WEAK else 1.0
        padded = f"^{word}$"
        if word.isalpha() and len(word) >= 4:
            found.update({f"~{padded[i : i + 4]}": 0.1 for i in range(len(padded) - 3)})
    for run in cjk_runs(text):
        found.update({c: 0.3 for c in run if c not in _STOP_CJK})
        for size in (2, 3):
            for i in range(len(run) - size + 1):
                piece = run[i : i + size]
                if not all(c in _STOP_CJK for c in piece):
                    found[piece] = 0.2 if _ASKING_CJK.search(piece) else 1.0
    return found


def number_of(word: str) -> int | None:
    """The number a word stands for: `3`, `three`, `third`, `三`, `十二`."""
    if word.isdigit():
        return int(word)
    if word.lower() in NUMBER_WORDS:
        return NUMBER_WORDS[word.lower()]
    if word in CJK_NUMBERS:
        return CJK_NUMBERS[word]
    return _chinese_number(word)


def _chinese_number(word: str) -> int | None:
    """`十二` 12, `一百` 100, `两千五` 2500, `一百五十` 150; None for anything else."""
    scales = {"十": 10, "百": 100, "千": 1000}
    if not word or any(c not in CJK_NUMBERS and c not in scales for c in word):
        return None
    total, digit, scale = 0, 0, 1
    for c in word:
        if c in scales:
            scale = scales[c]
            total += (digit or 1) * scale
            digit = 0
        else:
            digit = CJK_NUMBERS[c]
    return total + digit * (scale // 10 if scale > 10 else 1)
