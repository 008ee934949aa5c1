"""Help stays light, and every verb in the table exists."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from harness_cli.commands._lazy import COMMANDS
from harness_cli.main import app

HEAVY = {
    "aiohttp", "git", "jinja2", "jsonschema", "mcp", "numpy", "openai", "pandas", "pydantic",
    "rich", "scipy", "sklearn", "tokenizers", "torch", "wordllama", "yaml",
}  # fmt: skip
PROBE = """
import atexit, sys
from harness_cli.main import app
atexit.register(lambda: print("MODULES", *sys.modules))
app(sys.argv[1:])
"""


def modules_after(*args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *args], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rsplit("MODULES", 1)[1].split())


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join
)
def test_help_imports_nothing_heavy(args):
    assert not HEAVY & modules_after(*args)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_verb_of_the_table_has_help_with_json_and_directory(name):
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0, done.output
    assert "Usage:" in done.output


def test_help_shows_the_exit_codes():
    shown = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    for code in ("0 done", "10 gate FAIL", "11 gate INCONCLUSIVE", "130 interrupted"):
        assert code in shown


def test_an_unknown_verb_is_a_usage_error():
    assert CliRunner().invoke(app, ["no-such-verb"]).exit_code == 2
