"""Naturalness decided by a panel: the same votes and verdicts, in place of the rules."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from panel_stub import PanelStub, serving

from harness_cli.errors import UnknownName, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.rescore import rescore
from harness_cli.judges.naturalness import RUBRIC
from harness_cli.judges.open import judge_config, open_judge
from harness_cli.loop.heldout import naturalness_judge
from harness_cli.store.journal import scan
from harness_cli.store.project import Project

ROOT = Path(__file__).parents[2]
MEMBERS = ("a", "b", "c")
ID = "rubric:1"


class Split(PanelStub):
    """Members `a` and `b` pass the rubric as told, `c` says the opposite."""

    def __init__(self, passed, **kwargs):
        super().__init__(**kwargs)
        self.passed = passed

    async def _judge(self, model, turn):
        message = await super()._judge(model, turn)
        called = message["tool_calls"][0]["function"]
        if called["name"] == "submit_verdict" and self.passed is not None:
            said = self.passed if model != "c" else not self.passed
            verdict = {**json.loads(called["arguments"]), "rubrics": [{"id": ID, "passed": said}]}
            called["arguments"] = json.dumps(verdict)
        return message


@pytest.fixture
def shop(make_project):
    """The bench project; every item asserts naturalness alone; two panels of the same members."""

    def make(url):
        patient = {"stall_timeout_s": 60, "attempt_timeout_s": 60}
        project = make_project(url, items=2, **patient)
        shutil.copytree(ROOT / "harness_repo/judges", project.harness / "judges")
        file = project.evalsets / "bench/items.jsonl"
        items = [json.loads(line) for line in file.read_text().splitlines()]
        lines = [json.dumps({**item, "assert": [{"type": "naturalness"}]}) for item in items]
        file.write_text("\n".join(lines) + "\n")
        config = json.loads((project.root / "harness.yaml").read_text())
        config["policies"] |= {m: {**config["policies"]["stub"], "model": m} for m in MEMBERS}
        panel = {"panel": list(MEMBERS)}
        config["judges"] = {"plain": panel, "natural": {**panel, "naturalness": "panel"}}
        (project.root / "harness.yaml").write_text(json.dumps(config))
        for words in (("add", "-A"), ("commit", "-qm", "panel")):
            subprocess.run(["git", *words], cwd=project.root, check=True)
        return Project.find(project.root)

    return make


def evaluated(project, judge):
    return asyncio.run(evaluate(project, EvalOptions(evalset="bench", judge=judge)))


@pytest.mark.parametrize(("passed", "score"), [(True, 1.0), (False, 0.0), (None, None)])
def test_the_majority_of_the_votes_is_the_score(shop, passed, score):
    with serving(Split(passed)) as url:
        outcome = evaluated(shop(url), "natural")
    results = list(outcome.run.results())
    assert [r.scores["naturalness"] for r in results] == [score, score]
    verdict = next(
        json.loads(line.data)["verdict"]
        for line in scan(outcome.run.journal)
        if line.kind == "verdict"
    )
    assert [a["rubric"] for a in verdict["assertions"]] == [RUBRIC]
    assert [v["voter"] for v in verdict["votes"]] == list(MEMBERS)
    assert "votes" in results[0].assertions[0].reason


def test_a_rescore_keeps_what_the_panel_said(shop):
    with serving(Split(False)) as url:
        project = shop(url)
        outcome = evaluated(project, "natural")
    again = rescore(project, outcome.run)
    assert [r.scores["naturalness"] for r in again.run.results()] == [0.0, 0.0]


def test_without_the_setting_the_rules_decide_and_no_member_is_asked_about_it(shop):
    with serving(Split(False)) as url:
        project = shop(url)
        outcome = evaluated(project, "plain")
        ids = [open_judge(n, judge_config(project, n), project).id for n in ("plain", "natural")]
    assert [r.scores["naturalness"] for r in outcome.run.results()] == [1.0, 1.0]
    assert ids[0].partition("@")[2] != ids[1].partition("@")[2], "another judge"


def test_a_judge_that_leaves_it_to_the_rules_is_refused_where_one_is_asked_for(shop):
    with serving(PanelStub()) as url:
        project = shop(url)
    assert naturalness_judge(project, None) is None
    assert naturalness_judge(project, "natural") == "natural"
    with pytest.raises(UsageError, match="leaves naturalness to the rules") as caught:
        naturalness_judge(project, "plain")
    assert "naturalness: panel" in caught.value.hint
    with pytest.raises(UnknownName, match="natura"):
        naturalness_judge(project, "natura")
