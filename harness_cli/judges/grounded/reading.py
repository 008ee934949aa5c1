"""One reply under judgement: its clauses, the products it names, its evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from harness_cli.judges.grounded.evidence import Evidence
from harness_cli.judges.grounded.focus import Mention, Resolver, item_focus, spoken_of
from harness_cli.judges.grounded.language import Clause, clauses, fold, phrases
from harness_cli.judges.grounded.lexicon import Use, lexicon
from harness_cli.judges.grounded.money import Money, money
from harness_cli.judges.grounded.quantities import Quantity, quantities
from harness_cli.judges.grounded.world import Card, Source, World
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import Finding

MAX_FINDINGS = 50
"""A reply with more faults than these is no better known by the rest."""
UNCERTAIN = phrases(
    r"""
    \bwhether\b|(?:don't|do not|doesn't) (?:have|know|say|see|list)|not (?:sure|certain|listed
    specified)|no (?:information|info|data|details?|record)|can't (?:confirm|say|tell|promise
    guarantee)|cannot (?:confirm|say|tell|promise|guarantee)|unable to (?:confirm|say)
    isn't (?:listed|specified)|(?:won't|wouldn't|not going to|never|not able to|shouldn't
    don't) (?:promise|guarantee|claim|say)|是否|是不是|有没有|能不能|会不会|不清楚|不知道
    不确定|没有(?:相关|这方面|找到|查到|写|标|说明)|没(?:有)?(?:标|写|查到)|不能保证|无法保证
    没法保证|不敢保证|不(?:能)?承诺|无法承诺|不好说|无法确认|没法确认|查不到
    """
)
_ECHO = phrases(
    r"""
    ^\s*(?:you (?:asked|said|mentioned|want(?:ed)?)|as you (?:said|asked)|if you|(?:您
    你)(?:问|说|提到|想问))
    """
)


@dataclass
class Reading:
    """Everything the checks look at."""

    item: Item
    trajectory: Trajectory
    world: World
    resolver: Resolver
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def folded(self) -> str:
        """The reply with every character in its place, lower case and half width."""
        return fold(self.trajectory.reply)

    @cached_property
    def clauses(self) -> list[Clause]:
        """The clauses of the reply."""
        return clauses(self.folded)

    @cached_property
    def mentions(self) -> list[Mention]:
        """Products and links that the reply names."""
        return self.resolver.mentions(self.folded)

    @cached_property
    def focus(self) -> tuple[str, ...]:
        """The products that the item is about."""
        return item_focus(self.item, self.trajectory, self.resolver)

    @cached_property
    def evidence(self) -> Evidence:
        """Tool results and request texts."""
        return Evidence(self.item, self.trajectory, self.world, self.resolver.products)

    @cached_property
    def uses(self) -> list[list[Use]]:
        """Words of the lexicon, a list a clause."""
        return [list(lexicon().uses(clause)) for clause in self.clauses]

    @cached_property
    def sums(self) -> list[list[Money]]:
        """Sums of money, a list a clause."""
        return [money(clause) for clause in self.clauses]

    @cached_property
    def measures(self) -> list[list[Quantity]]:
        """Numbers with a unit, a list a clause."""
        return [quantities(clause.text, clause.start) for clause in self.clauses]

    @cached_property
    def asserting(self) -> list[bool]:
        """Whether each clause claims what it says: it neither asks, doubts, nor repeats."""
        return [
            not (c.question or UNCERTAIN.search(c.text) or _ECHO.match(c.text))
            for c in self.clauses
        ]

    @property
    def room(self) -> str:
        """The id of the room."""
        return self.item.request.room.id

    @cached_property
    def _starts(self) -> dict[int, int]:
        starts: dict[int, int] = {}
        for clause in self.clauses:
            starts.setdefault(clause.sentence, clause.start)
        return starts

    def products_at(self, at: int, clause: Clause) -> tuple[str, ...]:
        """The product(s) that what stands at `at` is about; the item's own when none is named."""
        named = spoken_of(at, clause, self.mentions, self._starts[clause.sentence])
        return named if named is not None else self.focus

    def cards_at(self, at: int, clause: Clause) -> list[Card]:
        """Their cards."""
        found = [self.world.cards.get(p) for p in self.products_at(at, clause)]
        return [c for c in found if c is not None]

    def asserts(self, clause: Clause) -> bool:
        """Whether a clause claims what it says."""
        return self.asserting[clause.position]

    def claims(self) -> Iterator[tuple[int, Clause]]:
        """Clauses that claim something, with their position."""
        for position, clause in enumerate(self.clauses):
            if self.asserting[position]:
                yield position, clause

    def general_texts(self) -> list[Source]:
        """Shop FAQ, policies and running promotions."""
        return [
            *self.world.shop,
            *self.world.policies.values(),
            *self.world.promotion_texts.values(),
        ]

    def find(self, kind: str, detail: str, start: int, end: int, evidence: str = "") -> None:
        """Note a finding; the quote is the words of the reply as they were written."""
        quote = self.trajectory.reply[start:end].strip()
        finding = Finding(kind=kind, detail=detail, quote=quote, evidence=evidence)
        if len(self.findings) < MAX_FINDINGS and finding not in self.findings:
            self.findings.append(finding)


def shown(values: Sequence[float] | frozenset[float]) -> str:
    """Numbers for a finding, short."""
    return ", ".join(f"{v:g}" for v in sorted(values)[:6]) or "none"
