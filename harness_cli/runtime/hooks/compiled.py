"""The hooks of a state, ready to run: compiled once, then used by every rollout."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from harness_cli.errors import HookError, UsageError
from harness_cli.harness.conditions import holds
from harness_cli.records.harness import HOOK_EVENTS, Hook
from harness_cli.records.request import Request
from harness_cli.runtime.hooks.moment import Moment, Objection
from harness_cli.runtime.hooks.patterns import may_spin
from harness_cli.runtime.hooks.registry import CHECKS

CheckFunction = Callable[[Moment], Objection | None]


@dataclass(frozen=True, slots=True)
class ReadyHook:
    """One hook with its checks compiled. `broken` says why it cannot decide anything."""

    hook: Hook
    checks: tuple[tuple[str, CheckFunction], ...] = ()
    broken: str = ""
    risky: bool = False
    """One of its patterns could backtrack without end, so its checks run under a timer."""

    def concerns(self, moment: Moment) -> bool:
        """Whether this hook's tool patterns cover the call of the moment."""
        patterns = self.hook.tools
        if moment.call is None or patterns == ("*",):
            return True
        return any(fnmatchcase(moment.call.name, p) for p in patterns)


HookBook = dict[str, tuple[ReadyHook, ...]]
"""Event → its hooks in the order in which they run."""


def compile_hooks(hooks: Iterable[Hook]) -> HookBook:
    """Hooks by event, by priority and then name."""
    ordered = sorted(hooks, key=lambda h: (h.priority, h.name))
    ready = [compile_hook(h) for h in ordered]
    return {event: tuple(r for r in ready if r.hook.event == event) for event in HOOK_EVENTS}


def compile_hook(hook: Hook) -> ReadyHook:
    """One hook, ready; settings that cannot be meant make it a hook that fails when it is run."""
    try:
        checks = tuple((c.check, make_check(c.check, c.with_)) for c in hook.checks)
        holds(hook.when, Request())
    except (HookError, UsageError) as exc:
        return ReadyHook(hook, broken=str(exc))
    if not checks and not hook.command:
        return ReadyHook(hook, broken="it names neither checks nor a command")
    return ReadyHook(hook, checks, risky=any(_risky(c.with_) for c in hook.checks))


def _risky(settings: dict[str, Any]) -> bool:
    lists = [v for v in settings.values() if isinstance(v, list | tuple)]
    return any(isinstance(text, str) and may_spin(text) for texts in lists for text in texts)


def make_check(name: str, settings: dict[str, Any]) -> CheckFunction:
    """A built-in check with its settings; `HookError` for an unknown check or setting."""
    made = CHECKS.get(name)
    if made is None:
        raise HookError(f"no check named `{name}`; known: {', '.join(sorted(CHECKS))}")
    try:
        return made(**settings)
    except TypeError as exc:
        raise HookError(f"check `{name}`: {str(exc).split('() ')[-1]}") from exc


def hook_problems(hook: Hook) -> list[str]:
    """What keeps a hook from ever deciding, for a lint."""
    ready = compile_hook(hook)
    return [ready.broken] if ready.broken else []
