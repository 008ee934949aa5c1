"""Words for properties that a reply may claim: `lexicon.txt`, as one pattern."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from harness_cli.judges.grounded.language import Clause, phrases, terms_pattern

FILE = Path(__file__).with_name("lexicon.txt")


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a concept in a clause."""

    kind: str
    """Its class: property, group, material, colour, place."""
    concept: str
    positive: bool
    start: int
    end: int


class Lexicon:
    """All concepts, found in a clause by one pattern."""

    def __init__(self, text: str) -> None:
        self.generic: frozenset[str] = frozenset()
        self._owners: dict[str, list[tuple[str, str]]] = {}
        kind = ""
        for line in text.replace("\n    ", " ").splitlines():
            if line.startswith("["):
                kind = line.strip("[] ")
            elif line and not line.startswith("#"):
                name, _, terms = line.partition(":")
                parts = [t.strip() for t in terms.replace(" | ", ";").split(";") if t.strip()]
                self._add(kind, name, parts)
        self._pattern = terms_pattern(list(self._owners))
        self._within = lru_cache(maxsize=8192)(self._found)
        self._stems = sorted((t[:-1] for t in self._owners if t.endswith("*")), key=len)

    def _add(self, kind: str, name: str, terms: list[str]) -> None:
        if kind == "generic":
            self.generic = frozenset(terms)
            return
        for term in terms:
            self._owners.setdefault(term, []).append((kind, name))

    def uses(self, clause: Clause) -> Iterator[Use]:
        """Every use in a clause, with its polarity; places are those of the whole text."""
        for use in self._within(clause.text):
            start, end = clause.start + use.start, clause.start + use.end
            yield Use(use.kind, use.concept, use.positive, start, end)

    def _found(self, text: str) -> tuple[Use, ...]:
        """The uses in a text, their places those of the text itself."""
        found = []
        for match in self._pattern.finditer(text):
            negative = _NEGATED.search(text, max(0, match.start() - 24), match.start())
            negative = negative or _NEGATED_AFTER.match(text, match.end())
            for kind, concept in self._named(match.group()):
                found.append(Use(kind, concept, negative is None, match.start(), match.end()))
        return tuple(found)

    def _named(self, found: str) -> list[tuple[str, str]]:
        """The owners of what was found: the term, its singular, or the stem it goes on from."""
        for term in (found, found[:-1], found[:-2]):
            if term in self._owners:
                return self._owners[term]
        stem = next((s for s in reversed(self._stems) if found.startswith(s)), None)
        return self._owners[stem + "*"] if stem else []


@cache
def lexicon() -> Lexicon:
    """The shipped lexicon, read once."""
    return Lexicon(FILE.read_text(encoding="utf-8"))


_NEGATED = phrases(
    r"""
    (?:\b(?:not|no|isn't|aren't|doesn't|don't|won't|can't|cannot|never|without|neither|nor|non
    avoid|wasn't)\b[^,.]{0,18}|(?:不|没有?|无|非|别|勿|禁止|避免|切勿)[^，。]{0,5})$
    """
)
_NEGATED_AFTER = phrases(
    r"""
    \s*(?:: no\b|is not|isn't|not (?:supported|allowed|included|recommended)|不行|不可以|不能
    不支持|不建议|会(?:跑|变|坏|缩|掉|伤|损))
    """
)

ASSURED = phrases(
    r"""
    \b(?:safe|fine|ok|okay|suitable|suits?|good|great|perfect|can use|can eat|can wear|gentle
    ideal|works? (?:well )?for|made for|designed for|no problem|worry)\b|可以|能用|能吃|放心
    适合|安全|没问题|可用|都能|专为|友好|不刺激
    """
)
"""What turns a word for a group of people into the claim that the product suits them."""
ADVICE = phrases(
    r"""
    \b(?:ask|consult|check with|talk to|doctor|patch test|physician|pediatrician)\b|医生|咨询
    先问|测试|试用
    """
)
MADE_OF = phrases(
    r"""
    \b(?:made (?:of|from|with)|material|fabric|pure|100%)\b|材质|面料|材料|做的|制成|纯
    """
)
