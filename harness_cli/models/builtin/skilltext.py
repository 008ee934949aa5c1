"""A loaded skill as text that guides: rules, the tools it names, the replies it suggests.

Reply patterns have the form

    - **price**: how much it costs
      - en: {name} is {price} yuan.
      - zh: {zh_name}现在{price}元。

and are found wherever they stand. Slots are fields of tool results.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from harness_cli.models.builtin.language import features
from harness_cli.models.builtin.prompt import sections
from harness_cli.models.builtin.similarity import coverage

_PATTERN = re.compile(r"^\s*[-*•]\s+\*\*(?P<key>[^*\n]+?)\*\*\s*(?:[:：]|—|–|-)?\s*(?P<about>.*)$")
_VARIANT = re.compile(
    r"^\s*[-*•]\s+`?(?P<lang>[a-z]{2})(?:-[A-Za-z]+)?`?\s*[:：]\s*(?P<text>.*\S)\s*$"
)
_SLOT = re.compile(r"\{([A-Za-z_][\w.:\[\]-]*)\}")
_TICKED = re.compile(r"`([^`\n]+)`")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(.*\S)\s*$")
_EXAMPLE = re.compile(
    r"(?:viewer|user|customer|观众|用户)\W{0,4}[:：]\s*(?P<v>[^\n]+)\n[\s>*-]*"
    r"(?:host|assistant|reply|主播|回复)\W{0,4}[:：]\s*(?P<h>[^\n]+)",
    re.IGNORECASE,
)
SAME_WORDING = 0.5
"""An example's answer follows a pattern when it has this share of the pattern's words."""
_NEGATIVE = re.compile(
    r"\b(?:no|not|none|nothing|without|cannot|missing|unknown)\b|n't\b|没有|不到|不知道|无",
    re.IGNORECASE,
)
_AVOID = re.compile(r"do not use|don't use|not for|when not|不要使用|不适用|不用于", re.IGNORECASE)
_USE = re.compile(r"when to use|use when|use this|适用|何时使用", re.IGNORECASE)
_RULES = re.compile(r"rule|guideline|boundar|规则|要求", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Pattern:
    """One suggested reply: what it is for and its wording by language. Equal only to itself."""

    key: str
    about: str
    texts: tuple[tuple[str, str], ...]
    skill: str = ""
    examples: tuple[str, ...] = ()
    """Viewers' words of the skill's examples that were answered this way."""
    fallback: bool = False
    """For when facts are missing: what it is for is put in the negative."""
    tool: str = ""
    """A call that stands instead of words."""

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """Slots of all wordings."""
        return tuple(dict.fromkeys(s for _, t in self.texts for s in _SLOT.findall(t)))

    def wordings(self, language: str) -> tuple[str, ...]:
        """The wordings of a language, or of the first one there is."""
        mine = tuple(t for lang, t in self.texts if lang == language)
        return mine or tuple(t for _, t in self.texts[:1])

    @cached_property
    def asks_back(self) -> bool:
        """Whether every wording is a question without a fact in it."""
        texts = [t for _, t in self.texts]
        return not self.slots and bool(texts) and all(t.rstrip()[-1:] in "?？" for t in texts)

    def told(self) -> str:
        """What it is for, in words; slots are no words."""
        return f"{self.key.replace('-', ' ').replace('_', ' ')}. {self.about}"

    def said(self) -> tuple[str, ...]:
        """Its wordings with the slots left out."""
        return self._said

    @cached_property
    def _said(self) -> tuple[str, ...]:
        return tuple(_SLOT.sub(" ", text) for _, text in self.texts)

    @cached_property
    def purposes(self) -> tuple[str, ...]:
        """Everything said of what it is for: as a whole, in parts, and by those who asked."""
        about = [p.strip() for p in re.split(r"[,;，；、]", self.about) if p.strip()]
        key = self.key.replace("-", " ").replace("_", " ")
        return tuple(p for p in (self.about, key, *about, *self.examples) if p)


@dataclass(frozen=True, eq=False)
class Guide:
    """What a loaded skill says. Equal only to itself."""

    skill: str
    use: tuple[str, ...]
    avoid: tuple[str, ...]
    rules: tuple[str, ...]
    tools: dict[str, str]
    """Tool name → every line that names it."""
    patterns: tuple[Pattern, ...]
    examples: tuple[tuple[str, str], ...]
    body: str


@lru_cache(maxsize=256)
def guide(skill: str, body: str, tool_names: tuple[str, ...]) -> Guide:
    """The skill's body, read once."""
    use, avoid, rules = [], [], []
    examples = tuple((m["v"].strip(), m["h"].strip()) for m in _EXAMPLE.finditer(body))
    for section in sections(body, "tool"):
        lines = [m[1] for line in section.body.splitlines() if (m := _BULLET.match(line))]
        lines = lines or [section.body]
        if _AVOID.search(section.title):
            avoid += lines
        elif _USE.search(section.title):
            use += lines
        elif _RULES.search(section.title):
            rules += lines
    return Guide(
        skill=skill,
        use=tuple(use),
        avoid=tuple(avoid),
        rules=tuple(rules),
        tools=_tools(body, tool_names),
        patterns=_with_examples(_patterns(body, skill), examples),
        examples=examples,
        body=body,
    )


def _with_examples(
    patterns: tuple[Pattern, ...], examples: tuple[tuple[str, str], ...]
) -> tuple[Pattern, ...]:
    """Each example's question joins the pattern that its answer is worded by."""
    asked: dict[str, list[str]] = {}
    for viewer, host in examples:
        pieces = features(host)
        shares = [
            (max(coverage(features(said), pieces) for said in p.said()), p.key) for p in patterns
        ]
        share, key = max(shares, default=(0.0, ""))
        if share >= SAME_WORDING:
            asked.setdefault(key, []).append(viewer)
    factual = any(p.slots for p in patterns)
    return tuple(
        replace(
            p,
            examples=tuple(asked.get(p.key, ())),
            fallback=factual and bool(_NEGATIVE.search(p.about)),
        )
        for p in patterns
    )


def slots_of(text: str) -> list[str]:
    """The slots of one wording."""
    return _SLOT.findall(text)


def fill(text: str, values: dict[str, str]) -> str:
    """A wording with its slots replaced."""
    return _SLOT.sub(lambda m: values.get(m[1], ""), text)


def ticked(text: str) -> list[str]:
    """The names a text sets in backticks."""
    return _TICKED.findall(text)


def _tools(body: str, names: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for line in body.splitlines():
        for name in names:
            if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line):
                found.setdefault(name, []).append(line.strip(" -*•"))
    return {name: " ".join(lines) for name, lines in found.items()}


def _patterns(body: str, skill: str) -> tuple[Pattern, ...]:
    found: list[Pattern] = []
    key, about, texts = "", "", list[tuple[str, str]]()
    for line in [*body.splitlines(), "- **end**"]:
        head = _PATTERN.match(line)
        variant = _VARIANT.match(line)
        if variant and key:
            texts.append((variant["lang"], variant["text"]))
        elif head:
            if texts:
                found.append(Pattern(key, about, tuple(texts), skill))
            key, about, texts = head["key"].strip(" :："), head["about"].strip(), []
    return tuple(found)
