"""A wire request as the policy understands it: the scene, and how far the turn has come."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from harness_cli.models.builtin.language import sentences, squeezed
from harness_cli.models.builtin.prompt import (
    Section,
    described,
    listing,
    questions_and_answers,
    sections,
)
from harness_cli.models.builtin.scene import Answer, Offer, Scene, Turn, Wire

USUAL_ROUNDS = 4
"""Rounds of a request when the prompt names no number."""

_COMMENTS = re.compile(r"comment|viewer|question|message|asks|弹幕|评论|观众|提问", re.IGNORECASE)
_HOST = re.compile(r"\bhost\b|anchor|just said|last words|主播|刚才说", re.IGNORECASE)
_HISTORY = re.compile(r"history|earlier|conversation|previous|历史|之前|上文", re.IGNORECASE)
_FAQ = re.compile(r"\bfaq|frequently|q&a|configured question|常见问题|问答", re.IGNORECASE)
_EVENTS = re.compile(r"\bevents?\b|joined|viewer actions?|just did|动态|事件", re.IGNORECASE)


def read(body: Wire) -> tuple[Scene, Turn]:
    """The scene and the turn of a chat.completions request."""
    messages = [m for m in body.get("messages") or [] if isinstance(m, dict)]
    tools = _offers(_Wires(t for t in body.get("tools") or [] if isinstance(t, dict)))
    start = _first_action(messages)
    scene = _scene(_Wires(messages[:start]), tools)
    return scene, _turn(messages[start:], scene.loader)


class _Wires:
    """Parts of a request, equal when their text is: what they say is worked out once.

    The rounds of one request repeat its messages and tools; all requests of a harness its tools.
    """

    def __init__(self, wires: Iterable[Wire]) -> None:
        self.wires = list(wires)
        try:
            self._text = msgspec.json.encode(self.wires)
        except (TypeError, UnicodeEncodeError):  # halves of surrogate pairs
            self._text = repr(self.wires).encode("utf-8", "surrogatepass")

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wires) and self._text == other._text


@lru_cache(maxsize=64)
def _offers(tools: _Wires) -> tuple[Offer, ...]:
    return tuple(Offer.read(t) for t in tools.wires)


def text_of(message: Wire) -> str:
    """The text of a message, whichever of the two content forms it has."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return str(content or "")


def _first_action(messages: list[Wire]) -> int:
    for index, message in enumerate(messages):
        if message.get("role") == "assistant" and message.get("tool_calls"):
            return index
    last_user = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    return last_user + 1


@lru_cache(maxsize=256)
def _scene(opened: _Wires, tools: tuple[Offer, ...]) -> Scene:
    messages = opened.wires
    system = "\n\n".join(text_of(m) for m in messages if m.get("role") in ("system", "developer"))
    opening = "\n\n".join(text_of(m) for m in messages if m.get("role") != "assistant")
    parts = [s for m in messages for s in sections(text_of(m), str(m.get("role")))]
    loader = _loader(tools, opening)
    names = _enum(loader) if loader else ()
    said = opening + "\n" + (loader.description if loader else "")
    skills = described(said, names)
    last = [m for m in messages if m.get("role") == "user"][-1:]
    return Scene(
        tools=tools,
        loader=loader,
        skills={name: skills.get(name, name.replace("-", " ")) for name in names},
        goods=listing(opening),
        faq=tuple(p for s in parts if _FAQ.search(s.title) for p in questions_and_answers(s.body)),
        comments=_comments(sections(text_of(last[0]), "user")) if last else (),
        host=_said(parts, _HOST, _HISTORY),
        history=_earlier(messages, parts),
        events=_said(parts, _EVENTS, _FAQ),
        order=_order(system),
        rounds=_rounds(system),
        group=_groups(parts, names),
        system=system,
        opening=opening,
    )


_CONTEXT = {
    "history": re.compile(r"history|conversation|历史|上文", re.IGNORECASE),
    "host": re.compile(r"\bhost\b|主播", re.IGNORECASE),
    "presented": re.compile(r"presented|presenting|on screen|正在讲解|当前", re.IGNORECASE),
}


_RANKED = re.compile(r"\bfirst\b.*\bthen\b|先.*(?:再|然后)|其次", re.IGNORECASE)


@lru_cache(maxsize=256)
def _order(prompt: str) -> tuple[str, ...]:
    """The order in which the prompt says to look for what "this one" means."""
    for sentence in sentences(prompt.replace("\n  ", " ")):
        found = {name: m.start() for name, p in _CONTEXT.items() if (m := p.search(sentence))}
        if len(found) == len(_CONTEXT) and _RANKED.search(sentence):
            return tuple(sorted(found, key=lambda name: found[name]))
    return tuple(_CONTEXT)


def _rounds(prompt: str) -> int:
    found = re.search(r"(\d{1,2})\s*(?:rounds?|轮)", prompt)
    return int(found[1]) if found else USUAL_ROUNDS


def _groups(parts: list[Section], names: tuple[str, ...]) -> dict[str, str]:
    """Which list each skill stands in, when the prompt has several lists of skills."""
    return {n: part.title for part in parts for n in described(part.body, names)}


def _enum(offer: Offer) -> tuple[str, ...]:
    for schema in offer.properties.values():
        values = schema.get("enum") or (schema.get("items") or {}).get("enum")
        if values:
            return tuple(str(v) for v in values)
    return ()


def _loader(tools: tuple[Offer, ...], prompt: str) -> Offer | None:
    """The tool that opens skills: its enum holds the names that the prompt (or it) describes."""
    best: tuple[int, Offer] | None = None
    for offer in tools:
        if len(offer.properties) != 1:
            continue
        names = _enum(offer)
        count = len(described(prompt + "\n" + offer.description, names))
        if count * 2 >= len(names) > 0 and (best is None or count > best[0]):
            best = (count, offer)
    return best[1] if best else None


def _comments(parts: tuple[Section, ...]) -> tuple[str, ...]:
    titled = [p for p in parts if _COMMENTS.search(p.title) and not _HISTORY.search(p.title)]
    titled = [p for p in titled if not _EVENTS.search(p.title)]
    others = [p for p in parts if not (_EVENTS.search(p.title) or _HOST.search(p.title))]
    chosen = titled[-1:] or others[-1:]
    return tuple(squeezed(entry) for part in chosen for entry in part.entries())


def _said(parts: list[Section], title: re.Pattern[str], but: re.Pattern[str]) -> tuple[str, ...]:
    found = [p for p in parts if title.search(p.title) and not but.search(p.title)]
    users = [p for p in found if p.role == "user"] or found
    return tuple(e for p in users if len(p.body) < 2000 for e in p.entries())


def _earlier(messages: list[Wire], parts: list[Section]) -> tuple[str, ...]:
    turns = [m for m in messages if m.get("role") in ("user", "assistant")][:-1]
    told = [text_of(m) for m in turns]
    return tuple(told) + _said(parts, _HISTORY, _FAQ)


def _turn(messages: list[Wire], loader: Offer | None) -> Turn:
    turn = Turn()
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            turn.rounds += 1
            calls = message.get("tool_calls") or []
            asked.update((str(c.get("id")), _call(c)) for c in calls)
            if not calls and text_of(message):
                turn.drafts.append(text_of(message))
        elif role == "tool":
            _take(turn, message, asked, loader)
        elif role in ("user", "system", "developer") and text_of(message).strip():
            turn.objections.append(text_of(message))
    return turn


def _call(call: Wire) -> tuple[str, dict[str, Any]]:
    function = call.get("function") or {}
    raw = function.get("arguments")
    try:
        arguments = json.loads(raw) if isinstance(raw, str) else raw
    except json.JSONDecodeError:
        arguments = {}
    return str(function.get("name")), arguments if isinstance(arguments, dict) else {}


def _take(
    turn: Turn,
    message: Wire,
    asked: dict[str, tuple[str, dict[str, Any]]],
    loader: Offer | None,
) -> None:
    text = text_of(message)
    name, arguments = asked.get(str(message.get("tool_call_id")), ("", {}))
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError:
        data = text
    answer = Answer(name, arguments, data)
    if loader is not None and name == loader.name and not answer.failed:
        skill = next((str(v) for v in arguments.values() if isinstance(v, str)), "")
        turn.loaded[skill] = _body(data) if isinstance(data, dict) else text
    else:
        turn.answers.append(answer)


def _body(data: dict[str, Any]) -> str:
    """The skill's text in a JSON result: its longest string."""
    texts = [v for v in data.values() if isinstance(v, str)]
    return max(texts, key=len, default="")
