"""Which candidates a situation speaks of: those with its cue's words, or that mean it in others.

A cue is a list of words. A description that has most of them, and more than any other, speaks of
the situation outright, and the words decide. Where none does, words shared by chance ("link",
"product") would decide: then the cue speaks only of descriptions that name the situation in some
other way, of none if none does.
"""

import re
from collections.abc import Container, Mapping, Sequence

from harness_cli.models.builtin.scene import Scene
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.situation import CLEAR, CONFIGURED, SEVERAL, TALK, UNCLEAR

OUTRIGHT, AHEAD = 0.5, 1.5
"""A description with this share of a cue's words, so many times that of any other, speaks of its
situation outright."""
CLEAR_CASE = 0.4
"""A skill is for asking back when the words for not knowing speak of it this far."""
IN_OTHER_WORDS = 0.6
"""The share that counts for one that names the situation in other words."""

_OTHER_WORDS = {
    UNCLEAR: re.compile(
        r"\bask\w*\b[^.:;。；]{0,40}\bback\b|\bquestions? back\b|\bclarif\w+|\bfollow-up question"
        r"|反问|追问|问清",
        re.IGNORECASE,
    ),
    CLEAR: re.compile(
        r"\bquestions? (?:about|on|of) (?:a|an|one|any|the|each) (?:\w+ )?(?:product|item|link)\b"
        r"|\b(?:product|item) (?:questions?|q&a)\b|商品(?:问|咨询)",
        re.IGNORECASE,
    ),
    SEVERAL: re.compile(
        r"\b(?:several|many|multiple)\b[^.:;。；]{0,20}\bcomments?\b|多条(?:弹幕|评论)",
        re.IGNORECASE,
    ),
    CONFIGURED: re.compile(
        r"\bfaqs?\b|\bfrequent\w*\b[^.:;。；]{0,12}\bquestions?\b|常见问题", re.IGNORECASE
    ),
    TALK: re.compile(
        r"\b(?:casual|small|light|idle) talk\b|\bchit-?chat\b|\bbanter\b|闲聊", re.IGNORECASE
    ),
}
"""How else a description says that it is for a situation; other cues go by their words alone."""


def shares(
    cue: str, candidates: Sequence[Candidate], similarity: Similarity
) -> Mapping[str, float]:
    """How far a cue speaks of each candidate, between 0 and 1."""
    others = _OTHER_WORDS.get(cue)
    if others is None or told_outright(cue, candidates, similarity):
        return similarity.rank_wording(cue, candidates).by_name
    named = {c.name for c in candidates if any(others.search(p) for p in c.phrases)}
    return {c.name: IN_OTHER_WORDS if c.name in named else 0.0 for c in candidates}


def told_outright(cue: str, candidates: Sequence[Candidate], similarity: Similarity) -> bool:
    """Whether one description has most of a cue's words, and more than any other."""
    first, *rest = [*(s for _, s in similarity.rank_wording(cue, candidates).scores), 0.0]
    return first >= OUTRIGHT and first >= AHEAD * max(rest, default=0.0)


def plain(scene: Scene, similarity: Similarity) -> bool:
    """Whether some skill's description says outright that it is for asking back."""
    return told_outright(UNCLEAR, _candidates(scene), similarity)


def asker(scene: Scene, similarity: Similarity, but: Container[str]) -> str | None:
    """The skill for asking back, unless it is one of those."""
    ranking = Ranking.of(dict(shares(UNCLEAR, _candidates(scene), similarity)))
    return ranking.best if ranking.top >= CLEAR_CASE and ranking.best not in but else None


def talker(scene: Scene, similarity: Similarity) -> str | None:
    """The skill for talk about nothing that is sold, if a description is for that."""
    ranking = Ranking.of(dict(shares(TALK, _candidates(scene), similarity)))
    return ranking.best if ranking.top >= CLEAR_CASE else None


def _candidates(scene: Scene) -> list[Candidate]:
    return [Candidate.of(n, t) for n, t in scene.skills.items()]
