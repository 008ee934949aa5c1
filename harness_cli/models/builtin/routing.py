"""Which skills to load and which tools to call, by nearness to what the harness says of them."""

import re
from dataclasses import dataclass
from functools import lru_cache

from harness_cli.models.builtin.arguments import takes
from harness_cli.models.builtin.language import (
    OBLIGATION,
    THAT,
    THIS,
    cjk_runs,
    clauses,
    features,
    meaningless,
    spelled_out,
)
from harness_cli.models.builtin.mentions import (
    NUMBERED,
    Mentions,
    by_name,
    longest_common,
    mentions,
)
from harness_cli.models.builtin.prompt import Listing
from harness_cli.models.builtin.reading import Offer, Scene
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.skilltext import Guide, Pattern, ticked

SECOND_SKILL = 0.85
"""Another clause's skill is loaded too when its score reaches this share of the first one's."""
BESIDE = 1.1
"""A skill of a kind that does not reply is loaded too when it leads the repliers by this factor."""
FAQ_NEAR = 0.62
"""A configured question is what the comment asks from this nearness on."""
TOOL_FLOOR = 0.22
"""Without skills, a tool is called from this score on."""
SLOTS_SHARE = 0.5
"""Weight of the share of a pattern's slots that a tool's text names, when tools are ranked."""
TAKES_IT = 0.3
"""Added when a tool asks for just the products a comment names, taken off when it does not."""
CUE = 0.45
"""Weight of a situation's own words beside those of the comment."""
HINT = 0.25
"""The same where the situation leaves most open."""
SURE = 1.2
"""The same where the situation alone decides: a bare "how much" with nothing that says of what."""
WORDED = 0.3
"""Weight of a pattern's own wording beside what it says it is for."""
SHORT_CJK = 5
"""So few Chinese characters name no wish of their own."""
STAND_INS = 8
"""So many of the nearest patterns are tried once the facts are there."""
REROUTE = 0.3
"""A loaded skill's "do not use" line must be so much nearer to the comment than its uses."""

_REPLYING = re.compile(r"repl(?:y|ies)|respon|answer|回复", re.IGNORECASE)
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
    ranked: tuple[tuple[str, float], ...] = ()
    """`skill/key` and score of the nearest pattern and of those that may stand in for it."""


def route(scene: Scene, similarity: Similarity, without: frozenset[str] = frozenset()) -> list[str]:
    """The skills to load, the nearest first; at most one a comment's clause."""
    candidates = [Candidate.of(n, t) for n, t in scene.skills.items() if n not in without]
    chosen: dict[str, float] = {}
    for comment in scene.comments or scene.events[-1:]:
        whole = _with_cues(comment, scene, similarity, candidates)
        if whole.best is None:
            continue
        for name in _leaders(whole, scene):
            chosen[name] = max(whole.by_name[name], chosen.get(name, -1.0))
        parts = clauses(comment)
        for part in parts if len(parts) > 1 else []:
            ranking = similarity.rank(asked_for(part, scene), candidates)
            near = ranking.top >= SECOND_SKILL * max(whole.top, 0.2)
            if ranking.best and near and ranking.margin() >= 0.1:
                chosen.setdefault(ranking.best, ranking.top)
    return sorted(chosen, key=lambda n: (-chosen[n], n))[:3]


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
    scores = dict(said.by_name)
    for weight, cue in cues(comment, scene, similarity):
        ranking = similarity.rank_wording(cue, candidates)
        usual = sum(ranking.by_name.values()) / len(candidates)
        for name, score in ranking.scores:
            more = weight * max(0.0, score - usual)
            scores[name] = round(scores.get(name, 0.0) + more, 4)
    return Ranking.of(scores)


def cues(comment: str, scene: Scene, similarity: Similarity) -> list[tuple[float, str]]:
    """What the situation is, in plain words that a description may share, and how much it says."""
    found: list[tuple[float, str]] = []
    meant = mentions(comment, scene)
    if len(meant.said) > 1:
        found.append((CUE, "compare several products with each other 多个商品对比"))
    if len(scene.comments) > 1:
        found.append((CUE, "several comments of many viewers at once 多条评论"))
    if asked_before(comment, scene, similarity):
        found.append((CUE, "a configured FAQ entry answers the question 常见问题"))
    if unclear(comment, meant, scene):
        found.append((SURE if lost(comment) else CUE, UNCLEAR))
    elif meant.said or (meant.pointed is not None and _POINTING.search(comment)):
        found += [(-SURE, UNCLEAR)]
        if meant.said or THIS.search(comment):
            found.append((HINT, CLEAR))
    if meaningless(comment):
        found.append((SURE, "text without meaning, spam 无意义内容"))
    if not scene.comments and scene.events:
        found.append((CUE, "a viewer enters the room, welcome 进入直播间 欢迎"))
    return found


UNCLEAR = "it is not clear which product is meant, context missing, ask back 不知道哪个商品 追问"
CLEAR = "names a link number or a product, or points at the one being shown 链接 商品"
_POINTING = re.compile(f"{THIS.pattern}|{THAT.pattern}", re.IGNORECASE)


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


def lost(comment: str) -> bool:
    """Whether a comment has nothing but a question form or a pointing word to go by."""
    telling = [f for f in features(comment) if not f.startswith("~")]
    latin = [f for f in telling if f.isascii()]
    return len(latin) <= 1 and len("".join(cjk_runs(comment))) <= SHORT_CJK


def masked(comment: str, goods: Listing) -> str:
    """A comment without product names and numbers: they say nothing of what is asked."""
    text = without_products(comment, goods)
    return text if features(text) else comment


def asked_for(comment: str, scene: Scene) -> str:
    """What a comment asks, whichever the product: its own words and the plain words for them."""
    return spelled_out(masked(comment, scene.goods))


@lru_cache(maxsize=4096)
def without_products(comment: str, goods: Listing) -> str:
    """A comment with the names and numbers of products taken out."""
    text = comment
    for number in by_name(comment, goods)[0]:
        product = goods.numbered(number)
        for name in product.own_names if product else ():
            text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
            for word in re.findall(r"[A-Za-z]{3,}", name):
                text = re.sub(rf"\b{word}s?\b", " ", text, flags=re.IGNORECASE)
            for run in cjk_runs(name):
                piece = longest_common(run, text)
                text = text.replace(piece, " ") if len(piece) >= 2 else text
    return NUMBERED.sub(" ", text)


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
    patterns = {
        f"{p.skill}/{p.key}": p
        for g in guides
        for p in (*g.patterns, *_silent(g, scene))
        if not p.fallback
    }
    found: list[Want] = []
    for comment in scene.comments or scene.events[-1:]:
        found += _wanted(comment, scene, patterns, similarity)
    return found or [Want("", "", None)]


def _silent(guide: Guide, scene: Scene) -> list[Pattern]:
    """Declining calls that a skill names, as one more way to react, with the examples of them."""
    found = []
    for name, line in guide.tools.items():
        offer = scene.tool(name)
        if offer is not None and _DECLINES.search(offer.description):
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
    purposes = [Candidate(n, _purposes(patterns[n])) for n in names]
    wordings = [Candidate(n, patterns[n].said()) for n in names]
    worded = similarity.rank(query, wordings).by_name
    purpose = similarity.rank(query, purposes).by_name
    return Ranking.of({n: round(purpose[n] + WORDED * worded[n], 4) for n in purpose})


def _purposes(pattern: Pattern) -> tuple[str, ...]:
    about = [p.strip() for p in re.split(r"[,;，；、]", pattern.about) if p.strip()]
    key = pattern.key.replace("-", " ").replace("_", " ")
    return tuple(p for p in (pattern.about, key, *about, *pattern.examples) if p)


def _wanted(
    comment: str, scene: Scene, patterns: dict[str, Pattern], similarity: Similarity
) -> list[Want]:
    clear = bool(mentions(comment, scene).said)
    fitting = {n: p for n, p in patterns.items() if not (clear and p.asks_back)} or patterns
    whole = rank_patterns(asked_for(comment, scene), fitting, similarity)
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


def rank_tools(want: Want, guides: list[Guide], scene: Scene, similarity: Similarity) -> Ranking:
    """The tools for one want: what the skills and their own descriptions say of them."""
    named = {n for g in guides for n in g.tools}
    if guides and not named and any(g.patterns for g in guides):
        return Ranking()  # what to say is laid down, and no offered tool is part of it
    offers = [
        t
        for t in scene.tools
        if t is not scene.loader
        and (not named or t.name in named)
        and not _DECLINES.search(t.description)
    ]
    candidates = [Candidate.of(t.name, t.text(), *_lines(t.name, guides)) for t in offers]
    query = asked_for(want.words or want.comment, scene)
    ranking = similarity.rank(query, candidates)
    slots = want.pattern.slots if want.pattern else ()
    given = mentions(want.words or want.comment, scene).said
    scores = {
        t.name: round(
            ranking.by_name.get(t.name, 0.0)
            + SLOTS_SHARE * _names(t, guides, slots)
            + (TAKES_IT if takes(t, len(given)) else -TAKES_IT if given else 0.0),
            4,
        )
        for t in offers
    }
    return Ranking.of(scores)


def _lines(tool: str, guides: list[Guide]) -> list[str]:
    return [g.tools[tool] for g in guides if tool in g.tools]


def _names(offer: Offer, guides: list[Guide], slots: tuple[str, ...]) -> float:
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
