"""Closed streams, other locales, no home, no git, a full disk: an answer or a reason."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_cli.commands._surroundings import system_failure
from harness_cli.harness.load import load_state
from harness_cli.loop.scaffold import make_project
from harness_cli.records.canonical import write_json
from harness_cli.store.project import Project

PROGRAM = [sys.executable, "-m", "harness_cli.main"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory, isolated_session) -> Path:
    """A project whose path has blanks and is Chinese."""
    return make_project(tmp_path_factory.mktemp("shop") / "a shop 店").root


def harness(root: Path, *args: str, shell: str = "", **environment: str):
    """One command; `shell` is put behind it, as `>&-` or `| head -1`."""
    line = f'cd "$1" && shift && "$@" {shell}'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line, "bash", str(root), *PROGRAM, *args],
        capture_output=True,
        env={**os.environ, **environment},
    )
    assert b"Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("shell", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_stream_and_no_file_of_ours(shop, shell):
    assert harness(shop, "show", "skill", shell=shell).returncode == 0
    done = harness(shop, "eval", "general_instructions", "--limit", "1", "--quiet", shell=shell)
    assert done.returncode == 0
    newest = max((shop / ".harness" / "runs").iterdir())
    first = (newest / "journal.jsonl").read_bytes().splitlines()[0]
    assert json.loads(first)["record"]["kind"] == "note"


@pytest.mark.parametrize(
    "args", [("evalset", "export", "live_stream_qa"), ("check", "--format", "sarif"), ("--help",)]
)
def test_a_reader_that_has_seen_enough_is_no_error(shop, args):
    done = harness(shop, *args, shell="| head -c 5")
    assert (done.returncode, len(done.stdout)) == (0, 5)


def test_output_is_utf_8_under_any_locale(shop):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = harness(shop, "show", "skill", "greet", "--json", **plain)
    assert json.loads(done.stdout)["skill"]["body"] == next(
        s.body for s in load_state(Project.find(shop)).skills if s.name == "greet"
    )
    done = harness(shop, "show", "skill", "没有", **plain)
    assert done.returncode == 2
    assert "no skill named `没有`" in done.stderr.decode()


def test_neither_a_home_nor_a_terminal_is_needed(shop):
    done = subprocess.run(
        [*PROGRAM, "status"], cwd=shop, env={"PATH": os.environ["PATH"]}, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


UNKNOWN = """
import os, pwd, sys
def gone(uid): raise KeyError(uid)
pwd.getpwuid = gone
for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME", "XDG_STATE_HOME"):
    os.environ.pop(name, None)
from harness_cli import main
from harness_cli.evaluation.seal import log_opening
from harness_cli.store.state import state_folder
from pathlib import Path
def work():
    log_opening(Path(sys.argv[1]), evalset="e", split="test", digest="d", reason="r")
    if sys.argv[2] == "bug": raise ValueError("a bug")
    state_folder("models")
main.app = work
main.main()
"""


@pytest.mark.parametrize(
    ("then", "code", "told"), [("home", 1, "set XDG_STATE_HOME"), ("bug", 70, "the lines above")]
)
def test_a_user_whom_the_system_does_not_know_is_named_by_number(tmp_path, then, code, told):
    """As in a container that runs under any number."""
    log = tmp_path / "log.jsonl"
    words = [sys.executable, "-c", UNKNOWN, str(log), then]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert json.loads(log.read_text().splitlines()[0])["by"].startswith(f"uid-{os.getuid()}@")


def test_without_git_the_reason_is_one_line(shop):
    done = subprocess.run(
        [*PROGRAM, "check"], cwd=shop, env={"PATH": "/nonexistent"}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: git cannot be used: Failed to initialize: Bad git executable.",
        "",
        "hint: install git 2.34 or newer",
    ]


def test_what_the_system_refuses_says_where_and_what_to_do(shop):
    done = harness(shop, "tools", "call", "get_faq", "-C", "x" * 300)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"File name too long\n\nhint: choose a shorter name" in done.stderr


def test_a_full_disk_names_the_file_that_was_not_written(tmp_path, monkeypatch):
    def full(_fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_json(tmp_path / "x.json", {"a": 1})
    said = system_failure(caught.value)
    assert str(said) == f"`{tmp_path / 'x.json'}`: No space left on device"
    assert said.hint.startswith("make room")
    assert list(tmp_path.iterdir()) == []


def test_a_limit_on_file_sizes_is_a_message_and_no_bug(shop, tmp_path):
    words = f"ulimit -f 1; cd '{shop}' && exec {' '.join(PROGRAM)} augment --count 1 --probe 0"
    done = subprocess.run(
        ["bash", "-c", f"{words} --out '{tmp_path / 'states'}'"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "ulimit -f" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_no_user_can_mend_stays_a_bug():
    assert system_failure(OSError("what")) is None
    assert system_failure(ConnectionResetError(errno.ECONNRESET, "reset")) is None
