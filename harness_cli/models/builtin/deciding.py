"""One move: load skills, call tools, or reply, from one wire request and nothing else."""

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from harness_cli.models.builtin.arguments import fill, needs_product, takes_one_product
from harness_cli.models.builtin.calling import (
    TOOL_FLOOR,
    as_asked,
    at_once,
    left_open,
    looks_up,
    names_slots,
    obliged,
    rank_tools,
)
from harness_cli.models.builtin.composing import STAND_IN, Composer
from harness_cli.models.builtin.hearing import heard, spelt
from harness_cli.models.builtin.language import clauses, language_of, sentences
from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.moves import Move
from harness_cli.models.builtin.objections import Demand, demand
from harness_cli.models.builtin.reading import read
from harness_cli.models.builtin.roles import asker, plain
from harness_cli.models.builtin.routing import declines, route, sent_on
from harness_cli.models.builtin.scene import Offer, Scene, Turn, Wire
from harness_cli.models.builtin.similarity import Candidate, Similarity
from harness_cli.models.builtin.situation import lost
from harness_cli.models.builtin.skilltext import Guide, guide
from harness_cli.models.builtin.wanting import Want, wants

NEAR_TIE = 0.1
"""Two tools this close are both asked at once."""
FURTHER = 0.6
"""When the nearest tool cannot be filled or did not tell, the next one is tried from this share."""
FIRST_TRIES, SECOND_TRIES = 3, 2
"""How far down the list that goes, before and after a first call."""
ONE_FOR_TOOLS = 3
"""Rounds of a prompt that leaves one for tools, after the skill and before the reply: what would be
tried next is asked at once."""
MAX_CALLS = 6
"""Parallel calls of one round."""


@dataclass
class Mind:
    """One request being decided."""

    scene: Scene
    turn: Turn
    similarity: Similarity
    seed: int = 0
    guides: list[Guide] = field(default_factory=list)
    demand: Demand = field(default_factory=Demand)

    def move(self) -> Move:
        """The next move."""
        may_act = self.turn.rounds < self.scene.rounds - 1  # the last round is for the reply
        if may_act:
            acted = self._obey() or self._load() or self._call() or self._ask()
            if acted is not None:
                return self._with_tools(acted)
        composer = Composer(
            self.scene, self.turn, self.guides, self.similarity, self.demand, self.seed
        )
        return Move(text=composer.reply(self._wants()))

    def _with_tools(self, move: Move) -> Move:
        """What is loaded, with tools beside it where the prompt leaves no round to read first."""
        loads = self.scene.loader and {self.scene.loader.name}
        if self.turn.rounds or self.scene.rounds != 2 or {n for n, _ in move.calls} != loads:
            return move
        near = ((t, w) for w in self._wants() for t in at_once(w, self.scene, self.similarity))
        beside = self._calling(list(near))
        return Move(calls=(*move.calls, *beside.calls)) if beside else move

    def _obey(self) -> Move | None:
        """What a message of the harness names: skills to load, tools to call."""
        if self.demand.skills and self.scene.loader:
            return self._loading(list(self.demand.skills[:2]))
        if self.demand.load and self.scene.loader:
            more = route(self.scene, self.similarity, frozenset(self.turn.loaded))
            if more:
                return self._loading(more[:1])
        if self.demand.open and self.scene.loader:
            wanted = self._for_objection()
            if wanted is not None:
                return self._loading([wanted])
        named = [t for n in self.demand.tools if (t := self.scene.tool(n))]
        return self._calling([(t, w) for t in named for w in self._wants()])

    def _for_objection(self) -> str | None:
        """A skill not loaded yet that an objection without names speaks of more than the rest."""
        candidates = [Candidate.of(n, t) for n, t in self.scene.skills.items()]
        ranking = self.similarity.rank(self.turn.objections[-1], candidates)
        fresh = ranking.best not in self.turn.loaded and ranking.margin() >= NEAR_TIE
        return ranking.best if fresh else None

    def _load(self) -> Move | None:
        """Skills for the comments, another one where a loaded skill sends on or has no replies."""
        scene, turn = self.scene, self.turn
        if scene.loader is None or not scene.skills:
            return None
        if not turn.loaded and not turn.answers:
            refusing = declines(scene, self.similarity)
            if refusing is not None:
                filled = fill(refusing, scene.comments[0], scene, self.similarity)
                return Move(calls=((refusing.name, filled.arguments),))
            return self._loading(route(scene, self.similarity))
        for g in self.guides if len(turn.loaded) < 3 and not turn.answers else []:
            for comment in scene.comments:
                onward = sent_on(comment, g, scene, self.similarity)
                if onward and onward not in turn.loaded:
                    return self._loading([onward])
        asking = self._asking_back()
        if asking is not None:
            return self._loading([asking])
        if turn.loaded and not any(g.patterns for g in self.guides) and len(turn.loaded) < 3:
            more = route(scene, self.similarity, frozenset(turn.loaded))
            return self._loading(more[:1]) if more else None
        return None

    def _asking_back(self) -> str | None:
        """The skill for asking back, when a comment leaves open which product it means."""
        scene, turn = self.scene, self.turn
        unknown = [c for c in scene.comments if lost(c, scene)]
        if not unknown or turn.answers or not turn.loaded or len(turn.loaded) > 1:
            return None
        if any(p.asks_back for g in self.guides for p in g.patterns):
            return None
        return asker(scene, self.similarity, turn.loaded)

    def _ask(self) -> Move | None:
        """The same skill at last, when nothing says which product's fact is wanted.

        Where its description says outright when to ask back, the comment was held against that.
        """
        turn, scene = self.turn, self.scene
        if not 0 < len(turn.loaded) < 3 or plain(scene, self.similarity):
            return None
        asking = asker(scene, self.similarity, turn.loaded)
        open_ = (w for w in self._wants() if left_open(w, self.guides, scene, self.similarity))
        if asking is None or all(self._answered(w) for w in open_):
            return None
        return self._loading([asking])

    def _loading(self, skills: list[str]) -> Move | None:
        loader = self.scene.loader
        if loader is None or not skills:
            return None
        name, schema = next(iter(loader.properties.items()))
        listed = schema.get("type") == "array"
        if listed:
            return Move(calls=((loader.name, {name: skills}),))
        return Move(calls=tuple((loader.name, {name: skill}) for skill in skills))

    def _call(self) -> Move | None:
        """The tools that what is asked needs and that were not called yet."""
        pairs: list[tuple[Offer, Want]] = []
        for want in self._wants():
            pairs += [(t, want) for t in self._tools_for(want)]
        return self._calling(pairs)

    def _tools_for(self, want: Want) -> list[Offer]:
        scene = self.scene
        forced = [t for n in obliged(want, self.guides, scene) if (t := scene.tool(n))]
        if want.pattern is not None and want.pattern.tool:
            return [t for t in [scene.tool(want.pattern.tool)] if t]
        if want.pattern is not None and not want.pattern.slots:
            return forced
        if want.comment and lost(want.comment, scene) and self.guides:
            return forced
        ranking = rank_tools(want, self.guides, scene, self.similarity)
        if not self.guides:
            near = [n for n, s in ranking.scores[:1] if s >= TOOL_FLOOR]
            return [t for n in near if (t := scene.tool(n)) and not self.turn.called(n)]
        if self._answered(want):
            return forced
        near = [n for n, s in ranking.scores if s >= FURTHER * ranking.top] or [ranking.best or ""]
        if self.turn.called(ranking.best or ""):
            near = [n for n in near[: SECOND_TRIES + 1] if self._may_tell(n, want)]
            near = [n for n in near if not self.turn.called(n)]
            if self._answered_otherwise(want):
                near = as_asked(near, ranking, want, self.guides, scene, self.similarity)
        elif not self.turn.answers:
            near = [n for n, _ in ranking.scores[:FIRST_TRIES]]
        untried = [n for n in near if not self.turn.called(n)]
        fitting = (t for n in untried if (t := scene.tool(n)) and self._filled(t, want))
        chosen = list(itertools.islice(fitting, 2))
        tied = len(chosen) == 2 and all(needs_product(t) for t in chosen)
        scores = [ranking.by_name[t.name] for t in chosen]
        once = scene.rounds <= ONE_FOR_TOOLS and all(looks_up(t) for t in chosen)
        if not (once or (tied and abs(scores[0] - scores[1]) < NEAR_TIE)):
            chosen = chosen[:1]
        return [*forced, *chosen]

    def _may_tell(self, tool: str, want: Want) -> bool:
        """Whether a tool's texts name a field that the pattern of a want lacks."""
        offer = self.scene.tool(tool)
        slots = want.pattern.slots if want.pattern else ()
        return offer is not None and names_slots(offer, self.guides, slots) > 0

    def _answered(self, want: Want) -> bool:
        """Whether the results so far fill the pattern of a want."""
        composer = Composer(self.scene, self.turn, self.guides, self.similarity, self.demand)
        language = composer.language(want.comment)
        return bool(want.pattern and composer.said(want.pattern, want, language))

    def _answered_otherwise(self, want: Want) -> bool:
        """Whether they fill another pattern about as near: that one may be meant."""
        composer = Composer(self.scene, self.turn, self.guides, self.similarity, self.demand)
        language = composer.language(want.comment)
        least = STAND_IN * want.ranked[0][1] if want.ranked else 0.0
        near = [p for n, s in want.ranked[1:] if s >= least and (p := composer.pattern(n))]
        return any(p.slots and composer.said(p, want, language) for p in near)

    def _simpler(self) -> list[tuple[str, dict[str, Any]]]:
        """Failed calls once more with nothing but what their schema requires."""
        found = []
        for answer in self.turn.answers if self.turn.last_failed else []:
            offer = self.scene.tool(answer.tool)
            if offer is None or not answer.failed:
                continue
            required = {k: v for k, v in answer.arguments.items() if k in offer.required}
            if required and required != answer.arguments:
                found.append((answer.tool, required))
        return found

    def _calling(self, pairs: list[tuple[Offer, Want]]) -> Move | None:
        calls: list[tuple[str, dict[str, Any]]] = []
        done = [(a.tool, a.arguments) for a in self.turn.answers]
        for offer, want in pairs:
            for call in self._filled(offer, want):
                if call not in calls and call not in done:
                    calls.append(call)
        calls += [c for c in self._simpler() if c not in done and c not in calls]
        return Move(calls=tuple(calls[:MAX_CALLS])) if calls else None

    def _filled(self, offer: Offer, want: Want) -> list[tuple[str, dict[str, Any]]]:
        """The calls of one tool for one want: one a product where it takes one product."""
        numbers = mentions(want.comment, self.scene).numbers
        if takes_one_product(offer):
            numbers = mentions(want.words, self.scene).said or numbers
        several = takes_one_product(offer) and needs_product(offer) and len(numbers) > 1
        made = [
            fill(offer, want.words or want.comment, self.scene, self.similarity, meant=n)
            for n in ([(n,) for n in numbers] if several else [numbers])
        ]
        return [(offer.name, f.arguments) for f in made if not f.missing]

    def _wants(self) -> list[Want]:
        objection = self.turn.objections[-1] if self.demand.open else ""
        return wants(self.scene, self.guides, self.similarity, objection)


def decide(body: Wire, similarity: Similarity) -> Move:
    """The next move for a chat.completions request."""
    scene, turn = read(body)
    scene = heard(spelt(scene, similarity), similarity)
    if not scene.tools and not scene.skills:
        return Move(text=_bare(body, scene))
    names = tuple(t.name for t in scene.tools if t is not scene.loader)
    guides = [guide(skill, text, names) for skill, text in turn.loaded.items()]
    seed = body.get("seed")
    mind = Mind(
        scene,
        turn,
        similarity,
        seed if isinstance(seed, int) else 0,
        guides,
        demand(scene, turn),
    )
    return mind.move()


def _bare(body: Wire, scene: Scene) -> str:
    """An answer without any harness: the prompt's own first statement, or that it cannot."""
    asked = scene.comments[-1] if scene.comments else ""
    if scene.system:
        return _ONE_MOMENT[language_of(asked)]
    told = [s for s in sentences(asked) if not re.search(r"[?？]$", s) and len(clauses(s)) > 0]
    chinese = language_of(asked) == "zh"
    lead = "这是一个基线策略的回答：" if chinese else "From a baseline policy: "
    return lead + (told[0] if told else asked)[: int(body.get("max_tokens") or 400)]


_ONE_MOMENT = {"en": "One moment please, I am checking that.", "zh": "稍等一下哦，我确认一下。"}
"""All that can be said honestly where a prompt offers neither tools nor skills."""
