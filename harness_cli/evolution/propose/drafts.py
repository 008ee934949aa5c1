"""What a proposer starts from and what it makes: the view of the harness, drafts of edits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness_cli.evolution.failure import Failure, Seen
from harness_cli.evolution.mining import contrast, cover, matches, plain
from harness_cli.evolution.ops import Files
from harness_cli.evolution.text_file import TextFile
from harness_cli.records.diagnosis import Diagnosis, Edit, Op
from harness_cli.records.harness import HarnessState

SUPPORT = 3
"""A phrase must stand in so many failing comments: one odd comment makes no rule."""
PRECISION = 0.75
"""Of the comments that hold a phrase, the share that must want the change."""
PHRASES = 6
"""Phrases an edit may add."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The diagnosed run and the harness it ran on."""

    diagnosis: Diagnosis
    failures: Sequence[Failure]
    seen: Sequence[Seen]
    state: HarnessState
    files: Files = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    """Words of product names, and whole Chinese names: what is sold is not what is asked."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Name of an attribute of the catalogue → its Chinese name."""
    judge: str | None = None
    """The folder below `judges/` whose files these are; None for a host's harness."""
    pipeline: str = "default"
    """The prompt pipeline of the run: another one's constraints bound nothing in it."""

    @property
    def passes(self) -> list[Seen]:
        """The items that passed."""
        return [s for s in self.seen if s.passed]

    def text(self, path: str) -> str | None:
        """A file's text with `\\n` line ends."""
        data = self.files.get(path)
        return None if data is None else TextFile.of(data, name=path).text

    def with_key(self, key: str) -> list[Failure]:
        """The failures that have a fact, where the harness is at fault by it."""
        return [
            f
            for f in self.failures
            if any(o.key == key and o.side == "harness" for o in f.observations)
        ]

    def keys(self, kind: str) -> list[str]:
        """Keys of the harness's own facts of one kind, most frequent first."""
        counts: dict[str, int] = {}
        for failure in self.failures:
            for o in failure.observations:
                if o.kind == kind and o.side == "harness":
                    counts[o.key] = counts.get(o.key, 0) + 1
        return sorted(counts, key=lambda k: (-counts[k], k))

    def classes_of(self, items: Iterable[str]) -> tuple[str, ...]:
        """The clusters that hold any of the items, largest share first."""
        wanted = set(items)
        hit = {c.id: len(wanted & set(c.item_ids)) for c in self.diagnosis.clusters}
        return tuple(sorted((c for c, n in hit.items() if n), key=lambda c: (-hit[c], c)))


def mine(
    ground: Ground, wanting: Sequence[str], others: Iterable[str], *, support: int = SUPPORT
) -> list[str]:
    """Few phrases that mark the comments that want a change against those that do not."""
    texts = sorted({plain(t, ground.names) for t in wanting})  # the same words twice are one case
    rest = {plain(t, ground.names) for t in others}
    found = contrast(texts, rest, min_support=support, min_precision=PRECISION, limit=60)
    return [p.text for p in cover(texts, found, limit=PHRASES)]


def quoted(phrases: Iterable[str]) -> str:
    """Phrases as a rule names them."""
    return ", ".join(f'"{p}"' for p in phrases)


def hit(failures: Iterable[Failure], phrases: Sequence[str]) -> tuple[str, ...]:
    """Items of the failures whose comments hold a phrase."""
    return tuple(f.item_id for f in failures if matches(phrases, f.seen.comment))


def draft(
    ground: Ground,
    *,
    id: str,  # noqa: A002  the record's own word
    module: str,
    ops: Iterable[Op | None],
    rationale: str,
    fixes: Sequence[str],
    at_risk: Sequence[Seen] = (),
    risk: str = "",
) -> Edit | None:
    """An edit, or None when there is nothing to do or nothing it would fix."""
    made = tuple(op for op in ops if op is not None)
    if not made or len(fixes) < SUPPORT:
        return None
    risks = risk
    if at_risk:
        named = ", ".join(s.item_id for s in at_risk[:5]) + (" …" if len(at_risk) > 5 else "")
        risks = f"{len(at_risk)} passing items are worded alike: {named}. {risk}".strip()
    return Edit(
        id=id,
        module=module,
        ops=made,
        rationale=rationale,
        classes=ground.classes_of(fixes),
        predicted_fixes=tuple(sorted(fixes)),
        risks=risks or "no passing item is worded alike",
    )
