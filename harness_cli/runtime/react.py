"""The ReAct baseline (TR Table 14, first row): one prompt, the same tools, no modular harness."""

import re

import msgspec

from harness_cli.records.harness import Block, HarnessState, Pipeline

REACT_BLOCK = "react"
REACT_PROMPT = """\
You are the host of a live-commerce room and answer what viewers write.

Work in a loop of reasoning and acting: think about what you need to know, call the tools that tell
you, read their results, and go on until you can answer. Then write the reply alone: one or two
spoken sentences, in the viewer's language. Say only what the tools or the FAQ told you.
"""
_CONTEXT = re.compile(r"\{[{%][^}]*\b(?:products|room|request)\b")
_HARNESS = re.compile(r"\{[{%][^}]*\b(?:skills|loaded|constraints)\b")


def react_state(state: HarnessState) -> HarnessState:
    """The state of the baseline: this prompt, then the room and the request; no skill, no hook.

    A harness may bring its own as `prompts/pipeline.react.yaml`.
    """
    tools = tuple(t for t in state.tools if t.operation != "load_skill")
    own = state.pipelines.get(REACT_BLOCK)
    if own is not None:
        return msgspec.structs.replace(state, tools=tools, skills=(), hooks=())
    known = state.pipelines.get("default") or Pipeline(blocks=())
    kept = tuple(b for b in known.blocks if b.role == "user" or _is_context(state, b))
    return msgspec.structs.replace(
        state,
        tools=tools,
        skills=(),
        hooks=(),
        pipelines={REACT_BLOCK: Pipeline(blocks=(Block(name=REACT_BLOCK), *kept))},
        blocks={**state.blocks, REACT_BLOCK: REACT_PROMPT},
    )


def _is_context(state: HarnessState, block: Block) -> bool:
    """A block that states the room or the request, and nothing of skills or limits."""
    text = state.blocks.get(block.name, "")
    return bool(_CONTEXT.search(text)) and not _HARNESS.search(text)
