"""What a harness state becomes before the first rollout: compiled once, shared by all."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from harness_cli.harness.tools import offered
from harness_cli.records.canonical import digest
from harness_cli.records.harness import Constraint, HarnessState, Pipeline, Tool
from harness_cli.runtime.hooks.command import Workshop
from harness_cli.runtime.hooks.compiled import HookBook, compile_hooks
from harness_cli.runtime.react import REACT_BLOCK, react_state

Kind = Literal["harness", "react", "bare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A state, ready to act."""

    state: HarnessState
    """The state prompts are rendered from: without skills and hooks for the ReAct baseline."""
    pipeline: str
    tools: dict[str, Tool]
    """Everything offered, by name."""
    definitions: tuple[dict[str, Any], ...]
    """The same in OpenAI form."""
    tools_digest: str
    hooks: HookBook
    constraints: dict[str, Constraint]
    workshop: Workshop
    mcp_tools: frozenset[str] = frozenset()

    def served(self, tool: str) -> bool:
        """Whether an MCP server runs this tool."""
        return tool in self.mcp_tools


def prepare(
    state: HarnessState, *, kind: Kind, pipeline: str, overlay: tuple[dict[str, Any], ...]
) -> Prepared:
    """Compile a state for one kind of agent.

    `bare` has no tools and no hooks; `react` has one prompt, the same tools without `load_skill`,
    and of the hooks only those of the event `request`.
    """
    hooks = state.hooks
    if kind == "react":
        state, pipeline = react_state(state), REACT_BLOCK
        hooks = tuple(h for h in hooks if h.event == "request")
    if kind == "bare":
        state = msgspec.structs.replace(state, tools=(), skills=(), lock=type(state.lock)())
        hooks, overlay = (), ()
    definitions = offered(state, overlay=overlay)
    tools = {t.name: t for t in state.all_tools()}
    tools |= {t.name: t for t in (overlaid(o) for o in overlay)}
    used = state.pipelines.get(pipeline) or Pipeline(blocks=())
    return Prepared(
        state=state,
        pipeline=pipeline,
        tools=tools,
        definitions=definitions,
        tools_digest=digest(definitions) if definitions else "",
        hooks=compile_hooks(hooks),
        constraints=used.constraints,
        workshop=Workshop(state.files),
        mcp_tools=frozenset(
            t.tool.name for server in state.lock.servers.values() for t in server.values()
        ),
    )


def overlaid(definition: dict[str, Any]) -> Tool:
    """A tool of an item's overlay, in OpenAI or in MCP form, run by the executor `returns`."""
    plain = definition.get("function", definition)
    schema = plain.get("inputSchema") or plain.get("parameters") or {"type": "object"}
    return Tool(
        name=str(plain.get("name", "")),
        description=str(plain.get("description", "")),
        input_schema=schema,
        output_schema=plain.get("outputSchema"),
        annotations=plain.get("annotations", {}),
        meta={"harness.executor": "returns"},
    )
