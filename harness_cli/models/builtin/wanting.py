"""What viewers want: each part of a comment with the reply patterns nearest to it."""

from dataclasses import dataclass
from functools import lru_cache

from harness_cli.models.builtin.language import clauses, features
from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.routing import declining
from harness_cli.models.builtin.scene import Scene
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.situation import asked_for, happenings, without_products
from harness_cli.models.builtin.skilltext import Guide, Pattern, ticked

WORDED = 0.3
"""Weight of a pattern's own wording beside what it says it is for."""
STAND_INS = 8
"""So many of the nearest patterns are tried once the facts are there."""


@dataclass(frozen=True)
class Want:
    """One thing a viewer asks: the words, and the reply pattern nearest to them."""

    words: str
    comment: str
    pattern: Pattern | None
    ranked: tuple[tuple[str, float], ...] = ()
    """`skill/key` and score of the nearest pattern and of those that may stand in for it."""


def wants(
    scene: Scene, guides: list[Guide], similarity: Similarity, objection: str = ""
) -> list[Want]:
    """What the comments ask, each with the reply pattern nearest to it and to an objection."""
    return list(_asked(scene, tuple(guides), similarity, objection))


@lru_cache(maxsize=256)
def _asked(
    scene: Scene, guides: tuple[Guide, ...], similarity: Similarity, objection: str
) -> tuple[Want, ...]:
    patterns = {
        f"{p.skill}/{p.key}": p
        for g in guides
        for p in (*g.patterns, *_silent(g, scene))
        if not p.fallback
    }
    found: list[Want] = []
    for comment in scene.comments or happenings(scene):
        found += _wanted(comment, scene, patterns, similarity, objection)
    return tuple(found) or (Want("", "", None),)


def _silent(guide: Guide, scene: Scene) -> list[Pattern]:
    """Declining calls that a skill names, as one more way to react, with the examples of them.

    A comment that names a product of the room has a subject: it is answered, if only with a no.
    """
    found = []
    named = any(mentions(c, scene).said for c in scene.comments)
    for name, line in guide.tools.items():
        offer = scene.tool(name)
        if offer is not None and declining(offer) and not named:
            shown = tuple(v for v, h in guide.examples if name in ticked(h))
            found.append(
                Pattern(
                    name, offer.description, (), guide.skill, examples=(line, *shown), tool=name
                )
            )
    return found


def rank_patterns(query: str, patterns: dict[str, Pattern], similarity: Similarity) -> Ranking:
    """Patterns by what they are for, and less by how they are worded."""
    names = sorted(patterns)
    purposes = [Candidate(n, patterns[n].purposes) for n in names]
    wordings = [Candidate(n, patterns[n].said()) for n in names]
    worded = similarity.rank(query, wordings).by_name
    purpose = similarity.rank(query, purposes).by_name
    return Ranking.of({n: round(purpose[n] + WORDED * worded[n], 4) for n in purpose})


def _wanted(
    comment: str,
    scene: Scene,
    patterns: dict[str, Pattern],
    similarity: Similarity,
    objection: str,
) -> list[Want]:
    clear = bool(mentions(comment, scene).said)
    fitting = {n: p for n, p in patterns.items() if not (clear and p.asks_back)} or patterns
    whole = rank_patterns(f"{asked_for(comment, scene)} {objection}", fitting, similarity)
    if whole.best is None:
        return [Want(comment, comment, None)]
    first = Want(comment, comment, fitting[whole.best], _stand_ins(whole))
    parts = [p for p in clauses(comment) if features(without_products(p, scene.goods))]
    if len(parts) < 2:
        return [first]
    ranked = [(p, rank_patterns(asked_for(p, scene), fitting, similarity)) for p in parts]
    top = max(r.top for _, r in ranked)
    kept: dict[str, Want] = {}
    for part, ranking in ranked:
        if ranking.best and ranking.top >= 0.6 * top and ranking.margin() >= 0.03:
            want = Want(part, comment, fitting[ranking.best], _stand_ins(ranking))
            kept.setdefault(ranking.best, want)
    return list(kept.values()) or [first]


def _stand_ins(ranking: Ranking) -> tuple[tuple[str, float], ...]:
    return ranking.scores[:STAND_INS]
