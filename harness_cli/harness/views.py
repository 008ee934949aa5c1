"""What prompt templates may see: plain values, with text from outside made harmless.

Viewer words are data. A template inserts them, nothing evaluates them, and what could end a
fence, open a tag, imitate a chat delimiter or hide from a reader is replaced here, once.
Documented for authors in `docs/prompt_variables.md`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness_cli.records.catalogue import Catalogue
from harness_cli.records.harness import HarnessState, Pipeline
from harness_cli.records.request import Request

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_BLANKS = re.compile(r"\s+")
_TAG = re.compile(r"<(?=[A-Za-z/|!?])")
_CLOSE = re.compile(r"(?<=\|)>")
_RULE = re.compile(r"^[ \t]*(?:-{3,}|#{1,6}(?=[ \t])|={3,})", re.MULTILINE)
REQUEST = ("channel", "mode", "comments", "anchor", "room", "faq", "history", "events")
VARIABLES = (
    "request", "products", "room", "skills", "loaded", "constraints", "today", "instructions",
)  # fmt: skip
"""The names a block may use."""


def one_line(text: str) -> str:
    """Words of a viewer on one line: they can start no heading, list, role or fence of ours."""
    return _BLANKS.sub(" ", harmless(text)).strip()


def harmless(text: str) -> str:
    """Text from outside, its lines kept, without anything that could pass for structure."""
    text = _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = text.replace("```", "'''").replace("~~~", "∼∼∼")
    text = _CLOSE.sub("›", _TAG.sub("‹", text))
    return _RULE.sub(lambda found: "· " + found[0].strip(" \t-#="), text) if "\n" in text else text


def chat_history(request: Request) -> list[dict[str, Any]]:
    """Earlier turns as chat messages: roles user and assistant with text, nothing else."""
    return [
        {"role": turn["role"], "content": harmless(str(turn["content"]))}
        for turn in request.history
        if turn.get("role") in ("user", "assistant") and turn.get("content")
    ]


def _comments(request: Request) -> Any:
    return [
        {"viewer": one_line(c.viewer), "text": one_line(c.text), "at": c.at}
        for c in request.comments
    ]


def _faq(request: Request) -> Any:
    return [
        {
            "id": f.id,
            "question": one_line(f.question),
            "answer": one_line(f.answer),
            "product": f.product,
        }
        for f in request.faq
    ]


def _events(request: Request) -> Any:
    return [
        {"viewer": one_line(e.viewer), "kind": e.kind, "product": e.product, "at": e.at}
        for e in request.events
    ]


REQUEST_VIEWS: dict[str, Callable[[Request], Any]] = {
    "channel": lambda request: request.channel,
    "mode": lambda request: request.mode,
    "comments": _comments,
    "anchor": lambda request: [one_line(words) for words in request.anchor],
    "room": lambda request: {
        **msgspec.structs.asdict(request.room),
        "id": one_line(request.room.id),
    },
    "faq": _faq,
    "history": chat_history,
    "events": _events,
}


def request_view(request: Request) -> dict[str, Any]:
    """All of a request, as templates see it."""
    return {name: view(request) for name, view in REQUEST_VIEWS.items()}


class World:
    """A catalogue by id, as prompts need it: product lines without prices or stock."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.today = catalogue.snapshot
        self._products = {p.id: p for p in catalogue.products}
        self._rooms = {r.id: msgspec.structs.asdict(r) for r in catalogue.rooms}

    def room(self, request: Request) -> dict[str, Any] | None:
        """The room's configuration; None when the catalogue does not know it."""
        return self._rooms.get(request.room.id)

    def products(self, request: Request) -> list[dict[str, Any]]:
        """The room's products in order of their links; an unknown one keeps its id as name."""
        rows = []
        for link, product_id in enumerate(request.room.products, 1):
            known = self._products.get(product_id)
            rows.append(
                {
                    "link": link,
                    "id": product_id,
                    "name": known.name if known else product_id,
                    "zh_name": known.zh_name if known else "",
                    "category": known.category if known else "",
                    "current": link == request.room.current_link,
                }
            )
        return rows


def fixed_values(state: HarnessState, pipeline: Pipeline) -> dict[str, Any]:
    """The variables that a state alone determines."""
    return {
        "skills": [
            {"name": s.name, "description": s.description, "kind": s.kind} for s in state.skills
        ],
        "constraints": {name: c.value for name, c in pipeline.constraints.items()},
    }


def loaded_skills(state: HarnessState, names: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """Skills with their bodies, in the order in which they were loaded."""
    found = (state.skill(name) for name in names)
    return [
        {"name": s.name, "description": s.description, "kind": s.kind, "body": s.body}
        for s in found
        if s is not None
    ]
