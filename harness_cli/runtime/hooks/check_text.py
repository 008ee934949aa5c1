"""Checks on what viewers wrote and on what the host is about to say."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from harness_cli.errors import HookError
from harness_cli.records.request import Request
from harness_cli.runtime.hooks.moment import Moment, Objection
from harness_cli.runtime.hooks.patterns import compiled, find, find_any

Found = Callable[[Moment], Objection | None]
On = Literal["reply", "comment", "arguments"]
_LIST = r"(?m)^\s*(?:[-*•]|\d{1,2}[.)])\s+\S.*\n\s*(?:[-*•]|\d{1,2}[.)])\s+\S"
_FORMATS = {
    "markdown": r"\*\*[^*\n]{1,400}\*\*|(?m:^#{1,6} )|```|\[[^\]\n]{1,200}\]\([^)\n]{1,400}\)"
    r"|(?m:^\|.*\|[ \t]*$)",
    "json": r"^\s*[{\[].*[}\]]\s*$|\{\s*\"[^\"\n]{1,60}\"\s*:",
    "tags": r"</?[A-Za-z][\w-]{0,30}(?: [^<>\n]{0,80})?/?>",
    "urls": r"https?://\S+|www\.\S+",
    "list": _LIST,
}
_REPAIRS: dict[str, list[tuple[str, str]]] = {
    "markdown": [
        (r"\*\*([^*\n]{1,400})\*\*", r"\1"),
        (r"(?m)^#{1,6} ", ""),
        (r"```\w*\n?", ""),
        (r"\[([^\]\n]{1,200})\]\([^)\n]{1,400}\)", r"\1"),
    ],
    "tags": [(_FORMATS["tags"], "")],
    "urls": [(_FORMATS["urls"], "")],
    "list": [(r"(?m)^\s*(?:[-*•]|\d{1,2}[.)])\s+", "")],
}
_HAN = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[A-Za-z]")
_SENTENCE_END = re.compile(r"[.!?。！？…](?=\s|$|[\u3400-\u9fff])|[。！？]")


def comments_of(request: Request) -> str:
    """Everything the viewers wrote, or the bare prompt."""
    return "\n".join(c.text for c in request.comments) or (request.prompt or "")


def request_valid(max_chars: int = 2_000, max_comments: int = 50) -> Found:
    """The request says something (a comment, an event, a prompt) and not too much."""

    def check(moment: Moment) -> Objection | None:
        request = moment.request
        text = comments_of(request).strip()
        if not text and not request.events:
            return Objection(reason="the request has no comment and no event")
        if len(text) > max_chars:
            return Objection(reason=f"the comments have {len(text)} characters, over {max_chars}")
        if len(request.comments) > max_comments:
            return Objection(reason=f"{len(request.comments)} comments, over {max_comments}")
        return None

    return check


def forbid_pattern(patterns: Sequence[str], on: On = "reply") -> Found:
    """None of the patterns occurs in the reply, the comments, or the arguments of the call."""
    regexes = patterns_of(patterns)
    _one_of("on", on, ("reply", "comment", "arguments"))

    def check(moment: Moment) -> Objection | None:
        found = find_any(regexes, _looked_at(moment, on))
        if found is None:
            return None
        reason = f"{_NAMES[on]} contains `{found[:80]}`"
        if on == "reply":
            return Objection(reason=reason, reply=_without(moment.reply, regexes))
        if on == "comment":
            return Objection(reason=reason, request=_masked(moment.request, regexes))
        return Objection(reason=reason)

    return check


_NAMES = {"reply": "the reply", "comment": "the comment", "arguments": "the arguments"}


def require_pattern(patterns: Sequence[str], when: Sequence[str] = ()) -> Found:
    """One of the patterns occurs in the reply, where a comment matches `when` (or always)."""
    regexes, triggers = patterns_of(patterns), patterns_of(when)

    def check(moment: Moment) -> Objection | None:
        if not moment.reply:
            return None
        if triggers and find_any(triggers, comments_of(moment.request)) is None:
            return None
        if find_any(regexes, moment.reply) is not None:
            return None
        return Objection(reason=f"the reply lacks any of: {', '.join(patterns)}")

    return check


def length(
    max_chars: int | None = None, max_words: int | None = None, constraint: str | None = None
) -> Found:
    """The reply fits: in characters, in words, or in the pipeline's constraint of that name.

    A constraint counts in its own `unit`: characters, words (a Chinese character is one) or
    sentences. Repair: cut at the last sentence that fits.
    """
    if max_chars is None and max_words is None and constraint is None:
        raise HookError("check `length`: one of max_chars, max_words, constraint is needed")

    def check(moment: Moment) -> Objection | None:
        limits = [(max_chars, "characters"), (max_words, "words")]
        stated = moment.constraints.get(constraint or "")
        if stated is not None:
            limits.append((stated.value, stated.unit or "words"))
        for limit, unit in limits:
            if limit is None:
                continue
            count = _count(moment.reply, unit)
            if count > limit:
                reason = f"the reply has {count} {unit}, over the limit of {limit}"
                return Objection(reason=reason, reply=_cut(moment.reply, limit, unit))
        return None

    return check


def _count(text: str, unit: str) -> int:
    if unit == "words":
        return len(_HAN.findall(text)) + len(_HAN.sub(" ", text).split())
    if unit == "sentences":
        return len([s for s in sentences(text) if s.strip()])
    return len(text)


def output_format(
    forbid: Sequence[str] = ("markdown", "json", "tags"), language: str | None = None
) -> Found:
    """The reply is plain speech: no markup of the named kinds, in the viewer's language."""
    for kind in forbid:
        _one_of("forbid", kind, tuple(_FORMATS))
    if language is not None:
        _one_of("language", language, ("match_viewer", "en", "zh"))
    regexes = [(kind, compiled(_FORMATS[kind])) for kind in forbid]

    def check(moment: Moment) -> Objection | None:
        for kind, regex in regexes:
            found = find(regex, moment.reply)
            if found is not None:
                reason = f"the reply contains {kind}: `{found.strip()[:60]}`"
                return Objection(reason=reason, reply=_plain(moment.reply, forbid))
        return _language_objection(moment, language)

    return check


def _language_objection(moment: Moment, wanted: str | None) -> Objection | None:
    """The reply is not in the language that is wanted; None where either is unclear."""
    if wanted is None or not moment.reply:
        return None
    texts = [c.text for c in moment.request.comments] or [comments_of(moment.request)]
    asked = {language(t) for t in texts} - {None} if wanted == "match_viewer" else {wanted}
    spoken = language(moment.reply)
    if not asked or spoken is None or spoken in asked:
        return None
    names = {"en": "English", "zh": "Chinese"}
    wants = " or ".join(sorted(names[a] for a in asked if a))
    return Objection(reason=f"the reply is in {names[spoken]}, not in {wants}")


def language(text: str) -> str | None:
    """`zh` or `en` by script; None when the text has no letters or mixes them evenly.

    A Chinese sentence carries about as much in one character as English in four letters.
    """
    han, latin = len(_HAN.findall(text)), len(_LETTER.findall(text))
    if han == latin == 0:
        return None
    if han * 4 >= latin * 2:
        return "zh" if han * 4 > latin else None
    return "en"


def _looked_at(moment: Moment, on: str) -> str:
    if on == "comment":
        return comments_of(moment.request)
    if on == "reply":
        return moment.reply
    return "\n".join(a.arguments_raw for a in moment.asked_calls())


def _masked(request: Request, regexes: Iterable[re.Pattern[str]]) -> Request:
    """The request with every match in its comments replaced by `…`."""
    comments = []
    for comment in request.comments:
        text = comment.text
        for regex in regexes:
            text = regex.sub("…", text)
        comments.append(msgspec.structs.replace(comment, text=text))
    return msgspec.structs.replace(request, comments=tuple(comments))


def _without(text: str, regexes: Iterable[re.Pattern[str]]) -> str | None:
    """The text without the sentences that match; None when nothing is left."""
    kept = [s for s in sentences(text) if not any(r.search(s) for r in regexes)]
    return "".join(kept).strip() or None


def sentences(text: str) -> list[str]:
    """Sentences with their ends and the blanks that follow."""
    ends = [m.end() for m in _SENTENCE_END.finditer(text)]
    cuts = [0, *ends, len(text)]
    return [text[a:b] for a, b in pairwise(cuts) if text[a:b]]


def _cut(text: str, limit: int, unit: str) -> str | None:
    """The first whole sentences within the limit; None when not even one fits."""
    kept = ""
    for sentence in sentences(text):
        if _count((kept + sentence).strip(), unit) > limit:
            break
        kept += sentence
    return kept.strip() or None


def _plain(text: str, kinds: Sequence[str]) -> str | None:
    if "json" in kinds and compiled(_FORMATS["json"]).search(text):
        return None
    for kind in kinds:
        for pattern, instead in _REPAIRS.get(kind, ()):
            text = compiled(pattern).sub(instead, text)
    return re.sub(r"[ \t]{2,}", " ", text).strip() or None


def patterns_of(texts: Sequence[str]) -> list[re.Pattern[str]]:
    """A setting that lists patterns, compiled; `HookError` when it lists none."""
    if isinstance(texts, str) or not all(isinstance(t, str) for t in texts):
        raise HookError("patterns must be a list of texts")
    return [compiled(t) for t in texts]


def _one_of(setting: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise HookError(f"`{setting}: {value}` is not one of {', '.join(known)}")
