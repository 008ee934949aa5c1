"""Every test: its own home and state folders, no user git config, no network but loopback.

In CI a skip whose reason is not on `allowed_skips.txt` is a failure. `--record FILE` keeps the
outcome and seconds of every test of a run (`make accept` keeps its last in `acceptance.json`).
"""

import json
import os
import platform
import re
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Shared machines are slow at times: examples have no deadline, and slow drawing is no fault.
settings.register_profile(
    "patient",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")
ALLOWED = Path(__file__).with_name("allowed_skips.txt")


@pytest.fixture(autouse=True, scope="session")
def isolated_session(tmp_path_factory: pytest.TempPathFactory):
    home = tmp_path_factory.mktemp("home")
    saved = dict(os.environ)
    for name in [n for n in os.environ if n.startswith(("GIT_", "HARNESS_", "XDG_"))]:
        del os.environ[name]
    os.environ.update(
        HOME=str(home),
        XDG_STATE_HOME=str(home / "state"),
        XDG_CONFIG_HOME=str(home / "config"),
        GIT_CONFIG_GLOBAL=str(home / "gitconfig"),
        GIT_CONFIG_NOSYSTEM="1",
        GIT_TERMINAL_PROMPT="0",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
    )
    os.environ.pop("NO_COLOR", None)
    (home / "gitconfig").write_text(
        "[user]\n\tname = Test Person\n\temail = test@example.invalid\n"
        "[init]\n\tdefaultBranch = main\n"
    )
    yield home
    os.environ.clear()
    os.environ.update(saved)


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch):
    """A connection that would leave this machine is an error, not a slow test."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0]
            if host not in ("127.0.0.1", "::1", "localhost"):
                raise AssertionError(f"a test tried to reach {host}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def pytest_addoption(parser):
    parser.addoption("--record", type=Path, help="write what ran, with outcome and seconds")


def pytest_unconfigure(config):
    path, reporter = (
        config.getoption("--record"),
        config.pluginmanager.get_plugin("terminalreporter"),
    )
    if path is None or reporter is None:
        return
    kept = {
        report.nodeid: {"outcome": outcome, "seconds": round(getattr(report, "duration", 0.0), 1)}
        for outcome in ("passed", "failed", "error", "skipped")
        for report in reporter.stats.get(outcome, [])
    }
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    head = {
        "commit": subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }
    path.write_text(json.dumps(head | {"tests": dict(sorted(kept.items()))}, indent=1) + "\n")


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    unknown = unknown_skips(terminalreporter)
    if unknown:
        terminalreporter.section("skips that are not on tests/allowed_skips.txt")
        for reason in sorted(unknown):
            terminalreporter.write_line(reason)


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter and unknown_skips(reporter) and exitstatus == 0:
        session.exitstatus = 1


def unknown_skips(reporter) -> set[str]:
    allowed = [
        re.compile(line)
        for line in ALLOWED.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    found = set()
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(pattern.search(reason) for pattern in allowed):
            found.add(reason)
    return found
