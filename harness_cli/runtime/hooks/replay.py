"""Hooks on recorded events: the moments of a trajectory, or of a file, through `run_hooks`."""

from collections.abc import Iterator, Sequence

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.harness import HarnessState, Skill
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Step, Trajectory
from harness_cli.runtime.arguments import parse_arguments
from harness_cli.runtime.hooks.command import Workshop
from harness_cli.runtime.hooks.compiled import compile_hooks
from harness_cli.runtime.hooks.moment import Asked, Ledger, Moment, Ruling
from harness_cli.runtime.hooks.run import run_hooks


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded event and what the hooks say of it."""

    event: str
    step: int | None
    about: str
    """The call, the text or the comment."""
    action: str
    hooks: tuple[dict[str, object], ...]


def read_moments(text: bytes, *, name: str) -> list[Moment]:
    """The events of a JSON file: one, a list, or JSON lines. Raises `BadFile`."""
    stripped = text.strip()
    try:
        if stripped.startswith(b"["):
            return msgspec.json.decode(stripped, type=list[Moment])
        return [msgspec.json.decode(part, type=Moment) for part in stripped.splitlines() if part]
    except (msgspec.ValidationError, msgspec.DecodeError) as exc:
        try:
            return [msgspec.json.decode(stripped, type=Moment)]
        except (msgspec.ValidationError, msgspec.DecodeError):
            hint = 'such as {"event": "before_reply", "reply": "…"}, see docs/hooks.md'
            raise BadFile(f"{name}: {exc}", hint=hint) from exc


def moments_of(trajectory: Trajectory, state: HarnessState, request: Request) -> Iterator[Moment]:
    """The events of a recorded rollout, in order, as its hooks saw them."""
    past = Moment(
        event="request",
        request=request,
        session_id=trajectory.request_id,
        harness_id=state.id,
        constraints=state.pipelines["default"].constraints if state.pipelines else {},
    )
    yield past
    for step in trajectory.steps:
        yield from _step(past, step, state)
        past.calls = [*past.calls, *step.calls]
        for call in step.calls:
            skill = _loaded(call.result.structured, state) if call.result.ok else None
            if skill is not None:
                past.skills = [*past.skills, skill.name]
                if skill.kind != "strategy":
                    past.reply_skills = [*past.reply_skills, skill.name]
    if trajectory.reply:
        yield msgspec.structs.replace(past, event="after_reply", reply=trajectory.reply, step=None)


def _step(past: Moment, step: Step, state: HarnessState) -> Iterator[Moment]:
    """The events of one model call."""
    tools = {tool.name: tool for tool in state.all_tools()}
    asked = []
    for call in step.calls:
        arguments, problem = parse_arguments(call.arguments_raw)
        asked.append(
            Asked(
                id=call.id,
                name=call.name,
                arguments_raw=call.arguments_raw,
                arguments=arguments,
                problem=problem,
                tool=tools.get(call.name),
            )
        )
    # The compact fallback offers no tools; its step says so by the digest of none.
    compact = bool(past.harness_id) and not step.tools_digest and bool(tools)
    at = msgspec.structs.replace(past, step=step.index, compact=compact)
    if compact:
        text = (step.reply.content or "").strip()
        yield msgspec.structs.replace(at, event="before_reply", reply=text)
        return
    yield msgspec.structs.replace(at, event="before_model")
    text = (step.reply.content or "").strip()
    yield msgspec.structs.replace(
        at, event="after_model", answer=step.reply, asked=asked, reply=text
    )
    for one, call in zip(asked, step.calls, strict=True):
        yield msgspec.structs.replace(at, event="before_tool", call=one)
        yield msgspec.structs.replace(at, event="after_tool", call=one, result=call.result)
    if not step.calls:
        yield msgspec.structs.replace(at, event="before_reply", answer=step.reply, reply=text)


def _loaded(structured: object, state: HarnessState) -> Skill | None:
    name = structured.get("skill") if isinstance(structured, dict) else None
    return state.skill(name) if isinstance(name, str) else None


async def try_hooks(
    moments: Sequence[Moment], state: HarnessState, *, seconds: float, only: str | None = None
) -> list[Outcome]:
    """What the hooks of a state (or `only` one of them) say of recorded events."""
    hooks = [h for h in state.hooks if only in (None, h.name)]
    book, workshop, ledger = compile_hooks(hooks), Workshop(state.files), Ledger()
    found: list[Outcome] = []
    session = ""
    for moment in moments:
        if not moment.session_id or moment.session_id != session:
            ledger, session = Ledger(), moment.session_id  # retries count within one rollout
        about = _about(moment)
        ruling = await run_hooks(
            book[moment.event], moment, ledger, seconds=seconds, workshop=workshop
        )
        found.append(_outcome(moment, ruling, about))
    return found


def _outcome(moment: Moment, ruling: Ruling, about: str) -> Outcome:
    action = "deny some calls" if ruling.calls and ruling.action == "allow" else ruling.action
    return Outcome(
        event=moment.event,
        step=moment.step,
        about=about,
        action=action,
        hooks=tuple(
            {"hook": e.hook, "outcome": e.outcome, "check": e.check, "reason": e.reason}
            for e in ruling.events
        ),
    )


def _about(moment: Moment) -> str:
    if moment.call is not None:
        return f"{moment.call.name}({moment.call.arguments_raw})"
    if moment.reply:
        return moment.reply
    if moment.asked:
        return ", ".join(a.name for a in moment.asked)
    return " / ".join(c.text for c in moment.request.comments)
