"""Verbs by name, imported when invoked: `harness --help` loads none of them."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "init": "A working project: harness, evalsets, gates, harness.yaml",
    "demo": "The whole loop on the embedded policy, narrated",
    "doctor": "Settings with their source, what is missing, the command that fixes it",
    "check": "Lint harness, evalsets, gates and manifests: place, reason, fix",
    "show": "A skill, a tool, a hook, a rendered prompt, a run, a trajectory",
    "diff": "What changed between two harness states, by meaning",
    "run": "One request through the agent, step by step",
    "eval": "Run evalsets against a policy in a harness",
    "compare": "Paired differences of two runs, with intervals and cases",
    "diagnose": "Failure classes of a run, sizes, cases, side at fault",
    "edit": "Propose from a diagnosis, review, apply as one commit",
    "promote": "Gates, approvals, manifest, channel switch",
    "rollback": "One switch of a channel back to a proven pair, at once",
    "status": "What serves, what waits for whom, the proven pairs",
    "log": "The evolution record: stages, changes, scores, diagnosis",
    "manifest": "Verify, show, diff, list release manifests",
    "incidents": "Guardrail hits, retries, fallbacks, suppressed replies by version",
    "runs": "List, show, prune runs",
    "evalset": "Digest, check, seal and export evalsets",
    "judge": "Agreement of a judge with labels",
    "tools": "Lock, check and call tools",
    "hooks": "Run hooks on recorded events",
    "serve": "An embedded policy behind an OpenAI-compatible endpoint",
}
"""Name → the line shown by `harness --help`. Verb `x` is `app` in `commands/x.py`."""

EPILOG = (
    "Exit codes: 0 done or passed, 1 error, 2 usage, 3 waits for a person, 10 gate FAIL, "
    "11 gate INCONCLUSIVE, 12 stale or locked, 13 budget reached, 70 bug, 130 interrupted."
)


class LazyGroup(TyperGroup):
    """A group that knows its verbs from the table and imports one on use."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  click's signature
        """Every verb, in the order of the loop."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A stand-in that has a summary and loads the verb when it runs."""
        return LazyCommand(cmd_name) if cmd_name in COMMANDS else None


class LazyCommand(TyperCommand):
    """A name and a summary until it is invoked; then the real thing."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=COMMANDS[name])

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """The context of the real verb, under the same name."""
        module = import_module(f"harness_cli.commands.{self.name}")
        return typer.main.get_command(module.app).make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb whose context this is."""
        return ctx.command.invoke(ctx)
