"""Which tools serve a want, by what the skills and the tools' own definitions say."""

import re
from dataclasses import replace

from harness_cli.models.builtin.arguments import fill, needs_product, takes
from harness_cli.models.builtin.language import OBLIGATION, THAT, THIS, features
from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.routing import declining
from harness_cli.models.builtin.scene import Offer, Scene
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.situation import asked_for, lost
from harness_cli.models.builtin.skilltext import Guide
from harness_cli.models.builtin.wanting import Want

TOOL_FLOOR = 0.22
"""Without skills, a tool is called from this score on."""
SLOTS_SHARE = 0.5
"""Weight of the share of a pattern's slots that a tool's text names, when tools are ranked."""
TAKES_IT = 0.3
"""Added when a tool asks for just the products a comment names, taken off when it does not."""
ABOUT_AS_NEAR = 0.85
"""A tool with this share of another's score is about as near."""
AT_ONCE = 0.5
"""Where there is one round to act, a second tool is asked too from this share of the first's score
on."""
_SHOWS = re.compile(
    r"\b(?:show|present|put|move|switch|chang)\w*\b[^.;]{0,60}\b(?:screen|link|room|viewers?)\b"
    r"|展示|调整|切换",
    re.IGNORECASE,
)
"""A tool that changes what viewers see."""


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


def as_asked(
    tools: list[str],
    ranking: Ranking,
    want: Want,
    guides: list[Guide],
    scene: Scene,
    similarity: Similarity,
) -> list[str]:
    """Tools to try next, by falling rank; of those about as near as the first, the one that the
    comment speaks of.

    For when the tool asked before did not fill the nearest pattern but another: the nearest may be
    the wrong one, and what tools have in common with its slots does not tell them apart.
    """
    if len(tools) < 2:
        return tools
    floor = ABOUT_AS_NEAR * ranking.by_name[tools[0]]
    asked = rank_tools(replace(want, pattern=None), guides, scene, similarity)
    alike = [n for n, _ in asked.scores if n in tools and ranking.by_name[n] >= floor]
    return [*alike, *(n for n in tools if n not in alike)]


def at_once(want: Want, scene: Scene, similarity: Similarity) -> list[Offer]:
    """The tools for a want before any skill is read: the nearest by its own definition, and the
    next that looks something up. One that changes what viewers see takes a comment that names the
    product: no skill was read yet that could say whether the viewer asks for that.
    """
    if lost(want.comment, scene):
        return []
    ranking = rank_tools(want, [], scene, similarity)
    if ranking.top < TOOL_FLOOR:  # none is near: those are that ask for what is pointed at
        ranking = Ranking.of({n: s for n, s in ranking.scores if n in _taking(want, scene)})
    floor = AT_ONCE * ranking.top
    named = (t for n, s in ranking.scores if s >= floor and (t := scene.tool(n)))
    named_one = bool(mentions(want.comment, scene).said)
    may = (t for t in named if named_one or looks_up(t))
    near = [t for t in may if not fill(t, want.comment, scene, similarity).missing]
    return [*near[:1], *[t for t in near[1:] if looks_up(t)][:1]]


def looks_up(offer: Offer) -> bool:
    """Whether a call changes nothing that viewers see."""
    return _SHOWS.search(offer.description) is None


def _taking(want: Want, scene: Scene) -> set[str]:
    """The tools that ask for just the products a comment names or points at."""
    meant = mentions(want.comment, scene)
    points = meant.said or THIS.search(want.comment) or THAT.search(want.comment)
    return {t.name for t in scene.tools if points and takes(t, len(meant.numbers))}


def left_open(want: Want, guides: list[Guide], scene: Scene, similarity: Similarity) -> bool:
    """Whether the nearest tool asks for a product and nothing says which one is meant."""
    if mentions(want.comment, scene).numbers or not scene.goods.products:
        return False
    nearest = scene.tool(rank_tools(want, guides, scene, similarity).best or "")
    return nearest is not None and needs_product(nearest)


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
