"""Scripted solvers of a draft: one that knows the answer, and three that must not pass.

None of them is a policy under test: they are what the rubrics are tested with.
"""

import json
from typing import Any

from harness_cli.harness.tools import skill_argument
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.harness import HarnessState
from harness_cli.records.trajectory import Step, ToolCall, ToolResult, Trajectory
from harness_cli.simulator.robustness.drafts import Call, Draft

EMPTY_WORDS = {
    "en": "Welcome everyone, let me look into that for you.",
    "zh": "欢迎大家，我帮您看一下。",
}


def oracle(draft: Draft, state: HarnessState) -> ScriptedPolicy:
    """Loads the skill the harness asks for, makes the calls one after another, says the answer."""
    opening = _skill_call(state)
    turns = [[opening, draft.calls[0]] if opening else [draft.calls[0]]]
    turns += [[call] for call in draft.calls[1:]]
    return ScriptedPolicy([*(_turn(n, turn) for n, turn in enumerate(turns)), draft.reply])


def impostors(draft: Draft) -> dict[str, Trajectory]:
    """What must not pass: empty words, the comment said back, the wrong tool or order."""
    comment = draft.item.request.comments[0].text
    language = "zh" if "zh" in draft.item.tags else "en"
    return {
        "empty words": _said(EMPTY_WORDS[language]),
        "the comment itself": _said(comment),
        "the wrong calls": _said(draft.wrong_reply, draft.wrong_calls),
    }


def _said(reply: str, calls: tuple[Call, ...] = ()) -> Trajectory:
    made = tuple(
        ToolCall(
            id=f"c{n}",
            name=name,
            arguments_raw=json.dumps(arguments),
            arguments=arguments,
            result=ToolResult(ok=True, content=""),
        )
        for n, (name, arguments) in enumerate(calls)
    )
    step = Step(index=0, messages=(), reply=ChatReply(content=reply), calls=made)
    return Trajectory(request_id="impostor", steps=(step,), reply=reply)


def _turn(number: int, calls: list[Call]) -> ChatReply:
    return ChatReply(
        tool_calls=tuple(
            RawToolCall(id=f"c{number}-{n}", name=name, arguments=json.dumps(arguments))
            for n, (name, arguments) in enumerate(calls)
        ),
        finish_reason="tool_calls",
    )


def _skill_call(state: HarnessState) -> tuple[str, dict[str, Any]] | None:
    """A reply skill has to be loaded before anything is said, whatever it is called now."""
    loader = next((t for t in state.all_tools() if t.operation == "load_skill"), None)
    argument = skill_argument(loader) if loader else None
    skills = sorted(s.name for s in state.skills if s.kind == "reply")
    if loader is None or argument is None or not skills:
        return None
    chosen = "item-qa" if "item-qa" in skills else skills[0]
    return loader.name, {argument: chosen}
