"""What the policy understands of a request: tools, the scene of the prompt, the turn so far."""

from dataclasses import dataclass, field
from typing import Any

from harness_cli.models.builtin.prompt import Listing

Wire = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Offer:
    """A tool as it is offered. Equal only to itself."""

    name: str
    description: str
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...]

    @classmethod
    def read(cls, wire: Wire) -> "Offer":
        """A tool definition in OpenAI form; what is missing counts as empty."""
        function = wire.get("function") or wire
        schema = function.get("parameters") or function.get("inputSchema") or {}
        properties = schema.get("properties") or {}
        return cls(
            name=str(function.get("name", "")),
            description=str(function.get("description") or ""),
            properties={k: v for k, v in properties.items() if isinstance(v, dict)},
            required=tuple(schema.get("required") or ()),
        )

    def text(self) -> str:
        """Everything its definition says of what it does."""
        return self.description or self.name.replace("_", " ").replace("-", " ")


@dataclass(frozen=True)
class Answer:
    """What one tool call brought."""

    tool: str
    arguments: dict[str, Any]
    data: Any
    """The JSON of its result, or its text."""

    @property
    def failed(self) -> bool:
        """Whether the result says that the tool could not do it."""
        if not isinstance(self.data, dict):
            return isinstance(self.data, str) and self.data.lower().startswith("error")
        return bool(self.data.get("error")) or self.data.get("ok") is False


@dataclass(frozen=True, eq=False)
class Scene:
    """What stands in the prompt. Equal only to itself."""

    tools: tuple[Offer, ...]
    loader: Offer | None
    skills: dict[str, str]
    """Skill name → description, as listed."""
    goods: Listing
    faq: tuple[tuple[str, str], ...]
    comments: tuple[str, ...]
    host: tuple[str, ...]
    history: tuple[str, ...]
    events: tuple[str, ...]
    order: tuple[str, ...]
    """Where "this one" is looked for: `history`, `host`, `presented`, in the prompt's own order."""
    rounds: int
    """Rounds the prompt allows."""
    group: dict[str, str]
    """Skill name → title of the list it stands in."""
    system: str
    opening: str
    """Text of all messages before the policy acted."""

    def tool(self, name: str) -> Offer | None:
        """The offered tool of that name."""
        return next((t for t in self.tools if t.name == name), None)


@dataclass
class Turn:
    """What has happened since: loads, results, drafts, objections."""

    loaded: dict[str, str] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    objections: list[str] = field(default_factory=list)
    rounds: int = 0

    @property
    def last_failed(self) -> bool:
        """Whether one of the newest calls could not be done."""
        return any(a.failed for a in self.answers[-2:])

    def called(self, tool: str) -> bool:
        """Whether a tool was called already."""
        return any(a.tool == tool for a in self.answers)
