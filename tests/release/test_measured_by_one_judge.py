"""What a promotion measures is graded by the judge of the run that is promoted."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from small_shop import make_shop

from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.release.candidate import pair_of_run
from harness_cli.release.gather import candidate, gather
from harness_cli.release.measure import judge_for, needed
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

BUSINESS = Gate(name="business", kind="regression", evalset="shop", split="dev")
ORDER = Gate(name="order", kind="regression", evalset="shop", split="dev", metric="tco")
LATENCY = Gate(name="latency", kind="latency", evalset="shop")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    saved = os.environ.pop("GITHUB_STEP_SUMMARY", None)
    root = tmp_path_factory.mktemp("one-judge") / "shop"
    make_shop(root)
    config = (root / "harness.yaml").read_text()
    panel = {"voters": {"panel": ["grounded"], "harness": "harness_repo/judges/voters"}}
    assert "judges" not in config
    (root / "harness.yaml").write_text(config + f"judges: {json.dumps(panel)}\n")
    source = Path(__file__).parents[2] / "harness_repo" / "judges" / "final"
    subprocess.run(["cp", "-r", source, root / "harness_repo" / "judges" / "voters"], check=True)
    for words in (("add", "-A"), ("commit", "-qm", "a panel")):
        subprocess.run(["git", *words], cwd=root, check=True)
    yield Project.read(root)
    if saved is not None:
        os.environ["GITHUB_STEP_SUMMARY"] = saved


def measured(project, judge, *, limit=6):
    done = asyncio.run(
        evaluate(project, EvalOptions(evalset="shop", judge=judge, limit=limit, seed=limit))
    )
    return RunStore(project.runs).get(done.run.id)


def chosen(project, run, *gates):
    return candidate(project, GatesFile(gates=gates), pair_of_run(run.config()), run)


def test_a_gate_on_grades_asks_the_judge_of_the_named_run(shop):
    run = measured(shop, "voters")
    named = chosen(shop, run, LATENCY, BUSINESS, ORDER)
    assert [judge_for(named, g) for g in (BUSINESS, ORDER, LATENCY)] == ["voters", None, None]
    missing = needed(named)
    assert {n.gate.name: n.options.judge for n in missing} == {"latency": None}
    other = Gate(name="other", kind="regression", evalset="shop", split="dev", metric="accuracy")
    facts = gather(chosen(shop, run, other), drift=(), approvals=())
    assert facts.judge["name"] == "voters"
    assert facts.judge["standing"] == "absent"


def test_a_run_under_an_uncommitted_judge_does_not_promote(shop):
    rubric = shop.harness / "judges" / "voters" / "skills" / "rubric-accuracy" / "SKILL.md"
    kept = rubric.read_bytes()
    rubric.write_bytes(kept + b"\nOne more line.\n")
    try:
        run = measured(shop, "voters", limit=5)
    finally:
        rubric.write_bytes(kept)
    assert run.config().judge_dirty
    facts = gather(chosen(shop, run, BUSINESS), drift=(), approvals=())
    assert any("not committed" in fault for fault in facts.provenance)
