"""All hooks of one event, in order, into one ruling. Semantics: docs/hooks.md."""

import time
from collections.abc import Sequence
from typing import Literal

from harness_cli.errors import HookError
from harness_cli.harness.conditions import holds
from harness_cli.records.counting import counted
from harness_cli.records.harness import HookAction
from harness_cli.records.trajectory import HookEvent, ToolErrorKind, ToolResult
from harness_cli.runtime.hooks.command import Decision, Workshop, run_command
from harness_cli.runtime.hooks.compiled import ReadyHook
from harness_cli.runtime.hooks.moment import STRENGTH, Ledger, Moment, Objection, Ruling
from harness_cli.runtime.hooks.patterns import bounded

Outcome = Literal["allow", "rewrite", "retry", "deny", "fallback", "suppress", "failed"]


async def run_hooks(
    hooks: Sequence[ReadyHook],
    moment: Moment,
    ledger: Ledger,
    *,
    seconds: float,
    workshop: Workshop,
) -> Ruling:
    """Run the hooks of an event; the strongest action wins, and all reasons are kept.

    `seconds` bounds each hook (with its own `timeout_s`, the smaller). A rewrite changes the
    moment in place. After `deny`, `fallback` or `suppress` no further hook is asked.
    """
    ruling = Ruling()
    for ready in hooks:
        hook = ready.hook
        if not ready.concerns(moment):
            continue
        if hook.when and not ready.broken and not holds(hook.when, moment.request):
            continue
        started = time.perf_counter()
        bound = min(seconds, hook.timeout_s)
        try:
            decisions = await _decide(ready, moment, bound, workshop)
        except HookError as exc:
            decisions = [_failed(ready, str(exc))]
        for decision in decisions:
            _settle(ready, decision, moment, ledger, ruling, time.perf_counter() - started)
        if STRENGTH[ruling.action] >= STRENGTH["deny"]:
            break
    return ruling


async def _decide(
    ready: ReadyHook, moment: Moment, seconds: float, workshop: Workshop
) -> list[Decision]:
    """What the checks or the command of one hook say; empty when they have nothing to say."""
    if ready.broken:
        raise HookError(ready.broken)
    if ready.risky:
        with bounded(seconds):
            found = _check(ready, moment)
    else:
        found = _check(ready, moment)
    if ready.hook.command and not found:
        decision = await run_command(ready.hook, moment, seconds, workshop)
        if decision.outcome != "allow" or decision.reason:
            found.append(decision)
    return found


def _check(ready: ReadyHook, moment: Moment) -> list[Decision]:
    """What the checks of a hook object to."""
    found = []
    for name, check in ready.checks:
        objection = check(moment)
        if objection is not None:
            found.append(_objected(ready.hook.action, name, objection, moment))
    return found


def _objected(action: HookAction, name: str, objection: Objection, moment: Moment) -> Decision:
    """A check's objection under its hook's action; a repair is carried out at once."""
    if action == "rewrite" and not _repair(objection, moment):
        return Decision("deny", f"{objection.reason} (it cannot be repaired)", check=name)
    return Decision(action, objection.reason, check=name, calls=objection.calls)


def _repair(objection: Objection, moment: Moment) -> bool:
    """Put a check's repair in the place of what it objected to; False when it has none."""
    if objection.reply is not None:
        moment.reply = objection.reply
        return True
    if objection.request is not None:
        moment.request = objection.request
        return True
    if objection.arguments is not None and moment.call is not None:
        moment.call.arguments, moment.call.errors = objection.arguments, None
        return True
    return False


def _failed(ready: ReadyHook, why: str) -> Decision:
    """The state *hook failed*: `on_failure` decides, never what the hook half did."""
    return Decision("failed", why, open=ready.hook.on_failure == "open")


def _settle(
    ready: ReadyHook,
    decision: Decision,
    moment: Moment,
    ledger: Ledger,
    ruling: Ruling,
    latency_s: float,
) -> None:
    """Record one decision and let it count."""
    hook = ready.hook
    outcome: Outcome = decision.outcome
    reason = decision.reason
    action = decision.outcome
    if outcome == "failed":
        action = "allow" if decision.open else _closed(hook.action)
    if action == "retry" and not ledger.retry(hook):
        action, outcome = "fallback", "fallback" if outcome == "retry" else outcome
        reason = f"{reason} (after {counted(hook.max_retries, 'retry', 'retries')})"
    _apply(decision, moment)
    ruling.events.append(
        HookEvent(
            hook=hook.name,
            event=hook.event,
            outcome=outcome,
            check=decision.check,
            reason=reason,
            step=moment.step,
            latency_s=latency_s,
        )
    )
    if action in ("allow", "rewrite", "failed"):
        return
    message = hook.message.replace("{reason}", decision.reason) or decision.reason
    _count(ruling, action, message, decision)


def _count(ruling: Ruling, action: str, message: str, decision: Decision) -> None:
    """Let an objection count: refused calls by index, or the whole event."""
    if decision.calls is not None and action in ("retry", "deny"):
        for index in decision.calls:
            ruling.calls.setdefault(index, message)
        return
    if message not in ruling.messages:
        ruling.messages.append(message)
    if STRENGTH[action] > STRENGTH[ruling.action]:
        ruling.action = action  # type: ignore[assignment]  # one of STRENGTH's keys
        ruling.check = decision.check


def _closed(action: HookAction) -> HookAction:
    """What a failed hook does under `on_failure: closed`: as if it had objected."""
    return "deny" if action in ("allow", "rewrite") else action


def _apply(decision: Decision, moment: Moment) -> None:
    """Carry out what a command hook rewrote."""
    if decision.reply is not None:
        moment.reply = decision.reply
    if decision.tool_input is not None and moment.call is not None:
        moment.call.arguments, moment.call.errors = decision.tool_input, None
        moment.call.problem = ""
    if decision.tool_response is not None:
        moment.result = ToolResult(
            ok=True, content=decision.tool_response, structured=None, error=None
        )


def refused(kind: ToolErrorKind, message: str) -> ToolResult:
    """The typed observation of a call that was not carried out."""
    return ToolResult(ok=False, content=message, error=kind)
