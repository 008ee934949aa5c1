"""The documented workflow, crontab and nightly script, run as they stand, by exit codes alone."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "release"))

from released import git, measured_project

from harness_cli.release.channels import read_channel
from harness_cli.store.project import Project

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
SMALL = {"EVALSET": "live_stream_qa", "LIMIT": "4", "MAX_RUNTIME": "10m"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory, isolated_session) -> Path:
    root = tmp_path_factory.mktemp("ci") / "shop"
    measured_project(root)
    shutil.copytree(EXAMPLES, root / "docs" / "examples")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "the examples")
    return root


@pytest.fixture
def shop(measured, tmp_path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "shop", symlinks=True))


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """A folder with a `harness` of this checkout, as an installation has one."""
    folder = tmp_path_factory.mktemp("bin")
    made = folder / "harness"
    made.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness_cli.main "$@"\n')
    made.chmod(0o755)
    return folder


def shell(root: Path, script: str, programs: Path, **env: str) -> subprocess.CompletedProcess:
    """As cron runs a line: a small environment, no terminal, nothing on standard input."""
    home = {k: os.environ[k] for k in ("HOME", "GIT_CONFIG_GLOBAL") if k in os.environ}
    small = {"PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", **home}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=root, env={**small, **env}, capture_output=True,
        text=True, stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def workflow() -> tuple[dict[str, str], dict[str, str]]:
    """(environment, step name → script) of the documented workflow, but what installs."""
    plain = yaml.safe_load((EXAMPLES / "github-workflow.yml").read_text())
    (job,) = plain["jobs"].values()
    steps = {s["name"]: s["run"] for s in job["steps"] if "run" in s and s["name"] != "Install"}
    return plain["env"], steps


def run_steps(shop: Path, programs: Path, **more: str) -> dict[str, subprocess.CompletedProcess]:
    """Step by step, to the first that fails, as a runner does."""
    env, steps = workflow()
    summary = {"GITHUB_STEP_SUMMARY": str(shop / "summary.md"), "CI": "true"}
    done = {}
    for name, script in steps.items():
        done[name] = shell(shop, script, programs, **{**env, **SMALL, **summary, **more})
        if done[name].returncode:
            break
    return done


def test_every_step_of_the_workflow_runs_and_leaves_what_ci_shows(shop, programs):
    done = run_steps(shop, programs)
    assert list(done) == list(workflow()[1])
    failed = {n: d.stdout + d.stderr for n, d in done.items() if d.returncode}
    assert failed == {}
    assert "a person approves" in done["Decide"].stdout
    assert json.loads((shop / "check.sarif").read_text())["version"] == "2.1.0"
    assert len(ElementTree.parse(shop / "junit.xml").findall(".//testcase")) == 4
    summary = (shop / "summary.md").read_text()
    assert "live_stream_qa" in summary
    assert "## harness promote: PENDING" in summary
    assert "| business | PASS |" in summary
    assert json.loads((shop / "gates.json").read_text())["outcome"] == "PENDING"


def test_a_harness_that_does_not_load_stops_the_workflow_at_its_lint(shop, programs):
    skill = shop / "harness_repo" / "skills" / "thanks" / "SKILL.md"
    skill.write_text("no frontmatter\n")
    done = run_steps(shop, programs)
    assert (list(done), done["Lint"].returncode) == (["Lint"], 2)
    assert "thanks" in (shop / "check.sarif").read_text()


def test_a_gate_that_fails_stops_the_workflow_with_10_and_one_that_cannot_decide_warns(
    shop, programs
):
    gates = shop / "gates.yaml"
    text = gates.read_text()
    gates.write_text(text.replace("minimum_n: 2", "minimum_n: 2, floor: 1.01"))
    git(shop, "commit", "-qam", "a floor")
    decide = workflow()[1]["Decide"]
    assert shell(shop, decide, programs, **SMALL).returncode == 10
    gates.write_text(text.replace("minimum_n: 2", "minimum_n: 100"))
    git(shop, "commit", "-qam", "more items")
    done = shell(shop, decide, programs, **SMALL)
    assert (done.returncode, "::warning::" in done.stdout) == (0, True)


def night(shop: Path, programs: Path, **more: str) -> tuple[int, str]:
    """The nightly script: its exit code and what it told."""
    told = shop / "told.txt"
    told.unlink(missing_ok=True)
    notify = programs / "notify"
    notify.write_text(f'#!/bin/sh\necho "$@" >> "{told}"\n')
    notify.chmod(0o755)
    env = {**SMALL, "NOTIFY": "notify", **more}
    done = shell(shop, "bash docs/examples/nightly.sh", programs, **env)
    return done.returncode, told.read_text().strip()


def test_the_night_promotes_when_a_person_has_approved_and_says_so_before(shop, programs):
    ok = shop / ".harness" / "nightly.ok"
    assert night(shop, programs) == (3, "the gates pass: harness promote --approve NAME")
    assert not ok.exists()
    approve = "harness promote --approve Bo --dry-run --no-run -q > /dev/null"
    assert shell(shop, approve, programs).returncode == 0
    assert night(shop, programs) == (0, "promoted, or already running")
    assert read_channel(Project.find(shop).manifests, "dev").harness is not None
    assert ok.read_text().rstrip().endswith("harness promote --max-tokens 20000000 -q")


def test_the_night_ends_at_its_time_and_goes_on_the_next(shop, programs):
    assert night(shop, programs, MAX_RUNTIME="1s")[0] == 13
    assert night(shop, programs)[0] == 3


def crontab() -> tuple[dict[str, str], list[str]]:
    """(settings, commands) of the documented crontab, in its order."""
    env, commands = {}, []
    for line in (EXAMPLES / "crontab").read_text().splitlines():
        if re.fullmatch(r"[A-Z]+=.*", line):
            env.update([line.split("=", 1)])
        elif line and not line.startswith("#"):
            fields = line.split(None, 5)
            assert len(fields) == 6, line
            assert all(re.fullmatch(r"[\d*/,-]+", field) for field in fields[:5]), line
            assert "%" not in fields[5], "cron ends a command there"
            commands.append(fields[5])
    return env, commands


def test_every_line_of_the_crontab_runs_in_crons_environment(shop, programs):
    settings, commands = crontab()
    assert settings["SHELL"] == "/bin/bash"
    approve = "harness promote --approve Bo --dry-run --no-run -q > /dev/null"
    shell(shop, approve, programs)
    codes = []
    for command in commands:
        placed = command.replace("/srv/shop", str(shop))
        done = shell(shop.parent, placed, programs, **SMALL)
        assert "Traceback" not in done.stderr
        codes.append((done.returncode, done.stderr))
    assert [code for code, _ in codes] == [0, 0, 0, 0], codes
    (shop / ".harness" / "nightly.ok").write_text("2026-01-01T00:00:00Z harness promote\n")
    placed = commands[-1].replace("/srv/shop", str(shop))
    assert shell(shop.parent, placed, programs).returncode == 12


def test_the_documented_exit_codes_are_those_of_the_program():
    told = dict(re.findall(r"^\| (\d+) \| ([^|]+) \|", (DOCS / "ci.md").read_text(), re.MULTILINE))
    from harness_cli import errors

    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.HarnessError)
    }
    assert {int(code) for code in told} >= codes - {70}
