"""`-v` and `HARNESS_LOG`: JSON lines, one event each, without a secret."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from small_shop import make_shop

PROGRAM = "import sys; sys.argv[0] = 'harness'; from harness_cli.main import main; main()"
SECRET = "s3cret-value-of-a-variable"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    root = tmp_path_factory.mktemp("logs") / "shop"
    make_shop(root)
    return root


def run(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def events(text: str) -> list[dict]:
    return [json.loads(row) for row in text.splitlines()]


def test_without_either_nothing_is_logged(shop):
    assert run(shop, "check", "-q").stderr == ""


def test_dash_v_tells_on_stderr_how_the_command_ended(shop):
    for words in (("check", "-q", "-v"), ("-v", "check", "-q")):
        done = run(shop, *words)
        (last,) = events(done.stderr)
        assert last["event"] == "command ended"
        assert last["level"] == "info"
        assert last["logger"] == "harness"
        assert last["argv"] == list(words)
        assert last["exit"] == done.returncode
        assert last["seconds"] > 0
        assert last["at"].endswith("Z")
        assert last["pid"] > 0


def test_json_stays_alone_on_stdout(shop):
    done = run(shop, "evalset", "list", "--json", "-vv")
    assert json.loads(done.stdout)["schema"] == 1
    assert events(done.stderr)


def test_a_run_and_every_git_command_are_events_of_their_rooms(shop):
    done = run(shop, "eval", "shop", "--limit", "2", "-q", "--json", "-vv")
    found = events(done.stderr)
    ended = next(e for e in found if e["event"] == "run ended")
    assert ended["logger"] == "harness.evaluation"
    assert ended["status"] == "complete"
    assert sum(ended["counts"].values()) == 2
    git = [e for e in found if e["event"] == "git"]
    assert git
    assert all(e["level"] == "debug" and e["logger"] == "harness.store" for e in git)
    fewer = run(shop, "eval", "shop", "--limit", "2", "-q", "--json", "-v")
    assert {e["level"] for e in events(fewer.stderr)} == {"info"}


@pytest.mark.parametrize("target", ["run.jsonl", "info:run.jsonl"])
def test_a_file_is_appended_to(target, shop, tmp_path):
    environment = {"HARNESS_LOG": target.replace("run.jsonl", str(tmp_path / "run.jsonl"))}
    for _ in range(2):
        assert run(shop, "check", "-q", **environment).stderr == ""
    assert len(events((tmp_path / "run.jsonl").read_text())) == 2


def test_a_level_is_for_stderr_and_dash_v_adds_to_a_file(shop, tmp_path):
    done = run(shop, "diff", "HEAD", "-q", HARNESS_LOG="debug")
    assert {"git", "command ended"} <= {e["event"] for e in events(done.stderr)}
    log = tmp_path / "both.jsonl"
    done = run(shop, "diff", "HEAD", "-q", "-v", HARNESS_LOG=f"debug:{log}")
    assert [e["event"] for e in events(done.stderr)] == ["command ended"]
    assert "git" in {e["event"] for e in events(log.read_text())}


def test_an_error_says_what_it_was_and_where_at_debug(tmp_path):
    done = run(tmp_path, "runs", "-v")
    told, _, rest = done.stderr.partition("{")
    (last,) = events("{" + rest)
    assert told.startswith("error: no `harness.yaml`")
    assert last["exit"] == done.returncode == 2
    assert last["error"] == "UsageError"
    assert "trace" not in last
    (last,) = events("{" + run(tmp_path, "runs", "-vv").stderr.partition("{")[2])
    assert "UsageError" in last["trace"]
    assert "project.py" in last["trace"]


def test_no_secret_is_written(shop, tmp_path):
    log = tmp_path / "log"
    environment = {"SHOP_API_KEY": SECRET, "HARNESS_LOG": f"debug:{log}"}
    run(shop, "diff", SECRET, **environment)
    run(shop, "runs", "show", "sk-abcdefghijklmnop1234", **environment)
    text = log.read_text()
    assert SECRET not in text
    assert "sk-abcdefgh" not in text
    assert text.count("[redacted]") >= 3
    assert {e["exit"] for e in events(text) if e["event"] == "command ended"} <= {1, 2}


@pytest.mark.parametrize("value", ["/no/such/folder/log", "debug:"])
def test_a_log_that_cannot_be_written_is_a_usage_error(value, shop):
    done = run(shop, "runs", HARNESS_LOG=value)
    assert done.returncode == 2
    assert done.stderr.startswith("error: HARNESS_LOG: ")
    assert "hint: " in done.stderr


def test_retries_of_a_model_call_are_told(tmp_path):
    """A server that answers 503 twice: the retries are events, with their reason."""
    script = """
import asyncio, random
from harness_cli.errors import ProviderError
from harness_cli.models.base import Deadline
from harness_cli.models.retry import RetryRules, with_retries
from harness_cli.records.chat import ChatReply
from harness_cli.store.logs import start_logs
start_logs(1, {})
left = [1, 2]
async def attempt(seconds):
    if left:
        left.pop()
        raise ProviderError.of("server", "503 from the endpoint", retryable=True, retry_after_s=0.0)
    return ChatReply(content="yes")
asyncio.run(with_retries(attempt, RetryRules(), Deadline(None), random.Random(1)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    found = events(done.stderr)
    assert [(e["event"], e["attempt"], e["error"]) for e in found] == [
        ("model call is tried again", 1, "server"),
        ("model call is tried again", 2, "server"),
    ]
    assert found[0]["reason"] == "503 from the endpoint"


def test_one_module_configures_logging():
    package = Path(__file__).parents[2] / "harness_cli"
    told = ("addHandler(", "basicConfig(", "setLevel(")
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if any(word in path.read_text() for word in told)
    }
    # The MCP client's logger gets a NullHandler: its lines repeat what our errors say.
    assert found == {"store/logs.py", "runtime/mcp_server.py"}
