"""The program as tests call it: the table of its commands, and one call away from any terminal."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import NamedTuple

from harness_cli.commands._lazy import COMMANDS, leaves, load
from harness_cli.main import main


def table() -> dict[str, object]:
    """`verb` or `verb command` → the real command."""
    found = {}
    for verb in COMMANDS:
        command = load(verb)
        for leaf in leaves(command):
            words = (verb,) if leaf is command or leaf.name == "default" else (verb, leaf.name)
            found[" ".join(words)] = leaf
    return found


TABLE = table()


def options(command) -> dict[str, object]:
    return {
        name: p
        for p in command.params
        if p.param_type_name == "option"
        for name in (*p.opts, *p.secondary_opts)
    }


class NoPerson(io.StringIO):
    """A standard input that nobody types into: whoever reads it would hang in cron."""

    def _refuse(self, *args):
        raise AssertionError("a prompt without a terminal")

    read = readline = readlines = __next__ = _refuse

    def isatty(self):
        return False


class Done(NamedTuple):
    code: int
    out: str
    err: str


def call(folder: Path, *args: str) -> Done:
    """The program in this process, away from any terminal."""
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd(), sys.argv, sys.stdin
    os.chdir(folder)
    sys.argv, sys.stdin = ["harness", *args], NoPerson()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
    finally:
        os.chdir(before[0])
        sys.argv, sys.stdin = before[1:]
    return Done(code, out.getvalue(), err.getvalue())
