"""A model's chat template: conversations in, text out, as `transformers` renders them.

The environment is the one of `transformers.utils.chat_template_utils` (5.24): sandboxed, blocks
trimmed, loop controls, its filters and globals, and the `{% generation %}` tag. Here the tag leaves
two marks in the text in place of counting what was rendered before it, so that a tag inside a macro
or a captured block is found where it ends up. Nothing of torch or transformers is loaded.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness_cli.errors import BadFile, MaskError
from harness_cli.models.template_messages import ArgumentForm, as_template_reads
from harness_cli.records.canonical import sha256
from harness_cli.records.chat import Message

PRIVATE: Final = range(0xE000, 0xF8FF)
"""Code points of no meaning: two that occur nowhere else mark what the policy generates."""
FILES = ("chat_template.jinja", "tokenizer_config.json")
Tools = Sequence[Mapping[str, Any]]
Mark = tuple[int, int]


class Generation(Extension):
    """`{% generation %}…{% endgeneration %}`: the body between the two marks of this rendering."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        """The block as a call of `_marked`."""
        at = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        marks: list[nodes.Expr] = [nodes.ContextReference()]
        return nodes.CallBlock(self.call_method("_marked", marks), [], [], body).set_lineno(at)

    def _marked(self, context: jinja2.runtime.Context, caller: Macro) -> str:
        marks = context.resolve("generation_marks")
        text = str(caller())
        return text if isinstance(marks, jinja2.Undefined) else f"{marks[0]}{text}{marks[1]}"


@dataclass(frozen=True)
class ChatTemplate:
    """A template and what it is rendered with. Equal inputs give equal text, on any day."""

    source: str
    name: str = "template"
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Special tokens (`bos_token` …) and settings (`enable_thinking` …) of every rendering."""
    today: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    """What `strftime_now` tells: a row must not depend on the day it was made."""

    @classmethod
    def read(cls, path: Path, *, today: datetime | None = None) -> "ChatTemplate":
        """The template of a file, or of a model's folder with its special tokens.

        Raises `BadFile` where there is none.
        """
        when = {} if today is None else {"today": today}
        config: dict[str, Any] = {}
        source = None
        if path.is_file():
            source = path.read_text(encoding="utf-8")
        elif path.is_dir():
            own, settings = (path / name for name in FILES)
            if settings.is_file():
                config = json.loads(settings.read_text(encoding="utf-8"))
            source = own.read_text("utf-8") if own.is_file() else config.get("chat_template")
        if not isinstance(source, str):
            hint = f"a model's folder has `{FILES[0]}`; or name a Jinja file"
            raise BadFile(f"`{path}` holds no chat template", hint=hint)
        return cls(source, name=path.name, variables=special_tokens(config), **when)

    def with_tokens_of(self, folder: Path) -> "ChatTemplate":
        """The same template with the special tokens of a model's folder."""
        file = folder / FILES[1]
        if not file.is_file():
            return self
        config = json.loads(file.read_text(encoding="utf-8"))
        return replace(self, variables={**special_tokens(config), **self.variables})

    @property
    def sha256(self) -> str:
        """Of the template's text."""
        return sha256(self.source.encode())

    @property
    def marked(self) -> bool:
        """Whether it says by itself what is generated."""
        blocks = self._tree.find_all(nodes.CallBlock)
        return any(isinstance(block.call.node, nodes.ExtensionAttribute) for block in blocks)

    def render(
        self,
        messages: Sequence[Message],
        tools: Tools | None,
        *,
        prompt: bool = False,
        **variables: Any,
    ) -> str:
        """The text of a conversation; with `prompt` up to where the policy's next turn begins.

        `tools=None` and `tools=[]` are kept apart: some templates render them differently. Raises
        `MaskError` with the template's own words where it refuses the conversation.
        """
        given = as_template_reads(messages, self.arguments)
        return self._rendered(given, tools, prompt=prompt, **variables)

    def marks(self, messages: Sequence[Message], tools: Tools | None) -> tuple[str, list[Mark]]:
        """The text by way of its generation marks, and their (start, end) in it.

        Raises `MaskError` for marks that are nested or left open.
        """
        given = as_template_reads(messages, self.arguments)
        everything = self.source + json.dumps([given, tools], ensure_ascii=False, default=str)
        free = (chr(c) for c in PRIVATE if chr(c) not in everything)
        pair = next(free) + next(free)
        return taken_out(self._rendered(given, tools, generation_marks=pair), pair)

    @cached_property
    def arguments(self) -> ArgumentForm | None:
        """How tool calls have to be given: arguments as an object, as text, or (None) not at all:
        the template loses or garbles them."""
        return next((form for form in ("object", "text") if self._carries(form)), None)

    @cached_property
    def empty_think(self) -> str:
        """What turning thinking off adds to the prompt of a turn: Qwen's empty think block."""
        asked: list[Message] = [{"role": "user", "content": "?"}]
        try:
            plain = self._rendered(asked, None, prompt=True)
            base = self._rendered(asked, None, enable_thinking=False)
            off = self._rendered(asked, None, prompt=True, enable_thinking=False)
            turn = plain.removeprefix(self._rendered(asked, None))
        except MaskError:
            return ""
        added = off.removeprefix(base)
        return added.removeprefix(turn) if added.startswith(turn) else ""

    def _carries(self, form: ArgumentForm) -> bool:
        call = {"name": "probe_name", "arguments": {"probe_key": "probe_value"}}
        asked: list[Message] = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": call}]},
        ]
        try:
            text = self._rendered(as_template_reads(asked, form), None)
        except MaskError:
            return False
        whole = all(word in text for word in ("probe_name", "probe_key", "probe_value"))
        return whole and '\\"probe_key' not in text

    def _rendered(
        self,
        messages: Sequence[Message],
        tools: Tools | None,
        *,
        prompt: bool = False,
        **variables: Any,
    ) -> str:
        given = {**self.variables, **variables}
        try:
            return self._compiled.render(
                messages=messages, tools=tools, add_generation_prompt=prompt, **given
            )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError) as exc:
            raise MaskError(f"template `{self.name}` refuses the conversation: {exc}") from exc

    @cached_property
    def _environment(self) -> ImmutableSandboxedEnvironment:
        made = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
        )
        made.filters["tojson"] = tojson
        made.globals["raise_exception"] = refuse
        made.globals["strftime_now"] = self.today.strftime
        return made

    @cached_property
    def _tree(self) -> nodes.Template:
        try:
            return self._environment.parse(self.source)
        except jinja2.TemplateSyntaxError as exc:
            raise BadFile(f"{self.name}:{exc.lineno}: {exc.message}") from exc

    @cached_property
    def _compiled(self) -> jinja2.Template:
        return self._environment.from_string(self._tree)


def special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token` and the like of a tokenizer's settings, as templates are given them."""
    found: dict[str, str] = {}
    for name, value in config.items():
        if name.endswith("_token"):
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                found[name] = text
    return found


def taken_out(text: str, pair: str) -> tuple[str, list[Mark]]:
    """The text without marks, and where they stood in it."""
    pieces: list[str] = []
    marks: list[Mark] = []
    at, begun = 0, -1
    for piece in _pieces(text, pair):
        if piece == pair[0] and begun < 0:
            begun = at
        elif piece == pair[1] and begun >= 0:
            marks.append((begun, at))
            begun = -1
        elif piece in pair:
            raise MaskError("generation marks are nested")
        else:
            pieces.append(piece)
            at += len(piece)
    if begun >= 0:
        raise MaskError("a generation mark is left open")
    return "".join(pieces), marks


def _pieces(text: str, pair: str) -> list[str]:
    found = []
    for part in text.split(pair[0]):
        inner = part.split(pair[1])
        for piece in inner[:-1]:
            found += [piece, pair[1]]
        found += [inner[-1], pair[0]]
    return [piece for piece in found[:-1] if piece]


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The filter as `transformers` has it: no HTML escapes, as Jinja's own would make."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def refuse(message: str) -> None:
    """`raise_exception` of templates."""
    raise jinja2.TemplateError(message)
