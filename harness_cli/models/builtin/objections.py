"""What the harness's own messages ask for after a draft or a call: read as any reader would."""

import re
from dataclasses import dataclass
from functools import lru_cache

from harness_cli.models.builtin.language import is_chinese, language_of
from harness_cli.models.builtin.scene import Scene, Turn

_LOAD = re.compile(r"\bload\b|加载", re.IGNORECASE)
_SKILL = re.compile(r"\bskills?\b|技能", re.IGNORECASE)
_SHORT = re.compile(r"shorter|too long|shorten|length|at most|缩短|太长|简短", re.IGNORECASE)
_LIMIT = re.compile(r"(\d{1,4})\s*(words?|characters?|chars|字)", re.IGNORECASE)
_PLAIN = re.compile(
    r"markdown|plain text|json|\btags?\b|\blists?\b|bullet|url|纯文本", re.IGNORECASE
)
_LANGUAGE = re.compile(
    r"in (?:the viewer'?s language|chinese|english)|语言|中文|英文", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"“'‘`「]([^\"”'’`」\n]{2,80})[\"”'’`」]")
_FIGURE = re.compile(r"\d+(?:\.\d+)?%?")
_LIMITS_IN_PROMPT = re.compile(
    r"(?:at most|no more than|no longer than|under|within|up to|max(?:imum)?|不超过|最多)"
    r"[^.。\n]{0,40}?(\d{1,4})\s*(words?|characters?|chars|字)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Demand:
    """What is asked of the next move."""

    skills: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    load: bool = False
    shorter: bool = False
    limit: tuple[int, str] | None = None
    plain: bool = False
    avoid: tuple[str, ...] = ()
    """Words and figures it objects to."""
    any: bool = False

    @property
    def open(self) -> bool:
        """Whether it says what is wrong without naming what to do."""
        named = self.skills or self.tools or self.load or self.shorter or self.plain
        return self.any and not named and not self.avoid


def demand(scene: Scene, turn: Turn) -> Demand:
    """Everything the objections of this turn ask for together."""
    said = "\n".join(turn.objections)
    if not said:
        return Demand()
    last = turn.objections[-1]
    skills = tuple(n for n in scene.skills if _named(n, said) and n not in turn.loaded)
    offered = [t.name for t in scene.tools if t is not scene.loader]
    limit = _LIMIT.search(last)
    names = {*scene.skills, *offered}
    quoted = tuple(q for q in _QUOTED.findall(last) if q not in names)
    figures = tuple(f for f in _FIGURE.findall(_LIMIT.sub("", last)) if len(f) > 1)
    return Demand(
        skills=skills,
        tools=tuple(n for n in offered if _named(n, said) and not turn.called(n)),
        load=bool(_LOAD.search(last) and _SKILL.search(last)) and not skills,
        shorter=bool(_SHORT.search(said)),
        limit=(int(limit[1]), limit[2][0].lower()) if limit else None,
        plain=bool(_PLAIN.search(said)),
        avoid=quoted + figures,
        any=True,
    )


def _named(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


@lru_cache(maxsize=512)
def limit_of(prompt: str, language: str) -> tuple[int, str] | None:
    """The length that a prompt allows a reply of a language: (number, `w` or `c`)."""
    found = [(int(n), unit) for n, unit in _LIMITS_IN_PROMPT.findall(prompt)]
    in_words = [(n, "w") for n, unit in found if unit.lower().startswith("w")]
    in_chars = [(n, "c") for n, unit in found if not unit.lower().startswith("w")]
    order = [in_chars, in_words] if language == "zh" else [in_words, in_chars]
    chosen = next((part for part in order if part), [])
    return min(chosen) if chosen else None


def fit(parts: list[str], limit: tuple[int, str] | None, language: str) -> list[str]:
    """As many whole parts, in order, as the limit lets stand; at least the first."""
    kept = list(parts)
    while limit and len(kept) > 1 and _size(kept, limit[1]) > limit[0]:
        kept.pop()
    if limit and kept and _size(kept, limit[1]) > limit[0]:
        kept = [_cut(kept[0], limit, language)]
    return kept


def _size(parts: list[str], unit: str) -> int:
    text = " ".join(parts)
    return len(text.split()) if unit == "w" and not is_chinese(text) else len(text)


def _cut(text: str, limit: tuple[int, str], language: str) -> str:
    """The leading sentences or clauses of a text that fit."""
    pieces = re.findall(r"[^.!?。！？,，;；]+[.!?。！？,，;；]*\s*", text)
    kept = ""
    for piece in pieces:
        if _size([kept + piece], limit[1]) > limit[0]:
            break
        kept += piece
    end = "。" if language == "zh" else "."
    return (
        kept.rstrip(" ,，;；") + ("" if kept.rstrip()[-1:] in ".!?。！？" else end)
        if kept
        else text
    )


def plainly(text: str) -> str:
    """A text without Markdown, tags and links."""
    text = re.sub(r"https?://\S+|<[^>]+>|^[\s>*#-]+", "", text, flags=re.MULTILINE)
    return re.sub(r"[*_`#|]", "", text).strip()


def language_wanted(comment: str, turn: Turn, all_comments: tuple[str, ...] = ()) -> str:
    """The viewer's language, unless an objection names one; signs alone follow the others."""
    last = turn.objections[-1] if turn.objections else ""
    found = _LANGUAGE.search(last)
    if found and found[0].lower().endswith(("chinese", "中文")):
        return "zh"
    if found and found[0].lower().endswith(("english", "英文")):
        return "en"
    if not re.search(r"[^\W\d_]", comment):
        comment = " ".join(all_comments)
    return language_of(comment)
