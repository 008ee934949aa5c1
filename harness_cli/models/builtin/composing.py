"""Replies: the loaded skill's patterns, their slots filled from tool results, or plain facts."""

import random
import re
from dataclasses import dataclass, field
from typing import Any

from harness_cli.models.builtin.language import features, is_chinese, sentences
from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.objections import Demand, fit, language_wanted, limit_of, plainly
from harness_cli.models.builtin.scene import Answer, Scene, Turn
from harness_cli.models.builtin.similarity import Candidate, Similarity, coverage
from harness_cli.models.builtin.situation import (
    UNCLEAR,
    asked_before,
    asked_for,
    lost,
    without_products,
)
from harness_cli.models.builtin.skilltext import Guide, Pattern, fill, slots_of
from harness_cli.models.builtin.slots import Facts, row_text, rows
from harness_cli.models.builtin.wanting import Want, rank_patterns

FILLED = 1.0
"""Weight of the words that a filled sentence shares with the question."""
STAND_IN = 0.8
"""A pattern stands in for the nearest one, which lacks a fact, from this share of its score on."""
INSIDE = 0.3
"""Taken off when a slot was found only inside a part of a result: it may speak of another thing."""
SHARED = 0.95
"""Or when the filled sentence shares this weight of words with the question: one whole word."""
MAX_PRODUCTS = 3
"""One reply speaks of at most so many products by the same pattern."""
UNKNOWN = (
    "the information is not known, not listed, not found, do not have it 没有这个信息 查不到 不清楚"
)
"""The policy's own state when no pattern can be filled: patterns are compared with it."""

UNKNOWN_TRIED = 2
"""Only the patterns nearest to not knowing may say it."""

_PLAIN_UNKNOWN = {
    "en": "I don't have that information right now.",
    "zh": "这个信息我这边暂时没有。",
}


@dataclass
class Composer:
    """Everything one reply is made from."""

    scene: Scene
    turn: Turn
    guides: list[Guide]
    similarity: Similarity
    demand: Demand
    seed: int = 0
    _facts: dict[tuple[str, str], list[Facts]] = field(default_factory=dict)

    def reply(self, wanted: list[Want]) -> str:
        """The reply to all wants, in the viewers' languages, within the stated length."""
        language = self.language(wanted[0].comment)
        parts: list[str] = []
        for want in wanted:
            said = self.answer(want)
            parts += [s for s in said if s and s not in parts]
        if not parts:
            parts = [self.unknown(wanted[0])]
        return self.finish(parts, language)

    def language(self, comment: str) -> str:
        """The language to answer a comment in."""
        return language_wanted(comment, self.turn, self.scene.comments)

    def finish(self, parts: list[str], language: str) -> str:
        """Parts joined, without what was objected to and within the length."""
        kept = [p for p in parts if not any(a in p for a in self.demand.avoid)]
        if not kept:
            kept = self._without(parts)
        limit = self.demand.limit or limit_of(self.scene.system, language)
        if self.demand.shorter and not self.demand.limit:
            kept = kept[:1]
        kept = fit(kept, limit, language)
        text = ("" if language == "zh" else " ").join(kept)
        if self.demand.plain:
            text = plainly(text)
        if self.demand.any and text in self.turn.drafts:
            first = sentences(text)[:1]
            text = first[0] if first and first[0] not in self.turn.drafts else text
        return text.strip()

    def _without(self, parts: list[str]) -> list[str]:
        """What is left when the sentences that were objected to are gone."""
        spoken = [s for p in parts for s in re.split(r"(?<=[.!?。！？])\s*", p) if s]
        return [s for s in spoken if not any(a in s for a in self.demand.avoid)] or parts[:1]

    def answer(self, want: Want) -> list[str]:
        """The sentences for one want."""
        language = self.language(want.comment)
        back = self._question_back(want, language)
        best = back or self._best(want, language)
        if best:
            return best
        configured = asked_before(want.comment, self.scene, self.similarity)
        if configured:
            return [configured[1]]
        facts = self.facts(want)
        if want.ranked or not facts:
            return [self.unknown(want)] if self.guides else []
        told = [plain_facts(f, language) for f in facts[:MAX_PRODUCTS]]
        return [t for t in told if t] or [self.unknown(want)]

    def _question_back(self, want: Want, language: str) -> list[str]:
        """The nearest question back, when a comment leaves open which product it means."""
        if not lost(want.comment, self.scene):
            return []
        asking = {f"{p.skill}/{p.key}": p for g in self.guides for p in g.patterns if p.asks_back}
        if not asking:
            return []
        query = f"{asked_for(want.words, self.scene)} which product or link is meant"
        best = rank_patterns(query, asking, self.similarity).best
        return self.said(asking[best], want, language) if best else []

    def _best(self, want: Want, language: str) -> list[str]:
        """The pattern that can be filled and, filled, is nearest to what was asked.

        One that is neither the nearest nor shares a word with the question once it is filled does
        not stand in: then the honest answer is that the fact is missing.
        """
        found: list[tuple[float, int, list[str]]] = []
        asked = features(asked_for(want.words, self.scene))
        top = want.ranked[0][1] if want.ranked else 0.0
        for place, (name, score) in enumerate(want.ranked):
            pattern = self.pattern(name)
            said = self.said(pattern, want, language) if pattern else []
            if not said:
                continue
            told = without_products(" ".join(said), self.scene.goods)
            shared = coverage(asked, features(told)) if pattern and pattern.slots else 0.0
            if pattern and pattern.slots and not self.outright(pattern, want, language):
                score -= INSIDE
            if top <= 0 or score >= STAND_IN * top or shared * sum(asked.values()) >= SHARED:
                found.append((round(score + FILLED * shared, 4), -place, said))
        return max(found)[2] if found else []

    def outright(self, pattern: Pattern | None, want: Want, language: str) -> bool:
        """Whether a pattern is filled from fields of a result itself, not of something in it."""
        wordings = pattern.wordings(language) if pattern else ()
        return any(f.outright(w) for w in wordings for f in self.facts(want))

    def pattern(self, name: str) -> Pattern | None:
        """The pattern of that `skill/key`."""
        return next(
            (p for g in self.guides for p in g.patterns if f"{p.skill}/{p.key}" == name), None
        )

    def said(self, pattern: Pattern, want: Want, language: str) -> list[str]:
        """A pattern's sentences with every slot filled; none when a slot has no value."""
        wordings = list(pattern.wordings(language))
        random.Random(f"{self.seed}{want.comment}").shuffle(wordings)
        for wording in wordings:
            if not slots_of(wording):
                return [wording]
            filled = self._filled(wording, want)
            if filled:
                return filled
        return []

    def _filled(self, wording: str, want: Want) -> list[str]:
        found: list[str] = []
        for facts in self.facts(want):
            values = facts.values(wording)
            if values is not None:
                found.append(fill(wording, values))
                continue
            for row in self._asked_rows(facts)[:MAX_PRODUCTS]:
                inner = Facts(row, facts.asked, self.similarity, facts.language).values(wording)
                if inner is not None:
                    found.append(fill(wording, inner))
        return list(dict.fromkeys(found))[:MAX_PRODUCTS] or self._together(wording, want)

    def _asked_rows(self, facts: Facts) -> list[dict[str, Any]]:
        """The rows of a result that share a word with the question."""
        asked = features(facts.asked)
        return [r for r in rows(facts.data) if coverage(asked, features(row_text(r))) > 0]

    def _together(self, wording: str, want: Want) -> list[str]:
        """One sentence from several results, when no single one has every slot."""
        facts = self.facts(want)
        whole: dict[str, Any] = {}
        for one in reversed(facts):
            whole.update(one.data)
        merged = Facts(whole, want.words, self.similarity, self.language(want.comment))
        values = merged.values(wording) if len(facts) > 1 else None
        return [fill(wording, values)] if values is not None else []

    def facts(self, want: Want) -> list[Facts]:
        """The results that speak of a want's products (all results when it names none)."""
        key = want.words, want.comment
        if key not in self._facts:
            self._facts[key] = self._speaking(want)
        return self._facts[key]

    def _speaking(self, want: Want) -> list[Facts]:
        language = self.language(want.comment)
        meant = mentions(want.comment, self.scene)
        good = [a for a in self.turn.answers if not a.failed and isinstance(a.data, dict)]
        ours = [a for a in good if _about(a, meant.numbers)]
        if meant.said:
            general = [a for a in good if not any(self._is_product(n) for n in _numbers(a))]
        else:
            general = [a for a in good if a not in ours]
        configured = asked_before(want.comment, self.scene, self.similarity)
        found = [Facts(a.data, want.words, self.similarity, language) for a in [*ours, *general]]
        if configured:
            entry = {"question": configured[0], "answer": configured[1]}
            found.append(Facts(entry, want.words, self.similarity, language))
        if not found and len(meant.numbers) == 1:
            listed = self._listed(meant.numbers[0])
            found.append(Facts(listed, want.words, self.similarity, language))
        return found

    def _is_product(self, number: int) -> bool:
        return self.scene.goods.numbered(number) is not None

    def _listed(self, number: int) -> dict[str, Any]:
        """What the prompt itself says of a product: its names, under the usual field names."""
        product = self.scene.goods.numbered(number)
        names = product.names if product else ()
        english = next((n for n in names if not is_chinese(n)), None)
        chinese = next((n for n in names if is_chinese(n)), english)
        return {"name": english or chinese, "zh_name": chinese}

    def unknown(self, want: Want) -> str:
        """The skill's own words for not knowing (or not knowing which), or plain ones."""
        language = self.language(want.comment)
        every = {f"{p.skill}/{p.key}": p for g in self.guides for p in g.patterns}
        patterns = {n: p for n, p in every.items() if p.fallback} or every
        open_product = not mentions(want.comment, self.scene).numbers
        state = UNCLEAR if open_product and self.scene.goods.products else UNKNOWN
        ranking = rank_patterns(state, patterns, self.similarity)
        for name, _ in ranking.scores[:UNKNOWN_TRIED]:
            said = self.said(patterns[name], want, language)
            if said:
                return said[0]
        return _PLAIN_UNKNOWN[language]


def plain_facts(facts: Facts, language: str) -> str:
    """The two or three fields of a result nearest to what was asked, in a plain sentence."""
    fields = [
        (key, value)
        for key, value in facts.data.items()
        if not isinstance(value, dict | list | bool) and value not in (None, "")
    ]
    if language == "zh":
        fields = [
            f for f in fields if is_chinese(str(f[1])) or isinstance(f[1], int | float)
        ] or fields
    else:
        fields = [f for f in fields if not is_chinese(str(f[1]))] or fields
    name = next((str(v) for k, v in fields if k.endswith("name")), "")
    candidates = [
        Candidate(k, (k.replace("_", " "), f"{k.replace('_', ' ')} {v}"))
        for k, v in fields
        if not k.endswith(("name", "id"))
    ]
    chosen = [n for n, _ in facts.similarity.rank(facts.asked, candidates).scores[:2]]
    told = [f"{n.replace('_', ' ')} {facts.text(n)}" for n in chosen]
    if not told:
        return ""
    if language == "zh":
        return f"{name}：{'，'.join(told)}。"
    return f"{name}: {', '.join(told)}." if name else f"{', '.join(told)}."


def _numbers(answer: Answer) -> list[int]:
    found: list[int] = []
    for value in answer.arguments.values():
        values = value if isinstance(value, list) else [value]
        for one in values:
            inner = one.values() if isinstance(one, dict) else [one]
            found += [v for v in inner if isinstance(v, int) and not isinstance(v, bool)]
    return found


def _about(answer: Answer, numbers: tuple[int, ...]) -> bool:
    return any(n in numbers for n in _numbers(answer))
