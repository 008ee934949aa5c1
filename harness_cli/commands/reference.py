"""`docs/cli.md` from the help of every command: `python -m harness_cli.commands.reference FILE`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from harness_cli.commands._groups import DEFAULT
from harness_cli.commands._lazy import COMMANDS, EPILOG, leaves, load
from harness_cli.records.canonical import write_atomic

HEAD = """# The command line

Made by `python -m harness_cli.commands.reference docs/cli.md` from the help of the program; a test
keeps it current. A run is named by its id, an unambiguous beginning of it, or `latest`; names of
commands are no ids. What needs a person is never asked without a terminal: it exits 3.

"""
EVERYWHERE = {
    "--json": "JSON only on stdout, one document with a `schema` number.",
    "-C DIR": "Run as if started in DIR.",
    "-q, --quiet": "No progress, only results.",
    "-v, -vv": "Events as JSON lines on stderr; `HARNESS_LOG` keeps them in a file.",
    "--help": "What is said here, at the terminal.",
}
COMMON = {"as_json", "directory", "quiet", "verbosity", "help"}
ENVIRONMENT = {
    "HARNESS_LOG": "`info` or `debug`: stderr; `FILE` or `LEVEL:FILE`: appended, as JSON lines.",
    "HARNESS_POLICY, _CHANNEL, _RUNS, _GATES, _HARNESS, _EVALSETS, _MANIFESTS": (
        "In place of that setting of `harness.yaml`."
    ),
    "NO_COLOR": "Neither colour nor bold type.",
    "TERM=dumb": "Nor a bar: no escape code at all.",
    "GITHUB_STEP_SUMMARY": "`eval`, `compare` and `promote` append their tables as Markdown.",
    "VISUAL, EDITOR": "What `edit --by-hand` and `e` in a review open.",
    "XDG_STATE_HOME": "Where caches and bug reports lie, in `harness/`.",
}
LOG = """## The log

A line is one object: `at` (UTC), `level`, `logger` (`harness.<room>`), `event`, what belongs to the
event, `pid`; at `debug` a `trace` where there was an error. Secrets are masked. Other libraries are
heard from `warning` on. A command's last line is `command ended` with `argv`, `exit`, `seconds`.

    HARNESS_LOG=info harness eval shop          # stderr, as -v
    HARNESS_LOG=debug:loop.jsonl harness edit   # appended to a file, as -vv
"""
COMPLETION = """## Completion

`harness --install-completion` sets it up for the shell it is called from (bash, zsh, fish);
`harness --show-completion` prints the script. Verbs, options and values are completed: run ids,
evalsets, splits, policies, judges, profiles, channels, manifests, skills, tools, hooks.
"""


def reference() -> str:
    """The whole page."""
    parts = [HEAD, "## Everywhere", _rows("option", EVERYWHERE), "## Exit codes", _exits()]
    parts += ["## Environment", _rows("variable", ENVIRONMENT), LOG, COMPLETION]
    for verb, summary in COMMANDS.items():
        command = load(verb)
        parts.append(f"## harness {verb}")
        if leaves(command) != [command]:
            parts.append(f"{summary}.")
        parts += _verb(command, verb)
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def _exits() -> str:
    told = EPILOG.removeprefix("Exit codes: ").rstrip(".").split(", ")
    return "\n".join(
        ["| exit | meaning |", "| --- | --- |", *(f"| {c.replace(' ', ' | ', 1)} |" for c in told)]
    )


def _verb(command: Any, verb: str) -> Iterator[str]:
    for leaf in leaves(command):
        default = leaf is command or leaf.name == DEFAULT
        if leaf.hidden and leaf.name != DEFAULT:
            continue
        name = f"harness {verb}" if default else f"harness {verb} {leaf.name}"
        context = typer.Context(leaf, info_name=name)
        usage = " ".join([name, *leaf.collect_usage_pieces(context)])
        if leaf is not command:
            yield f"### {name}\n"
        yield f"    {usage}\n"
        yield f"{leaf.help.strip()}\n" if leaf.help else ""
        own = [p for p in leaf.params if p.name not in COMMON]
        arguments = {
            _metavar(p, context): p.help for p in own if p.param_type_name == "argument" and p.help
        }
        options = dict(p.get_help_record(context) for p in own if p.param_type_name == "option")
        yield _rows("argument", arguments)
        yield _rows("option", options)


def _metavar(param: Any, context: Any) -> str:
    return str(param.make_metavar(context)).strip("[]")


def _rows(title: str, rows: dict[str, str]) -> str:
    if not rows:
        return ""
    lines = [f"| {title} | |", "| --- | --- |"]
    for name, text in rows.items():
        shown = " ".join(str(text).split()).replace("|", "\\|")
        cell = name.replace("|", "\\|")
        lines.append(f"| `{cell}` | {shown} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m harness_cli.commands.reference FILE")
    write_atomic(Path(sys.argv[1]), reference().encode())


if __name__ == "__main__":
    main()
