"""`harness serve` as a user runs it: real processes in a real project folder."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness_cli.errors import UnknownName
from harness_cli.serving.bench.route import with_job
from harness_cli.serving.jobs import job_paths, read_job, state_of
from harness_cli.store.project import Project

CONFIG = """
policies:
  demo: {kind: scripted, script: demo.yaml}
  broken: {kind: scripted, script: none.yaml}
  remote: {kind: openai, model: m, base_url: "http://127.0.0.1:9/v1"}
policy: demo
"""
SCRIPT = """
rules:
  - when: slow
    replies: [{text: late, delay_s: 1.0}]
  - replies: [{text: Welcome!}]
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "harness.yaml").write_text(CONFIG)
    (tmp_path / "demo.yaml").write_text(SCRIPT)
    yield tmp_path
    job = read_job(job_paths(tmp_path, "demo"))
    if job is not None and state_of(job) == "up":
        os.kill(job.pid, signal.SIGKILL)


def harness(project, *words):
    return subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "serve", *words],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
    )


def ask(url, text="hi"):
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    told = urllib.request.Request(
        f"{url}/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(told, timeout=30) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def test_up_answer_status_logs_down(project):
    up = harness(project, "up", "--json")
    assert up.returncode == 0, up.stderr
    made = json.loads(up.stdout)
    url = made["job"]["url"]
    assert made["started"]
    assert url.startswith("http://127.0.0.1:")
    assert ask(url) == "Welcome!"

    again = harness(project, "up", "demo")
    assert (again.stdout.strip(), again.returncode) == (url, 0)
    assert "already" in again.stderr
    assert harness(project, "up", "--port", "1").returncode == 2

    status = json.loads(harness(project, "--json").stdout)  # the default command
    assert [(j["job"]["name"], j["state"]) for j in status["jobs"]] == [("demo", "up")]
    assert "answered in" in harness(project, "logs", "-n", "5").stdout
    assert (project / ".harness/serve/demo.json").stat().st_mode & 0o077 in (0o044, 0)

    down = harness(project, "down", "--json")
    assert json.loads(down.stdout)["ended"] == ["demo"]
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(url)
    assert json.loads(harness(project, "status", "--json").stdout)["jobs"] == []
    assert "answered in" in harness(project, "logs", "demo").stdout


def test_a_served_policy_is_measured_at_its_own_endpoint(project):
    found = Project.find(project)
    with pytest.raises(UnknownName):
        with_job(found, "demo")
    url = json.loads(harness(project, "up", "--json").stdout)["job"]["url"]
    changed, name, told = with_job(found, "demo")
    policy = changed.policy(name)[1]
    assert (name, policy.kind, policy.base_url, policy.model) == ("demo", "openai", url, "demo")
    assert (told.job, told.engine, told.gpus) == ("demo", "scripted", None)
    assert harness(project, "down").returncode == 0


def test_a_killed_one_is_seen_as_stale_and_can_be_started_again(project):
    job = json.loads(harness(project, "up", "--json").stdout)["job"]
    os.kill(job["pid"], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while state_of(read_job(job_paths(project, "demo"))) == "up" and time.monotonic() < deadline:
        time.sleep(0.05)
    status = json.loads(harness(project, "status", "--json").stdout)
    assert status["jobs"][0]["state"] == "stale"
    again = json.loads(harness(project, "up", "--json").stdout)
    assert again["started"]
    assert again["job"]["pid"] != job["pid"]
    assert ask(again["job"]["url"]) == "Welcome!"


def test_another_process_with_the_same_pid_is_left_alone(project):
    """After a restart the pid of the state file may be anyone's, here this test's own."""
    paths = job_paths(project, "demo")
    job = json.loads(harness(project, "up", "--json").stdout)["job"]
    os.kill(job["pid"], signal.SIGTERM)
    paths.state.write_text(json.dumps({**job, "pid": os.getpid()}))
    down = json.loads(harness(project, "down", "demo", "--json").stdout)
    assert down == {"schema": 1, "ended": [], "stale": ["demo"]}
    assert not paths.state.exists()


def test_down_lets_requests_in_flight_finish(project):
    url = json.loads(harness(project, "up", "--json").stdout)["job"]["url"]
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(ask, url, "slow please")
        time.sleep(0.4)
        harness(project, "down")
        assert slow.result(timeout=30) == "late"


def test_two_at_once_start_one(project):
    with ThreadPoolExecutor() as pool:
        both = [*pool.map(lambda _: harness(project, "up", "--json"), range(2))]
    made = [json.loads(done.stdout) for done in both]
    assert made[0]["job"] == made[1]["job"]
    assert sorted(m["started"] for m in made) == [False, True]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["up", "broken"], 1, "none.yaml"),
        (["up", "nobody"], 2, "no policy named `nobody`"),
        (["up", "remote"], 2, "has an endpoint already"),
        (["down", "demo"], 2, "no served policy named `demo`"),
        (["logs"], 2, "no policy is served"),
    ],
)
def test_what_cannot_be_served_says_why(project, words, code, said):
    done = harness(project, *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_says_so(project):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = harness(project, "up", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "is taken by process" in done.stderr
