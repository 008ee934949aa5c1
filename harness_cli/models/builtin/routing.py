"""Which skills to load, by nearness to what the harness says of them."""

import re
from functools import lru_cache

from harness_cli.models.builtin.language import PERSONAL, clauses
from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.roles import plain, shares, talker
from harness_cli.models.builtin.scene import Offer, Scene
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.situation import asked_for, cues, happenings, lost
from harness_cli.models.builtin.skilltext import Guide, ticked

SECOND_SKILL = 0.85
"""Another clause's skill is loaded too when its score reaches this share of the first one's."""
BESIDE = 1.1
"""A skill of a kind that does not reply is loaded too when it leads the repliers by this factor."""
LOST_SHARE = 0.4
"""What a comment that leaves its product open counts for beside that situation."""
DOUBT = 0.8
"""Where descriptions tell a situation in other words than its cue, a second skill is read from this
share of the first one's score on,"""
DOUBTED = 0.25, 1.0
"""when that lies between these: above it is certain, below the second is as far off as it."""
REROUTE = 0.3
"""A loaded skill's "do not use" line must be so much nearer to the comment than its uses."""

_REPLYING = re.compile(r"repl(?:y|ies)|respon|answer|回复", re.IGNORECASE)
_DECLINES = re.compile(
    r"refus|declin|reject|no (?:public )?reply|not reply|stay silent|拒绝|婉拒|不予回复|不回复",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)
def declining(offer: Offer) -> bool:
    """Whether a tool's description says that calling it declines."""
    return _DECLINES.search(offer.description) is not None


def route(scene: Scene, similarity: Similarity, without: frozenset[str] = frozenset()) -> list[str]:
    """The skills to load, the nearest first; at most one a comment's clause."""
    candidates = [Candidate.of(n, t) for n, t in scene.skills.items() if n not in without]
    chosen: dict[str, float] = {}
    doubted: list[str] = []
    outright = plain(scene, similarity)
    for comment in scene.comments or happenings(scene):
        whole = _with_cues(comment, scene, similarity, candidates)
        if whole.best is None:
            continue
        talk = [] if outright else _talk(comment, whole, scene, similarity)
        for name in talk or _leaders(whole, scene):
            chosen[name] = max(whole.by_name[name], chosen.get(name, -1.0))
        parts = clauses(comment)
        for part in parts if len(parts) > 1 else []:
            ranking = similarity.rank(asked_for(part, scene), candidates)
            near = ranking.top >= SECOND_SKILL * max(whole.top, 0.2)
            if ranking.best and near and ranking.margin() >= 0.1:
                chosen.setdefault(ranking.best, ranking.top)
        doubted += [] if outright or talk else _second(whole)
    ordered = sorted(chosen, key=lambda n: (-chosen[n], n))
    return list(dict.fromkeys([*ordered, *doubted]))[:3]


def _talk(comment: str, ranking: Ranking, scene: Scene, similarity: Similarity) -> list[str]:
    """The skill for talk, when the host is asked about themselves: what such a question shares with
    another description ("where do you come from", "where is my parcel") it shares by chance.

    As with doubt, only where no description tells outright when to ask back: else words decide.
    """
    if not PERSONAL.search(comment) or mentions(comment, scene).said:
        return []
    return [n for n in [talker(scene, similarity)] if n in ranking.by_name]


def _second(ranking: Ranking) -> list[str]:
    """The second skill where it is nearly as near as a first one of which little is certain."""
    uncertain = DOUBTED[0] <= ranking.top < DOUBTED[1]
    return [n for n, s in ranking.scores[1:2] if uncertain and s >= DOUBT * ranking.top]


def _leaders(ranking: Ranking, scene: Scene) -> list[str]:
    """The nearest skill. Where the prompt lists kinds of skills it is the nearest of those that
    reply, and one of another kind beside it when that one is nearer still by a margin.
    """
    first, top = ranking.scores[0]
    repliers = [(n, s) for n, s in ranking.scores if _replies(n, scene)]
    if not repliers or _replies(first, scene):
        return [first]
    if top < BESIDE * repliers[0][1] or top <= 0:
        return [repliers[0][0]]
    named = [n for n, _ in repliers if _holds(scene.skills[first], n)]
    return [first, *named[:1]] if named else [first, repliers[0][0]]


def _holds(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _replies(skill: str, scene: Scene) -> bool:
    """Whether a skill stands in a list of those that say how to reply."""
    return bool(_REPLYING.search(scene.group.get(skill, "")))


def _with_cues(
    comment: str, scene: Scene, similarity: Similarity, candidates: list[Candidate]
) -> Ranking:
    """The comment's own words, and weaker the words for the situation it is made in."""
    said = similarity.rank(asked_for(comment, scene), candidates)
    share = LOST_SHARE if lost(comment, scene) else 1.0
    scores = {name: share * score for name, score in said.scores}
    for weight, cue in cues(comment, scene, similarity):
        spoken = shares(cue, candidates, similarity)
        usual = sum(spoken.values()) / len(candidates)
        for name, score in spoken.items():
            more = weight * max(0.0, score - usual)
            scores[name] = round(scores.get(name, 0.0) + more, 4)
    return Ranking.of(scores)


def declines(scene: Scene, similarity: Similarity) -> Offer | None:
    """The tool that declines, when its own words are nearer to the comment than any skill's."""
    offers = [t for t in scene.tools if t is not scene.loader and declining(t)]
    if not offers or len(scene.comments) != 1 or mentions(scene.comments[0], scene).said:
        return None
    skills = [Candidate.of(n, t) for n, t in scene.skills.items()]
    tools = {f"\uffff{t.name}": t for t in offers}
    both = [*skills, *(Candidate.of(key, t.text()) for key, t in tools.items())]
    return tools.get(_with_cues(scene.comments[0], scene, similarity, both).best or "")


def sent_on(comment: str, guide: Guide, scene: Scene, similarity: Similarity) -> str | None:
    """The skill that a loaded skill's own "do not use" lines send this comment to."""
    best: tuple[float, str] | None = None
    uses = [*guide.use, scene.skills.get(guide.skill, "")]
    own = max((similarity.nearness(comment, u) for u in uses if u), default=0.0)
    for line in guide.avoid:
        named = [n for n in ticked(line) if n in scene.skills and n != guide.skill]
        near = similarity.nearness(comment, line)
        if named and near > own + REROUTE and (best is None or near > best[0]):
            best = (near, named[0])
    return best[1] if best else None
