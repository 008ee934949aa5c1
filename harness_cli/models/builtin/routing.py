"""Which skills to load and which tools to call, by nearness to what the harness says of them."""

import re
from dataclasses import dataclass

from harness_cli.models.builtin.language import OBLIGATION, clauses, features
from harness_cli.models.builtin.mentions import Mentions, mentions
from harness_cli.models.builtin.prompt import Listing
from harness_cli.models.builtin.reading import Offer, Scene
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.skilltext import Guide, Pattern, ticked

SECOND_SKILL = 0.85
"""Another clause's skill is loaded too when its score reaches this share of the first one's."""
FAQ_NEAR = 0.62
"""A configured question is what the comment asks from this nearness on."""
TOOL_FLOOR = 0.22
"""Without skills, a tool is called from this score on."""
SLOTS_SHARE = 0.5
"""Weight of the share of a pattern's slots that a tool's text names, when tools are ranked."""
CUE = 0.45
"""Weight of a situation's own words beside those of the comment."""
STAND_IN = 0.6
"""A pattern stands in for the nearest one, which lacks a fact, from this share of its score on."""
REROUTE = 0.3
"""A loaded skill's "do not use" line must be so much nearer to the comment than its uses."""

_DECLINES = re.compile(
    r"refus|declin|reject|no (?:public )?reply|not reply|stay silent|拒绝|婉拒|不予回复|不回复",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Want:
    """One thing a viewer asks: the words, and the reply pattern nearest to them."""

    words: str
    comment: str
    pattern: Pattern | None
    ranked: tuple[str, ...] = ()
    """`skill/key` of the nearest pattern and of those that may stand in for it."""


def route(scene: Scene, similarity: Similarity, without: frozenset[str] = frozenset()) -> list[str]:
    """The skills to load, the nearest first; at most one a comment's clause."""
    candidates = [Candidate.of(n, t) for n, t in scene.skills.items() if n not in without]
    chosen: dict[str, float] = {}
    for comment in scene.comments or scene.events[-1:]:
        whole = _with_cues(comment, scene, similarity, candidates)
        if whole.best is None:
            continue
        chosen[whole.best] = max(whole.top, chosen.get(whole.best, -1.0))
        parts = clauses(comment)
        for part in parts if len(parts) > 1 else []:
            ranking = similarity.rank(masked(part, scene.goods), candidates)
            near = ranking.top >= SECOND_SKILL * max(whole.top, 0.2)
            if ranking.best and near and ranking.margin() >= 0.1:
                chosen.setdefault(ranking.best, ranking.top)
    return sorted(chosen, key=lambda n: (-chosen[n], n))[:3]


def _with_cues(
    comment: str, scene: Scene, similarity: Similarity, candidates: list[Candidate]
) -> Ranking:
    """The comment's own words, and weaker the words for the situation it is made in."""
    said = similarity.rank(masked(comment, scene.goods), candidates)
    scores = dict(said.by_name)
    for cue in cues(comment, scene, similarity):
        for name, score in similarity.rank(cue, candidates).scores:
            scores[name] = round(scores.get(name, 0.0) + CUE * score, 4)
    ordered = tuple(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))
    return Ranking(ordered, scores)


def cues(comment: str, scene: Scene, similarity: Similarity) -> list[str]:
    """What the situation is, in plain words that a description may share."""
    found = []
    meant = mentions(comment, scene)
    if len(meant.said) > 1:
        found.append("compare several products with each other 多个商品对比")
    if len(scene.comments) > 1:
        found.append("several comments of many viewers at once 多条评论")
    if asked_before(comment, scene, similarity):
        found.append("a configured FAQ entry answers the question 常见问题")
    if unclear(comment, meant, scene):
        found.append(
            "unclear which product is meant, context missing, ask back 不清楚哪个商品 追问"
        )
    if scene.goods.products and not features(comment):
        found.append("text without meaning, spam 无意义内容")
    if not scene.comments and scene.events:
        found.append("a viewer enters the room, welcome 进入直播间 欢迎")
    return found


def asked_before(comment: str, scene: Scene, similarity: Similarity) -> tuple[str, str] | None:
    """The configured question that a comment asks, with its answer."""
    scored = [(similarity.nearness(comment, q), -i) for i, (q, _) in enumerate(scene.faq)]
    if not scored or max(scored)[0] < FAQ_NEAR:
        return None
    return scene.faq[-max(scored)[1]]


def unclear(comment: str, meant: Mentions, scene: Scene) -> bool:
    """Whether nothing tells which product a short comment is about."""
    few = len([f for f in features(comment) if not f.startswith("~") and len(f) > 1]) <= 4
    return bool(scene.goods.products) and few and not meant.numbers


def masked(comment: str, goods: Listing) -> str:
    """A comment without product names and numbers: they say nothing of what is asked."""
    text = comment
    for product in goods.products:
        for name in product.names[:2]:
            text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
    text = re.sub(r"#?\d+号?(?:链接)?", " ", text)
    return text if features(text) else comment


def declines(scene: Scene, similarity: Similarity) -> Offer | None:
    """The tool that declines, when its own words are nearer to the comment than any skill's."""
    offers = [t for t in scene.tools if t is not scene.loader and _DECLINES.search(t.description)]
    if not offers or len(scene.comments) != 1:
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


def wants(scene: Scene, guides: list[Guide], similarity: Similarity) -> list[Want]:
    """What the comments ask, each with the reply pattern nearest to it."""
    patterns = {f"{p.skill}/{p.key}": p for g in guides for p in g.patterns}
    candidates = [
        Candidate(name, tuple(x for x in (p.about, p.key.replace("-", " "), *_pieces(p)) if x))
        for name, p in sorted(patterns.items())
    ]
    found: list[Want] = []
    for comment in scene.comments or scene.events[-1:]:
        found += _wanted(comment, scene, candidates, patterns, similarity)
    return found or [Want("", "", None)]


def _pieces(pattern: Pattern) -> list[str]:
    about = [p.strip() for p in re.split(r"[,;，；、]", pattern.about) if p.strip()]
    return [*about, *pattern.said()]


def _wanted(
    comment: str,
    scene: Scene,
    candidates: list[Candidate],
    patterns: dict[str, Pattern],
    similarity: Similarity,
) -> list[Want]:
    parts = clauses(comment)
    whole = similarity.rank(masked(comment, scene.goods), candidates)
    if whole.best is None:
        return [Want(comment, comment, None)]
    first = Want(comment, comment, patterns[whole.best], _stand_ins(whole))
    if len(parts) < 2:
        return [first]
    ranked = [(p, similarity.rank(masked(p, scene.goods), candidates)) for p in parts]
    top = max(r.top for _, r in ranked)
    kept: dict[str, Want] = {}
    for part, ranking in ranked:
        if ranking.best and ranking.top >= 0.6 * top and ranking.margin() >= 0.03:
            want = Want(part, comment, patterns[ranking.best], _stand_ins(ranking))
            kept.setdefault(ranking.best, want)
    return list(kept.values()) or [first]


def _stand_ins(ranking: Ranking) -> tuple[str, ...]:
    return tuple(n for n, s in ranking.scores[:4] if s >= STAND_IN * ranking.top)


def rank_tools(want: Want, guides: list[Guide], scene: Scene, similarity: Similarity) -> Ranking:
    """The tools for one want: what the skills and their own descriptions say of them."""
    named = {n for g in guides for n in g.tools}
    offers = [t for t in scene.tools if t is not scene.loader and (not named or t.name in named)]
    candidates = [Candidate.of(t.name, t.text(), *_lines(t.name, guides)) for t in offers]
    query = masked(want.words or want.comment, scene.goods)
    ranking = similarity.rank(query, candidates)
    slots = want.pattern.slots if want.pattern else ()
    scores = {
        t.name: round(ranking.by_name.get(t.name, 0.0) + SLOTS_SHARE * _names(t, guides, slots), 4)
        for t in offers
    }
    return Ranking(tuple(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))), scores)


def _lines(tool: str, guides: list[Guide]) -> list[str]:
    return [g.tools[tool] for g in guides if tool in g.tools]


def _names(offer: Offer, guides: list[Guide], slots: tuple[str, ...]) -> float:
    """The share of slots whose name a tool's texts hold."""
    if not slots:
        return 0.0
    said = features(" ".join([offer.text(), *_lines(offer.name, guides)]).replace("_", " "))
    told = [features(s.replace("_", " ").replace(".", " ")) for s in slots]
    return sum(any(f in said for f in t if not f.startswith("~")) for t in told) / len(told)


def obliged(guides: list[Guide], scene: Scene) -> list[str]:
    """Tools that a loaded skill says must be called whatever is asked."""
    return [
        name
        for g in guides
        for name, line in sorted(g.tools.items())
        if scene.tool(name) and OBLIGATION.search(line)
    ]
