"""The system prompt pipeline: blocks in order, each under its condition, into chat messages.

Source: TR §2.3 and Fig. 3 (dynamic instruction assembly). Templates are compiled once per set of
blocks; the text of a block whose inputs did not change is not made again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness_cli.errors import UnknownName
from harness_cli.harness.conditions import CONDITIONS as CONDITIONS
from harness_cli.harness.conditions import compiled as compiled_condition
from harness_cli.harness.conditions import holds as holds
from harness_cli.harness.memo import Memo
from harness_cli.harness.templates import Compiled, compile_block, environment
from harness_cli.harness.tokens import estimate
from harness_cli.harness.views import (
    REQUEST_VIEWS,
    World,
    chat_history,
    fixed_values,
    harmless,
    loaded_skills,
    one_line,
)
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import Message
from harness_cli.records.harness import Block, HarnessState, Pipeline
from harness_cli.records.request import Request

_ALWAYS_NEW = {f"request.{name}" for name in ("comments", "anchor", "faq", "history", "events")}
_KEPT = 256


@dataclass(frozen=True, slots=True)
class BlockPreview:
    """One block of a rendered prompt."""

    name: str
    role: str
    when: str | None
    shown: bool
    text: str
    tokens: int
    """≈, see `harness.tokens.estimate`."""


class _Section:
    """A block of one pipeline, with the texts it made."""

    def __init__(self, block: Block, compiled: Compiled) -> None:
        self.block = block
        self.compiled = compiled
        self.test = compiled_condition(block.when) if block.when else None
        needs = compiled.needs
        self.fixed = not (needs & _ALWAYS_NEW) and "instructions" not in needs
        self.of_world = bool(needs & {"products", "room", "today"})
        self.of_room = bool(needs & {"products", "room", "request.room"})
        self.of_loaded = "loaded" in needs
        self.made: OrderedDict[Any, str] = OrderedDict()

    def text(self, inputs: "_Inputs") -> str:
        """The block's text for these inputs, from memory when it depends on nothing new."""
        if not self.fixed:
            return self.compiled.render(inputs.values(self.compiled.needs))
        request = inputs.request
        key = (
            request.channel,
            request.mode,
            inputs.world_key if self.of_world else 0,
            request.room if self.of_room else None,
            inputs.loaded if self.of_loaded else (),
        )
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self.compiled.render(inputs.values(self.compiled.needs))
            if len(self.made) > _KEPT:
                self.made.popitem(last=False)
        return found


class _Inputs:
    """What one rendering is made from; views are built when a block asks for them."""

    def __init__(
        self,
        prompt: "_Prompt",
        request: Request,
        world: Catalogue,
        loaded: tuple[str, ...],
        instructions: tuple[str, ...],
    ) -> None:
        self.prompt = prompt
        self.request = request
        self.world = prompt.world(world)
        self.world_key = id(self.world)
        self.loaded = loaded
        self.instructions = instructions
        self._request: dict[str, Any] = {}
        self._values: dict[str, Any] = {**prompt.fixed, "request": self._request}

    def values(self, needs: frozenset[str]) -> dict[str, Any]:
        """The variables, with at least those in `needs`."""
        for need in needs:
            whole, _, part = need.partition(".")
            if part:
                if part in REQUEST_VIEWS and part not in self._request:
                    self._request[part] = REQUEST_VIEWS[part](self.request)
            elif whole not in self._values:
                self._values[whole] = self._make(whole)
        return self._values

    def _make(self, name: str) -> Any:
        if name == "products":
            return self.world.products(self.request)
        if name == "room":
            return self.world.room(self.request)
        if name == "today":
            return self.world.today
        if name == "loaded":
            return loaded_skills(self.prompt.state, self.loaded)
        return [harmless(words) for words in self.instructions]


class _Prompt:
    """One pipeline of one state, compiled."""

    def __init__(self, state: HarnessState, pipeline: Pipeline) -> None:
        self.state = state
        self.fixed = fixed_values(state, pipeline)
        env = environment(state.blocks)
        self.sections = [
            _Section(block, compile_block(env, block.name, state.blocks.get(block.name, "")))
            for block in pipeline.blocks
        ]
        self.places_instructions = any("instructions" in s.compiled.needs for s in self.sections)
        self._worlds: Memo[World] = Memo(4)

    def world(self, catalogue: Catalogue) -> World:
        """The catalogue, indexed once."""
        return self._worlds.get((catalogue,), "", lambda: self._index(catalogue))

    def _index(self, catalogue: Catalogue) -> World:
        for section in self.sections:
            if section.of_world:  # a forgotten world's identity may come back
                section.made.clear()
        return World(catalogue)


_PROMPTS: Memo[_Prompt] = Memo(32)


def render(
    state: HarnessState,
    request: Request,
    world: Catalogue,
    *,
    pipeline: str = "default",
    loaded: Sequence[str] = (),
    instructions: Sequence[str] = (),
) -> tuple[Message, ...]:
    """The messages a rollout starts with: system, earlier turns, and what viewers said.

    `loaded` names skills whose bodies stand in the prompt; `instructions` are those of a
    robustness item's overlay, put where a block asks for them, else at the end of the system
    message. Raises `BadFile` with a block's file and line when it cannot be rendered.
    """
    prompt = _prompt(state, pipeline)
    inputs = _Inputs(prompt, request, world, tuple(loaded), tuple(instructions))
    system: list[str] = []
    user: list[str] = []
    for section in prompt.sections:
        if section.test is None or section.test(request):
            text = section.text(inputs)
            if text:
                (system if section.block.role == "system" else user).append(text)
    if instructions and not prompt.places_instructions:
        system.append("\n".join(f"- {harmless(words)}" for words in instructions))
    messages: list[Message] = [{"role": "system", "content": "\n\n".join(system)}]
    if request.history:
        messages += chat_history(request)
    messages.append({"role": "user", "content": "\n\n".join(user) or plain_comments(request)})
    return tuple(messages) if system else tuple(messages[1:])


def preview(
    state: HarnessState,
    request: Request,
    world: Catalogue,
    *,
    pipeline: str = "default",
    loaded: Sequence[str] = (),
    instructions: Sequence[str] = (),
) -> tuple[BlockPreview, ...]:
    """Every block of the pipeline, shown or not, with its text and ≈ tokens."""
    prompt = _prompt(state, pipeline)
    inputs = _Inputs(prompt, request, world, tuple(loaded), tuple(instructions))
    rows = []
    for section in prompt.sections:
        shown = section.test is None or section.test(request)
        text = section.text(inputs) if shown else ""
        block = section.block
        rows.append(BlockPreview(block.name, block.role, block.when, shown, text, estimate(text)))
    return tuple(rows)


def plain_comments(request: Request) -> str:
    """The comments one a line: the user message of a pipeline without a user block."""
    if request.prompt is not None and not request.comments:
        return request.prompt
    return "\n".join(
        f"{one_line(c.viewer)}: {one_line(c.text)}" if c.viewer else one_line(c.text)
        for c in request.comments
    )


def _prompt(state: HarnessState, pipeline: str) -> _Prompt:
    found = state.pipelines.get(pipeline)
    if found is None:
        raise UnknownName.of("prompt pipeline", pipeline, state.pipelines)
    parts = (state.blocks, state.skills, found)
    return _PROMPTS.get(parts, pipeline, lambda: _Prompt(state, found))
