"""From the README, without a GPU: a stand-in, its head, and what the head is worth, end to end."""

import json
import subprocess
import sys

import pytest

from harness_cli.loop.scaffold import make_project

JOB = """schema: 1
name: head
base: standin-task
head: standin-base
native: standin-base
standin_steps: 120
rollouts: 64
new_tokens: 40
steps: 40
batch: 8
lr: 3.0e-3
measured: 6
"""


def harness(root, *words):
    argv = [sys.executable, "-m", "harness_cli.main", *words, "-C", str(root)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.accept
@pytest.mark.timeout(3000)
def test_a_head_is_trained_checked_and_measured_on_the_local_engine(tmp_path):
    root = tmp_path / "shop"
    make_project(root)
    (root / "mtp.yaml").write_text(JOB)
    made = harness(root, "train", "mtp", "mtp.yaml", "--json")["checkpoint"]
    lengths = {k: v for k, v in made["metrics"].items() if k.startswith("accept_length/")}
    greedy = {k.split("/")[1]: v for k, v in lengths.items() if k.endswith("greedy")}
    assert greedy["trained"] >= 1.5 * greedy["transplanted"]
    assert greedy["absent"] == 1.0
    assert harness(root, "mtp", "check", "head", "--json")["ok"]
    words = ("bench", "mtp", "checkpoint:head", "-c", "1", "--limit", "5", "--warm-up", "1")
    found = harness(root, *words, "--json", "-q")["mtp"]
    assert [bench["arm"] for bench in found] == ["mtp on", "mtp on, lossy"]
    for bench in found:
        (level,) = bench["levels"]
        assert level["on"][0]["calls"] > 0
        assert level["speedup"]["mean"] > 0
        assert bench["advice"]
