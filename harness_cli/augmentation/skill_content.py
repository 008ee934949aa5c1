"""Dimension 2 (TR §3.2): what stands inside a skill, in other words, another order, with less.

Moves: `paraphrase`, `mask` (of rules that are not essential, see `rules`), `reorder` (entries and
sections), `layout` (headings, bullets). Reply patterns and examples keep every word: a gold reply
follows them.
"""

from dataclasses import replace
from functools import lru_cache
from random import Random

from harness_cli.augmentation.draft import Draft, allowed
from harness_cli.augmentation.masking import FILE, FOLDER, skill_names
from harness_cli.augmentation.reworded import reworded
from harness_cli.augmentation.rules import essential
from harness_cli.augmentation.skill_text import (
    Part,
    entries,
    folded,
    fronted,
    joined,
    mark_of,
    parts,
    with_entries,
)
from harness_cli.augmentation.speech import unfolded
from harness_cli.augmentation.tables import phrases
from harness_cli.records.augmentation import Dimension

MASKED = 0.5
"""Times the strength, the chance of one rule that may go to be left out (**choice**)."""
FIXED = ("reply patterns", "examples")
"""Sections whose words stay."""


def vary(draft: Draft, draw: Random, dimension: Dimension) -> Draft:
    """The draft with other skill content."""
    names = known_names(draft)
    changed: dict[str, str | None] = {}
    counts: dict[str, int] = {}
    for name in skill_names(draft):
        path = f"{FOLDER}{name}{FILE}"
        front, body = fronted(draft.text(path))
        found = list(parts(body, "##"))
        made = [_Section(draft, part, draw, dimension, names, counts).made() for part in found]
        masked = counts.pop("masked now", 0)
        if masked:
            rules = {**draft.map.masked_rules, name: masked}
            draft = draft.mapped(masked_rules=rules)
        made = _sections(made, draw, dimension, counts)
        text = front + "\n" + joined(made)
        if text != front + body:
            changed[path] = text
    return draft.written(changed).counted(**counts)


def known_names(draft: Draft) -> frozenset[str]:
    """Names of skills and tools, less those that are ordinary words."""
    tools = (p for p in draft.files if p.startswith("tools/") and p.endswith(".yaml"))
    found = {*skill_names(draft), *(p[6:-5] for p in tools)}
    return frozenset(n for n in found if "-" in n or "_" in n)


def kind_of(part: Part) -> str:
    """Which of the known sections a part is, whatever its heading says; else its own title."""
    return _kind(part.title)


@lru_cache(maxsize=1024)
def _kind(title: str) -> str:
    for kind, titles in phrases().headings.items():
        if title in titles:
            return kind
    return title.lower()


@lru_cache(maxsize=1024)
def ordered(listed: tuple[str, ...]) -> bool:
    """A list whose entries refer to one another, or are numbered, keeps its order."""
    words = tuple(phrases().order_words)
    texts = [unfolded(entry[len(mark_of(entry)) :]).lower() for entry in listed]
    numbered = any(mark_of(entry)[:1].isdigit() for entry in listed)
    return numbered or any(text.startswith(words) for text in texts)


class _Section:
    """One section on its way."""

    def __init__(
        self,
        draft: Draft,
        part: Part,
        draw: Random,
        dimension: Dimension,
        names: frozenset[str],
        counts: dict[str, int],
    ) -> None:
        self.draft, self.part, self.draw, self.dimension = draft, part, draw, dimension
        self.names, self.counts = names, counts
        self.kind = kind_of(part)

    def made(self) -> Part:
        """The section with its entries masked, reworded and in another order."""
        before, listed, behind = entries(self.part)
        if not listed:
            return self._examples() if self.kind == "examples" else self.part
        made = list(listed)
        if self.kind == "rules" and allowed(self.dimension, "mask"):
            made = [e for e in made if not self._gone(e)]
        if self.kind not in FIXED and allowed(self.dimension, "paraphrase"):
            made = [self._reworded(e) for e in made]
        if self._shuffles() and not ordered(listed):
            made = shuffled(made, self.draw)
            self._count("reorder")
        return with_entries(self.part, before, made, behind)

    def _examples(self) -> Part:
        """Paragraphs in another order."""
        kept = "\n".join(self.part.lines).strip("\n").split("\n\n")
        if not self._shuffles() or len(kept) < 2:
            return self.part
        self._count("reorder")
        lines = "\n\n".join(shuffled(kept, self.draw)).split("\n")
        return replace(self.part, lines=("", *lines, ""))

    def _shuffles(self) -> bool:
        return allowed(self.dimension, "reorder") and self._happens(1.0)

    def _gone(self, entry: str) -> bool:
        gone = self._happens(MASKED) and not essential(unfolded(entry), self.names)
        if gone:
            self._count("mask")
            self._count("masked now")
        return gone

    def _reworded(self, entry: str) -> str:
        mark = mark_of(entry)
        if "\n  - " in entry or "\n  * " in entry:
            return entry
        old = unfolded(entry[len(mark) :])
        new = reworded(self.draft, old, self.draw, self.dimension.strength)
        if new == old:
            return entry
        self._count("paraphrase")
        return folded(new, mark)

    def _happens(self, share: float) -> bool:
        return self.draw.random() < self.dimension.strength * share

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


def shuffled(listed: list[str], draw: Random) -> list[str]:
    """The same entries in an order of their own."""
    made = list(listed)
    draw.shuffle(made)
    return made


def _sections(
    made: list[Part], draw: Random, dimension: Dimension, counts: dict[str, int]
) -> list[Part]:
    """Sections in another order, under other headings, with another bullet."""
    head, rest = made[:1], made[1:]
    if allowed(dimension, "reorder") and draw.random() < dimension.strength and len(rest) > 1:
        draw.shuffle(rest)
        counts["reorder"] = counts.get("reorder", 0) + 1
    if allowed(dimension, "layout"):
        bullet = draw.choice(phrases().bullets)
        rest = [_laid_out(part, draw, dimension.strength, bullet, counts) for part in rest]
    return head + rest


def _laid_out(part: Part, draw: Random, chance: float, bullet: str, counts: dict[str, int]) -> Part:
    titles = phrases().headings.get(kind_of(part))
    heading = part.heading
    if titles and draw.random() < chance:
        heading = f"## {draw.choice(titles)}"
    lines = tuple(_bulleted(line, bullet) for line in part.lines)
    made = replace(part, heading=heading, lines=lines)
    counts["layout"] = counts.get("layout", 0) + (made != part)
    return made


def _bulleted(line: str, bullet: str) -> str:
    stripped = line.lstrip(" ")
    if not stripped.startswith(("- ", "* ")):
        return line
    return " " * (len(line) - len(stripped)) + bullet + stripped[1:]
