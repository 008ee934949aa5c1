"""`harness check --rewards` and `harness judge rewards`: what separates, and what does not."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from program import call

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A project with the shipped harness, catalogue and probes."""
    root = tmp_path_factory.mktemp("rewards") / "shop"
    root.mkdir()
    for name in ("catalogue", "reward_probes"):
        shutil.copytree(ROOT / "evalsets" / name, root / "evalsets" / name)
    shutil.copytree(ROOT / "harness_repo", root / "harness_repo")
    shutil.copy(ROOT / "gates.yaml", root / "gates.yaml")
    (root / "harness.yaml").write_text("schema: 1\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
    return root


def test_the_shipped_rewards_pass_and_are_shown_as_a_table(shop):
    done = call(shop, "check", "--rewards", "evalsets/reward_probes")
    assert done.code == 0, done.err
    for name in ("accuracy", "tool_rationality", "length"):
        assert name in done.out
    assert done.out.count("separates") == 6


def test_noise_is_measured_and_written_as_json(shop):
    done = call(shop, "judge", "rewards", "--repeat", "2", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)["rewards"]
    assert {n["dimension"] for n in report["noise"]} == {
        s["dimension"] for s in report["separations"]
    }
    assert all(n["deviation"] < 1e-9 for n in report["noise"])


def test_probes_that_a_reward_cannot_tell_apart_fail_with_its_name(shop):
    """Here the probes are at fault: what was corrupted is as good as what was not."""
    path = shop / "evalsets/reward_probes/probes.jsonl"
    kept = path.read_text()
    lines = [json.loads(line) for line in kept.splitlines()]
    good = {p["id"].partition("/")[0]: p["trajectory"] for p in lines if p["corruption"] is None}
    for probe in lines:
        if "length" in probe["lowers"]:
            probe["trajectory"] = good[probe["id"].partition("/")[0]]
    path.write_text("\n".join(json.dumps(p) for p in lines) + "\n")
    try:
        done = call(shop, "check", "--rewards", "evalsets/reward_probes")
        told = call(shop, "check", "--rewards", "evalsets/reward_probes", "--json")
    finally:
        path.write_text(kept)
    assert done.code == told.code == 2
    assert "`length` of rewards@" in done.out
    assert "AUC 0.50, at least 0.8 is needed" in done.out
    (finding,) = [f for f in json.loads(told.out)["findings"] if f["rule"].startswith("rewards/")]
    assert finding["rule"] == "rewards/separation"
    assert "corrupted, and scored like a good one" in finding["fix"]


def test_without_probes_nothing_is_proven(shop):
    folder = shop / "evalsets/reward_probes"
    moved = folder.rename(folder.with_name("elsewhere"))
    try:
        done = call(shop, "check", "--rewards", "harness.yaml")
    finally:
        moved.rename(folder)
    assert done.code == 2
    assert "there is no probe set" in done.out
