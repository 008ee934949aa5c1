"""Which tools serve a want, by what the skills and the tools' own definitions say."""

import re

from harness_cli.models.builtin.arguments import takes
from harness_cli.models.builtin.language import OBLIGATION, features
from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.routing import declining
from harness_cli.models.builtin.scene import Offer, Scene
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.situation import asked_for
from harness_cli.models.builtin.skilltext import Guide
from harness_cli.models.builtin.wanting import Want

TOOL_FLOOR = 0.22
"""Without skills, a tool is called from this score on."""
SLOTS_SHARE = 0.5
"""Weight of the share of a pattern's slots that a tool's text names, when tools are ranked."""
TAKES_IT = 0.3
"""Added when a tool asks for just the products a comment names, taken off when it does not."""


def rank_tools(want: Want, guides: list[Guide], scene: Scene, similarity: Similarity) -> Ranking:
    """The tools for one want: what the skills and their own descriptions say of them."""
    named = {n for g in guides for n in g.tools}
    if guides and not named and any(g.patterns for g in guides):
        return Ranking()  # what to say is laid down, and no offered tool is part of it
    offers = [
        t
        for t in scene.tools
        if t is not scene.loader and (not named or t.name in named) and not declining(t)
    ]
    candidates = [Candidate.of(t.name, t.text(), *_lines(t.name, guides)) for t in offers]
    query = asked_for(want.words or want.comment, scene)
    ranking = similarity.rank(query, candidates)
    slots = want.pattern.slots if want.pattern else ()
    given = mentions(want.words or want.comment, scene).said
    scores = {
        t.name: round(
            ranking.by_name.get(t.name, 0.0)
            + SLOTS_SHARE * names_slots(t, guides, slots)
            + (TAKES_IT if takes(t, len(given)) else -TAKES_IT if given else 0.0),
            4,
        )
        for t in offers
    }
    return Ranking.of(scores)


def _lines(tool: str, guides: list[Guide]) -> list[str]:
    return [g.tools[tool] for g in guides if tool in g.tools]


def names_slots(offer: Offer, guides: list[Guide], slots: tuple[str, ...]) -> float:
    """The share of slots whose name a tool's texts hold."""
    if not slots:
        return 0.0
    said = features(" ".join([offer.text(), *_lines(offer.name, guides)]).replace("_", " "))
    told = [features(s.replace("_", " ").replace(".", " ")) for s in slots]
    return sum(any(f in said for f in t if not f.startswith("~")) for t in told) / len(told)


def obliged(want: Want, guides: list[Guide], scene: Scene) -> list[str]:
    """Tools that the skill of a want says must be called whatever is asked."""
    if want.pattern is not None:
        guides = [g for g in guides if g.skill == want.pattern.skill]
    found = [n for g in guides for n, line in sorted(g.tools.items()) if _must(n, line)]
    return [name for name in found if scene.tool(name)]


def _must(tool: str, line: str) -> bool:
    """Whether a skill's line on a tool begins by saying that it is always called."""
    return (
        re.search(rf"{re.escape(tool)}`?\s*[:：]\s*(?:{OBLIGATION})", line, re.IGNORECASE)
        is not None
    )
