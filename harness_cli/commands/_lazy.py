"""Verbs by name, imported when invoked: `harness --help` loads none of them."""

import os
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

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
    "report": "One self-contained HTML page of a run",
    "view": "Runs, their reports and blind annotation in your own browser",
    "diagnose": "Failure classes of a run, sizes, cases, side at fault",
    "edit": "Propose from a diagnosis, review, apply as one commit",
    "evolve": "The loop as one resumable command, stopping at each human step",
    "promote": "Gates, approvals, manifest, channel switch",
    "rollback": "One switch of a channel back to a proven pair, at once",
    "status": "What serves, what waits for whom, the proven pairs",
    "log": "The evolution record: stages, changes, scores, diagnosis",
    "manifest": "Verify, show, diff, list release manifests",
    "incidents": "Guardrail hits, retries, fallbacks, suppressed replies by version",
    "cron": "A verb as a job: lock, maximum runtime, last success",
    "runs": "List, show, prune runs",
    "evalset": "Make, split, check, seal and export evalsets",
    "augment": "Augmented harness states that keep the task, for training and evals",
    "export": "A run for other tools (inspect log, JUnit), and training data",
    "train": "Training jobs: sft, opd and more; their state, curve and log",
    "judge": "Agreement of a judge with labels",
    "blind": "Human preference between two runs: sheet, annotation, report",
    "ab": "Online A/B tests: stable buckets, uplift with intervals",
    "tools": "Lock, check and call tools",
    "hooks": "Run hooks on recorded events",
    "migrate": "Files of an older schema moved to this one; unknown numbers refused",
    "mtp": "Draft heads of checkpoints: what is wrong with one, put back what a save lost",
    "serve": "Policies behind OpenAI-compatible endpoints: engines, replicas, a router",
    "bench": "Latency of the complete agent on a served policy, bound to what made it",
}
"""Name → the line shown by `harness --help`. Verb `x` is `app` in `commands/x.py`."""

EPILOG = (
    "Exit codes: 0 done or passed, 1 error, 2 usage, 3 waits for a person, 10 gate FAIL, "
    "11 gate INCONCLUSIVE, 12 stale or locked, 13 budget reached, 70 bug, 130 interrupted."
)


COMPLETING = "_HARNESS_COMPLETE"
"""Set by a shell that asks for completions: a key press, so no log is started."""
ONCE = {"install_completion", "show_completion"}


class LazyGroup(TyperGroup):
    """A group that knows its verbs from the table and imports one on use."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  click's signature
        """Every verb, in the order of the loop."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A stand-in that has a summary and loads the verb when it runs."""
        return LazyCommand(cmd_name) if cmd_name in COMMANDS else None


class LazyCommand(TyperCommand):
    """A name and a summary until it is used or asked for help; then the real thing."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=COMMANDS[name])

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """The context of the real verb, under the same name."""
        return load(str(self.name)).make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb whose context this is."""
        return ctx.command.invoke(ctx)


def load(verb: str) -> Any:
    """The real command of a verb, its own commands included, each with `-v`."""
    module = import_module(f"harness_cli.commands.{verb}")
    command = typer.main.get_command(module.app)
    command.name = verb
    # Completion is installed once, by the program's own options.
    command.params = [p for p in command.params if p.name not in ONCE]
    for leaf in leaves(command):
        leaf.params.append(verbose())
    return command


def leaves(command: Any) -> list[Any]:
    """The commands below a group that do something, or the command itself."""
    if not isinstance(command, TyperGroup):
        return [command]
    return [leaf for sub in command.commands.values() for leaf in leaves(sub)]


def verbose() -> TyperOption:
    """`-v`, `-vv`: what the program does, as JSON lines on stderr."""
    return TyperOption(
        param_decls=["verbosity", "-v", "--verbose"],
        type=int,
        count=True,
        default=0,
        expose_value=False,
        callback=lambda ctx, param, value: listen(value),  # noqa: ARG005  click's signature
        help="Events as JSON lines on stderr; -vv: more of them.",
    )


def listen(value: int) -> int:
    """Start the log that `-v` asks for."""
    if value and COMPLETING not in os.environ:
        from harness_cli.store.logs import start_logs

        start_logs(value)
    return value
