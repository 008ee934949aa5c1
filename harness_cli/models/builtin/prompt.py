"""What a prompt says: its sections, the skills and products it lists, the comments to answer.

A prompt is read as a person would skim it: headings, tags or `Title:` lines part it, lists
are lists whether bulleted, tabulated or tagged. Nothing is assumed about which names occur.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain

from harness_cli.models.builtin.language import cjk_runs, features

_HEADING = re.compile(
    r"^\s{0,3}#{1,6}\s+(?P<a>.+?)\s*#*$|^\s*\*\*(?P<b>[^*\n]{2,80})\*\*[:：]?\s*$"
)
_TITLE = re.compile(r"^(?P<t>[^\n:：]{2,90})[:：]\s*$")
_OPEN = re.compile(r"^\s*<(?P<tag>[A-Za-z][\w-]*)(?P<attrs>[^>]*)>\s*$")
_CLOSE = re.compile(r"^\s*</[A-Za-z][\w-]*>\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•+]\s+|\d{1,2}[.)]\s+)")
_PRODUCT = re.compile(
    r"^\W*?(?:(?P<label>[A-Za-z]{1,12}|链接|商品|第)\s*)?(?:#|[Nn]o\.?\s*)?(?P<n>\d{1,3})\s*"
    r"(?P<zh>号?(?:链接|商品)?)\s*(?:[:：.)、|]|\s[-–—])\s*(?P<rest>\S.*)$"
)
_RUN_ON = re.compile(r"(?<=[\])）】])\s*-\s+(?=[A-Za-z]+\s+\d+\s*[:：])")
_TAGGED = re.compile(
    r"<\w+[^>]*?\b(?P<label>link|number|no|index|n|position)=\"(?P<n>\d{1,3})\"(?P<attrs>[^>]*)>"
    r"(?P<rest>[^<]*)"
)
_GOODS = re.compile(r"product|item|link|goods|shelf|catalog|商品|链接|货架", re.IGNORECASE)
_NAME_SPLIT = re.compile(r"\s*(?:^|\s)/\s+|\s*[|｜]\s*|\s*[(（)）\[\]【】]\s*|\s+[-–—]\s+|[;；]\s*")
_CURRENT = re.compile(
    r"\b(?:current(?:ly)?|now|presenting|presented|on screen|showing)\b|正在|当前|讲解|主推",
    re.IGNORECASE,
)
_QA = re.compile(
    r"(?:^|\n)\W*(?:Q|问|question)\W{0,3}[:：]\s*(?P<q>[^\n|]+?)\s*[\n|]\W*"
    r"(?:A|答|answer)\W{0,3}[:：]\s*(?P<a>[^\n]+)",
    re.IGNORECASE,
)
_NAMED_LINE = re.compile(r"^\s*[-*•]\s+[\[(]?[\w.@-]{1,24}[\])]?\s*[:：]\s+(?=\S)")
_SPEAKER = re.compile(
    r"^(?:[\[(（<][^\])）>]{1,40}[\])）>]\s*[:：]?|"
    r"(?:viewer|user|buyer|customer|host|anchor|assistant|comment|观众|用户|主播|评论)"
    r"[\s_-]*[\w-]{0,24}\s*(?:said|says|asks|wrote|说|问)?\s*(?:\([^)]*\))?\s*[:：]|"
    r"[a-z]{1,3}[-_]?\d{1,6}\s*[:：])\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Section:
    """A part of a prompt under its title; `role` is the message's."""

    title: str
    body: str
    role: str

    def entries(self) -> list[str]:
        """Its lines without bullets, speakers and quotation marks."""
        raw = [line for line in self.body.splitlines() if line.strip()]
        if len(raw) > 1 and all(_NAMED_LINE.match(line) for line in raw):
            raw = [_NAMED_LINE.sub("", line, count=1) for line in raw]
        lines = [spoken(line) for line in raw]
        return [line for line in lines if line]


@dataclass(frozen=True)
class Product:
    """One listed product: its number and everything it is called."""

    number: int
    names: tuple[str, ...]
    line: str
    label: str = ""

    @cached_property
    def own_names(self) -> tuple[str, ...]:
        """Its first name in each script: what it is called, without category and remarks."""
        latin = next((n for n in self.names if not cjk_runs(n)), None)
        chinese = next((n for n in self.names if cjk_runs(n)), None)
        return tuple(n for n in (latin, chinese) if n)


@dataclass(frozen=True, eq=False)
class Listing:
    """The products a prompt lists and the one it says is presented now. Equal only to itself."""

    products: tuple[Product, ...] = ()
    current: int | None = None
    labels: tuple[str, ...] = field(default=())

    def numbered(self, number: int) -> Product | None:
        """The product of that number."""
        return next((p for p in self.products if p.number == number), None)


def spoken(line: str) -> str:
    """What a transcript line says, without bullet, speaker and quotation marks."""
    text = _BULLET.sub("", line.strip())
    text = re.sub(r"</?[A-Za-z][^>]*>", "", text).strip()
    text = _SPEAKER.sub("", text, count=1).strip()
    return text.strip('"“”「」').strip() if text[:1] in '"“「' else text


@lru_cache(maxsize=512)
def sections(text: str, role: str) -> tuple[Section, ...]:
    """The parts of a message. Text before the first title has the empty title."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        title = _title(line)
        if title is not None:
            parts.append((title, []))
        elif not _CLOSE.match(line):
            parts[-1][1].append(line)
    made = (Section(title, "\n".join(lines).strip(), role) for title, lines in parts)
    return tuple(s for s in made if s.body)


@lru_cache(maxsize=8192)
def _title(line: str) -> str | None:
    found = _HEADING.match(line)
    if found:
        return found["a"] or found["b"]
    found = _OPEN.match(line)
    if found:
        return f"{found['tag']} {found['attrs']}".replace("_", " ").strip()
    if _BULLET.match(line):
        return None
    found = _TITLE.match(line.strip())
    return found["t"] if found else None


@lru_cache(maxsize=512)
def described(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """What a text says of each name in a list: `- name: text`, a table row, or tags."""
    found: dict[str, str] = {}
    for name in names:
        first = text.find(name)
        if first < 0:
            continue
        listed, tagged = _descriptions(name)
        begin = _before(text, first)
        in_lines = (p.search(text, begin) for p in listed)
        in_tags = (p.search(text) for p in tagged)
        match = next((m for m in chain(in_lines, in_tags) if m), None)
        if match:
            found[name] = match[1].strip()
    return found


Patterns = tuple[re.Pattern[str], ...]


@lru_cache(maxsize=512)
def _descriptions(name: str) -> tuple[Patterns, Patterns]:
    """How a name is described in lists and tables, by line, and in tags."""
    quoted = re.escape(name)
    listed = (
        rf"^[\s>*•+\-\d.)]*[`*\"]*{quoted}[`*\"]*\s*(?:\([^)\n]*\)\s*)?(?:[:：]|—|–|\s-\s)\s*(.+)$",
        rf"^\s*\|\s*[`*]*{quoted}[`*]*\s*\|\s*(.+?)\s*\|?\s*$",
    )
    tagged = (
        rf"name=\"{quoted}\"[^>]*>\s*([^<]+)",
        rf"<name>\s*{quoted}\s*</name>\s*<description>\s*([^<]+)",
    )
    return (
        tuple(re.compile(p, re.MULTILINE) for p in listed),
        tuple(re.compile(p, re.MULTILINE) for p in tagged),
    )


def _before(text: str, place: int) -> int:
    """Where a description that holds this place may begin: at its line, or the one before."""
    return max(0, text.rfind("\n", 0, max(0, text.rfind("\n", 0, place))))


@lru_cache(maxsize=512)
def listing(text: str) -> Listing:
    """The products a prompt lists, and which is presented now."""
    best: tuple[Product, ...] = ()
    for section in sections(text, "system"):
        for run in _runs(section):
            if len(run) > len(best):
                best = run
    labels = tuple(sorted({p.label.lower() for p in best if p.label}))
    return _listed(best, _current(text, best, labels), labels)


@lru_cache(maxsize=512)
def _listed(products: tuple[Product, ...], current: int | None, labels: tuple[str, ...]) -> Listing:
    """The one listing of these products: what is worked out about it serves every request."""
    return Listing(products, current, labels)


@lru_cache(maxsize=2048)
def _runs(section: Section) -> list[tuple[Product, ...]]:
    runs: list[list[Product]] = [[]]
    about_goods = bool(_GOODS.search(section.title))
    for line in _RUN_ON.sub("\n- ", section.body).splitlines():
        product = _product(line, about_goods)
        if product is None:
            continue
        follows = runs[-1] and product.number == runs[-1][-1].number + 1
        if not follows or product.label != runs[-1][-1].label:
            runs.append([])
        runs[-1].append(product)
    return [tuple(run) for run in runs if run]


def _product(line: str, about_goods: bool) -> Product | None:
    found = _TAGGED.search(line)
    if found:
        attrs = re.findall(r'="([^"]+)"', found["attrs"])
        return Product(int(found["n"]), _names(" | ".join([found["rest"], *attrs])), line, "link")
    found = _PRODUCT.match(line)
    if not found:
        return None
    label = found["label"] or found["zh"] or ""
    if label.lower() in ("no", "step", "rule", "round", "top") or not (label or about_goods):
        return None
    return Product(int(found["n"]), _names(found["rest"]), line, label.lower())


def _names(rest: str) -> tuple[str, ...]:
    plain = re.sub(r"[`*_\"]", "", rest)
    pieces = [p.strip(" .,，。:：") for p in _NAME_SPLIT.split(plain)]
    return tuple(dict.fromkeys(p for p in pieces if p and features(p) and not _CURRENT.search(p)))


def _current(text: str, products: tuple[Product, ...], labels: tuple[str, ...]) -> int | None:
    for product in products:
        rest = product.line
        for name in product.names:
            rest = rest.replace(name, " ")
        if _CURRENT.search(rest):
            return product.number
    word = "|".join(
        re.escape(x) for x in {*labels, "link", "product", "item", "链接", "号", "商品"}
    )
    near = re.compile(
        rf"(?:{_CURRENT.pattern})[^\d\n]{{0,24}}?(?:{word}|#|[:：])\W{{0,3}}(\d{{1,3}})", re.I
    )
    for found in near.finditer(text):
        if any(p.number == int(found[1]) for p in products):
            return int(found[1])
    return None


@lru_cache(maxsize=512)
def questions_and_answers(text: str) -> tuple[tuple[str, str], ...]:
    """The question and answer pairs a text lists."""
    pairs = [(m["q"].strip(), m["a"].strip()) for m in _QA.finditer(text)]
    if pairs:
        return tuple(pairs)
    for line in (spoken(raw) for raw in text.splitlines()):
        parts = re.split(r"(?<=[?？])\s*(?:→|->|=>|[-–—:：|])?\s*", line, maxsplit=1)
        if len(parts) == 2 and all(p.strip() for p in parts):
            pairs.append((parts[0].strip(), parts[1].strip()))
    return tuple(pairs)
