"""The `local` policy as a judge: a case, and a tool that asks for a decision with its reason.

A viewer's comment holds what a look-up asks for, so the schema is filled from it. A grade stands
nowhere. Here each value of a choice is scored by how much likelier the case makes it than no case
does, log p(value | case) - log p(value | "N/A"): alone, the first term has a favourite value
whatever the case is. Reasons are generated, and what is cited is the source that makes the reply
likeliest. Nothing in it knows a tool, a rubric or a grade by name.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from harness_cli.models.builtin.arguments import fill
from harness_cli.models.builtin.reading import text_of
from harness_cli.models.builtin.scene import Offer, Scene, Turn
from harness_cli.models.builtin.similarity import Similarity
from harness_cli.models.builtin.vectors import open_vectors
from harness_cli.records.chat import ChatRequest

if TYPE_CHECKING:
    from harness_cli.models.local_model import LocalModel

Call = tuple[str, dict[str, Any]]
NOTHING: Final = "N/A"
PART: Final = 200
"""Characters of one part of a case, or of one result, that are read: all go through the model."""
JUDGED: Final = 600
"""Characters of what is judged: its fault may be its end."""
SOURCES: Final = 12
"""Sources between which a citation is chosen: all of them go through the model."""
REASON: Final = 24
"""Most tokens of a reason."""

_REASON = re.compile(r"reason|why", re.IGNORECASE)
_CONTROL = re.compile(r"<[|/]+")
"""How control tokens of chat templates begin: what is judged must not speak as someone else."""
_SOURCE = re.compile(r"^(?:ref|reference|source)s?$", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """What is to be decided on: a document in the request, and the tool that takes the decision."""

    document: dict[str, Any]
    form: Offer

    @property
    def parts(self) -> dict[str, str]:
        """Part of the document → what it says, without references and structure."""
        last = next(reversed(self.document), "")
        said = {
            name: " ".join(_leaves(part))[: JUDGED if name == last else PART]
            for name, part in self.document.items()
        }
        return {name: text for name, text in said.items() if text}

    @property
    def comments(self) -> tuple[str, ...]:
        """What the viewers said in it."""
        found = self.document.get("comments")
        rows = found if isinstance(found, list) else []
        return tuple(str(r["text"]) for r in rows if isinstance(r, dict) and r.get("text"))

    @property
    def judged(self) -> str:
        """The text that is judged: the last part."""
        return next(reversed(self.parts.values()), "")


def open_case(request: ChatRequest, scene: Scene) -> Case | None:
    """The case of a request; None where it is none: no document, or no tool takes a decision."""
    form = next((t for t in scene.tools if _decides(t)), None)
    if form is None:
        return None
    for message in request.messages:
        document = _document(text_of(message)) if message.get("role") == "user" else None
        if document is not None:
            return Case(document, form)
    return None


class Judging:
    """One move of a judge."""

    def __init__(
        self,
        model: "LocalModel",
        case: Case,
        scene: Scene,
        turn: Turn,
        choose: Callable[[dict[str, str], str], str],
    ) -> None:
        self._model, self._case, self._turn = model, case, turn
        self._choose = choose
        self._scene = replace(scene, comments=case.comments or (case.judged,))
        self._chosen: dict[str, Any] = {}
        self.read = 0
        self.written = 0

    def calls(self, skills: tuple[str, ...], stopped: Callable[[], bool]) -> list[Call]:
        """The next calls: skills that the prompt or a hook names, one look-up, the decision."""
        loader = self._scene.loader
        if loader is not None and not self._turn.loaded:
            skills = skills or tuple(
                n for n in self._scene.skills if f"`{n}`" in self._scene.system
            )
        if loader is not None and skills:
            return [(loader.name, {next(iter(loader.properties)): name}) for name in skills]
        if not self._turn.answers:
            found = self._look_up()
            if found is not None:
                return [found]
        form = self._case.form
        arguments = self._object(form.properties, form.required, stopped)
        return [] if arguments is None else [(form.name, arguments)]

    def _look_up(self) -> Call | None:
        asked = "\n".join(self._scene.comments)
        bodies = "\n".join(self._turn.loaded.values())
        tools = {
            t.name: t.text()
            for t in self._scene.tools
            # What a look-up refers to is nothing that a comment says.
            if f"`{t.name}`" in bodies and not any(map(_SOURCE.match, t.required))
        }
        offer = self._scene.tool(self._choose(tools, asked)) if tools else None
        if offer is None:
            return None
        filled = fill(offer, asked, self._scene, Similarity(open_vectors()))
        return None if filled.missing or not filled.arguments else (offer.name, filled.arguments)

    def _object(
        self, schemas: Mapping[str, Any], required: tuple[str, ...], stopped: Callable[[], bool]
    ) -> dict[str, Any] | None:
        """What is required of an object, None where some of it cannot be said."""
        made: dict[str, Any] = {}
        for name in required:
            made[name] = self._value(name, schemas.get(name) or {}, stopped)
            if made[name] is None:
                return None
        return made

    def _value(self, name: str, schema: Mapping[str, Any], stopped: Callable[[], bool]) -> Any:
        kind = schema.get("type")
        values = schema.get("enum") or ([True, False] if kind == "boolean" else None)
        if values:
            self._chosen[name] = self._decided(name, schema, values)
            return self._chosen[name]
        if kind == "object":
            needed = tuple(schema.get("required") or ())
            return self._object(schema.get("properties") or {}, needed, stopped)
        if kind == "array":
            one = self._value(name, schema.get("items") or {}, stopped)
            return None if one is None else [one]
        if kind != "string":
            return None
        said = self._source() if _SOURCE.match(name) else self._why(name, stopped)
        return said[: schema.get("maxLength")] or None

    def _decided(self, name: str, schema: Mapping[str, Any], values: list[Any]) -> Any:
        """The value that the case makes likelier than no case does, the first of equal ones."""
        question = f"{name.replace('_', ' ')}: {schema.get('description') or ''}".strip(" :")
        contexts = tuple(
            tuple(self._model.chat(_asking(question, shown))) for shown in (self._shown(), NOTHING)
        )
        self.read += sum(map(len, contexts))
        gains = []
        for value in values:
            with_case, without = self._model.likelihoods(contexts, self._model.ids(_plain(value)))
            gains.append(round(with_case - without, 3))
        return values[gains.index(max(gains))]

    def _why(self, name: str, stopped: Callable[[], bool]) -> str:
        about = name if name in self._chosen else next(reversed(self._chosen), name)
        value = _plain(self._chosen.get(about, ""))
        question = f"{about.replace('_', ' ')} is {value}. Say why in one short sentence."
        ids = self._model.chat(_asking(question, self._shown()))
        made = self._model.generate(ids, REASON, stopped=stopped)
        self.read += len(ids)
        self.written += made.tokens
        return str(made.text)

    def _shown(self) -> str:
        looked_up = " ".join(text for a in self._turn.answers for text in _leaves(a.data))[:PART]
        facts = {"facts": looked_up} if looked_up else {}
        return "\n".join(f"{name}: {text}" for name, text in (facts | self._case.parts).items())

    def _source(self) -> str:
        """The reference of the source that makes the judged text likeliest."""
        results = [a.data for a in self._turn.answers if not a.failed]
        found = dict(_sources([*results, self._case.document]))
        others = {ref: text for ref, text in found.items() if text not in self._case.judged}
        sources = dict([*(others or found).items()][:SOURCES])
        return self._choose(sources, self._case.judged) if sources else ""


def _decides(offer: Offer) -> bool:
    """Whether a tool asks for a choice and, apart from it, for the reason."""
    required = {name: offer.properties.get(name, {}) for name in offer.required}
    choices = [name for name, schema in required.items() if schema.get("enum")]
    return bool(choices) and any(_REASON.search(n) for n in required if n not in choices)


def _document(text: str) -> dict[str, Any] | None:
    """The JSON object that stands in a message on lines of its own."""
    start, end = text.find("\n{\n"), text.rfind("\n}")
    if not 0 <= start < end:
        return None
    try:
        found = json.loads(text[start : end + 2])
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _leaves(part: Any) -> Iterator[str]:
    """What a part of a document says, in order; `ref` is an address and says nothing."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name != "ref":
                yield from _leaves(value)
    elif isinstance(part, list):
        for value in part:
            yield from _leaves(value)
    elif part is not None and not isinstance(part, bool):
        yield _CONTROL.sub("<", " ".join(str(part).split()))


def _sources(part: Any) -> Iterator[tuple[str, str]]:
    """(reference, what it says) of everything in a document that has a reference."""
    if isinstance(part, dict):
        if isinstance(part.get("ref"), str):
            yield part["ref"], " ".join(_leaves(part))[:PART]
        for value in part.values():
            yield from _sources(value)
    elif isinstance(part, list):
        for value in part:
            yield from _sources(value)


def _asking(question: str, shown: str) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": f"You judge the reply of a host to a viewer.\n{question}"},
        {"role": "user", "content": shown},
    ]


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
