"""Errors become a message, a hint and an exit code; bugs leave a report."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness_cli import errors

PROGRAM = """
import sys
from harness_cli import errors, main
kind = sys.argv[1]
def fail():
    if kind == "KeyboardInterrupt": raise KeyboardInterrupt
    if kind == "bug": raise ValueError("a bug")
    raise getattr(errors, kind)("something is wrong with `x`", hint="do y")
main.app = fail
main.main()
"""


def run(kind: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("HarnessError", 1), ("UsageError", 2), ("BadFile", 2), ("UnknownName", 2),
        ("MissingExtra", 2), ("RepoError", 1), ("NeedsPerson", 3), ("Stale", 12), ("Locked", 12),
        ("BudgetReached", 13), ("Interrupted", 130),
    ],
)  # fmt: skip
def test_each_error_has_its_exit_code_and_no_traceback(kind, code):
    done = run(kind)
    assert done.returncode == code
    assert done.stderr == "error: something is wrong with `x`\n\nhint: do y\n"
    assert done.stdout == ""


def test_interruption_exits_130():
    assert run("KeyboardInterrupt").returncode == 130


def test_a_bug_exits_70_with_a_traceback_and_a_report_file(isolated_session):
    done = run("bug")
    assert done.returncode == 70
    assert "ValueError: a bug" in done.stderr
    path = done.stderr.rsplit("with the file ", 1)[1].strip()
    assert "ValueError: a bug" in Path(path).read_text()


def test_the_nearest_name_is_offered():
    error = errors.UnknownName.of("policy", "bultin", ["builtin", "flash"])
    assert error.hint == "did you mean `builtin`? known: builtin, flash"
