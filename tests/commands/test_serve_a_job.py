"""`harness serve` with a job file, as a user types it: dry run, up, status, logs, switch, down."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

from job_bench import STANDIN, ask, end_all, make_project
from program import call

JOB = """
name: host
engine: sglang
version: 0.5.23
model: weights-a
port: 0
mtp: {accept_threshold_single: 1.0, accept_threshold_acc: 1.0}
options: {mem-fraction-static: 0.85}
router: {use: false}
process: {ready_s: 20, drain_s: 2, health_s: 0.2}
"""


@pytest.fixture
def shop(tmp_path):
    project = make_project(tmp_path)
    launcher = json.dumps([sys.executable, str(STANDIN)])
    (tmp_path / "serve.yaml").write_text(f"{JOB}launcher: {launcher}\n")
    yield tmp_path
    end_all(project)


def test_a_dry_run_prints_the_exact_command_and_starts_nothing(shop):
    done = call(shop, "serve", "up", "serve.yaml", "--dry-run")
    assert done.code == 0, done.err
    assert "--speculative-algorithm NEXTN --speculative-num-steps 3" in done.out
    assert "--mem-fraction-static 0.85" in done.out
    assert "warning: `weights-a` is no folder on this machine" in done.err
    told = json.loads(call(shop, "serve", "up", "serve.yaml", "--dry-run", "--json").out)
    assert told["replicas"][0]["words"][0] == sys.executable
    assert told["router"] is None
    assert json.loads(call(shop, "serve", "status", "--json").out)["served"] == []


def test_up_status_logs_switch_down(shop):
    up = call(shop, "serve", "up", "serve.yaml", "-q")
    assert up.code == 0, up.err
    url = up.out.strip()
    assert ask(url)[0] == 200
    status = call(shop, "serve", "status")
    assert "1 of 1" in status.out
    told = json.loads(call(shop, "serve", "status", "--json").out)["served"][0]
    assert (told["state"], told["differs"], told["live"]["generation"]) == ("ready", [], 1)
    assert told["says"]["0"]["model_path"] == "weights-a"
    assert "listens on" in call(shop, "serve", "logs", "host", "-n", "50").out
    assert call(shop, "serve", "logs", "host", "--of", "replica-9").code == 2

    assert call(shop, "serve", "switch", "host", "weights-b", "-q").code == 0
    assert ask(url)[1].startswith("weights-b")
    refused = call(shop, "serve", "switch", "host", "bad", "-q")
    assert refused.code == 1
    assert "did not take the weights" in refused.err
    assert ask(url)[1].startswith("weights-b")

    down = json.loads(call(shop, "serve", "down", "host", "--json").out)
    assert down["ended"] == ["host"]
    assert "listens on" in call(shop, "serve", "logs", "host").out  # the logs stay


def test_a_job_with_errors_names_them_all_and_exits_2(shop):
    (shop / "bad.yaml").write_text(JOB + "launcher: [x]\nreplicas: 2\nparsers: {tool_call: no}\n")
    done = call(shop, "serve", "up", "bad.yaml")
    assert (done.code, done.out) == (2, "")
    assert "2 errors before anything was started" in done.err
    assert "2 replicas need a router" in done.err
    assert call(shop, "serve", "up", "demo", "--dry-run").code == 2


def test_render_writes_files_only_for_a_job_that_names_an_image(shop):
    bare = call(shop, "serve", "render", "serve.yaml")
    assert bare.code == 2
    assert "names no image" in bare.err
    with (shop / "serve.yaml").open("a") as file:
        file.write("deploy: {image: 'engine:1'}\n")
    done = call(shop, "serve", "render", "serve.yaml", "--as", "skypilot", "-o", "sky.yaml", "-q")
    assert done.code == 0, done.err
    assert "docker:engine:1" in (shop / "sky.yaml").read_text()
    assert "kind: Deployment" in call(shop, "serve", "render", "serve.yaml", "-q").out
