"""The tools of the loop itself: `load_skill`, `refuse`, and those that answer."""

from difflib import get_close_matches
from typing import Any

from harness_cli.harness.tools import skill_argument
from harness_cli.records.harness import Skill, Tool
from harness_cli.records.trajectory import ToolErrorKind, ToolResult
from harness_cli.runtime.session import Session


def call_builtin(session: Session, tool: Tool, arguments: dict[str, Any]) -> ToolResult:
    """The result of a built-in tool; it changes the session and nothing outside it."""
    operation = tool.operation
    if operation == "load_skill":
        return _load_skill(session, str(arguments.get(skill_argument(tool) or "") or ""))
    if operation == "refuse":
        theirs = {tool.argument_names.get(k, k): v for k, v in arguments.items()}
        return _refuse(session, str(theirs.get("reason") or ""))
    if operation == "answer":
        return _answer(session, arguments)
    return ToolResult(
        ok=False,
        content=f"the runtime has no built-in tool `{operation}`",
        error=ToolErrorKind.UNAVAILABLE,
    )


def _load_skill(session: Session, name: str) -> ToolResult:
    """A skill's body as the result, so that the policy reads it where it asked for it."""
    skill = session.prepared.state.skill(name)
    if skill is None:
        return _no_skill(session, name)
    again = name in session.skills
    if not again:
        session.skills.append(name)
        if skill.kind != "strategy":
            session.reply_skills.append(name)
    body = f"The skill `{name}` is loaded already, see above." if again else skill_text(skill)
    return ToolResult(
        ok=True,
        content=body,
        structured={"skill": name, "kind": skill.kind, "version": skill.version},
    )


def skill_text(skill: Skill) -> str:
    """What the policy is shown of a loaded skill."""
    return f"# Skill: {skill.name}\n\n{skill.body.strip()}\n"


def _no_skill(session: Session, name: str) -> ToolResult:
    known = [s.name for s in session.prepared.state.skills]
    near = get_close_matches(name.replace("_", "-"), known, n=1, cutoff=0.6)
    hint = f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(known)}"
    return ToolResult(
        ok=False, content=f"no skill named `{name}`{hint}", error=ToolErrorKind.NOT_FOUND
    )


def _refuse(session: Session, reason: str) -> ToolResult:
    """The rollout ends with this call: nothing is said in public."""
    session.refused = True
    structured = {"refused": True, "reason": reason}
    return ToolResult(ok=True, content="Nothing is said in public.", structured=structured)


def _answer(session: Session, arguments: dict[str, Any]) -> ToolResult:
    """The rollout ends with this call: what a judge submits. The first call counts."""
    if session.answer is None:
        session.answer = arguments
    return ToolResult(ok=True, content="Received.", structured={"received": True})
