"""Two recorded runs before a panel of pairs: what is shared is compared, flips are counted."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from panel_stub import calling, serving

from harness_cli.errors import Stale
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.preferring import compare_pairs, pair_report, pairs_of
from harness_cli.judges.panel.opening import open_pairwise
from harness_cli.store.project import Project

ROOT = Path(__file__).parents[2]
GOOD, BAD = "It is 42, in stock.", "No idea."


class PairStub:
    """Prefers the good reply; `taste` members prefer whatever is shown first."""

    def __init__(self):
        self.calls = 0

    async def handle(self, request):
        from aiohttp import web

        body = await request.json()
        self.calls += 1
        if not any(m["role"] == "assistant" for m in body["messages"]):
            message = calling(("load_skill", {"skill": "rubric-preference"}))
        else:
            text = body["messages"][1]["content"]
            case = json.loads(text[text.index("\n{") : text.rindex("\n}") + 2])
            first = body["model"] == "taste" or case["first"]["reply"]["text"] == GOOD
            said = {"preferred": "first" if first else "second", "reason": "it knows"}
            message = calling(("submit_preference", {**said, "evidence": [{"ref": "first"}]}))
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return web.json_response({"id": "x", "model": body["model"], "choices": [choice]})


@pytest.fixture
def runs(make_project):
    """`runs(url)` → project and two runs of four items: one good, one with two bad answers."""

    def make(url):
        project = make_project(url, items=4)
        shutil.copytree(ROOT / "harness_repo/judges", project.harness / "judges")
        config = json.loads((project.root / "harness.yaml").read_text())
        served = config["policies"]["stub"]
        config["policies"] |= {m: {**served, "model": m} for m in ("fair", "taste")}
        config["judges"] = {"final": {"panel": ["fair"]}, "two": {"panel": ["fair", "taste"]}}
        (project.root / "harness.yaml").write_text(json.dumps(config))
        for words in (("add", "-A"), ("commit", "-qm", "judges")):
            subprocess.run(["git", *words], cwd=project.root, check=True)
        project = Project.find(project.root)
        made = []
        for name, bad in (("a", 0), ("b", 2)):
            rows = [{"id": f"item-{n:04d}", "reply": BAD if n < bad else GOOD} for n in range(4)]
            file = project.root / f"{name}.jsonl"
            file.write_text("\n".join(map(json.dumps, rows)) + "\n")
            options = EvalOptions(evalset="bench", judge="none", responses=file)
            made.append(asyncio.run(evaluate(project, options)).run)
        return project, *made

    return make


def judged(project, name, a, b, **options):
    pairs, world = pairs_of(project, a, b, **options)

    async def go():
        judge = open_pairwise(name, project.config.judges[name], project)
        try:
            return await compare_pairs(judge, pairs, world, concurrency=4)
        finally:
            await judge.close()

    return pair_report("j", a.id, b.id, asyncio.run(go()))


def test_wins_ties_and_the_exact_test_of_two_runs(runs):
    stub = PairStub()
    with serving(stub) as url:
        project, a, b = runs(url)
        report = judged(project, "final", a, b)
        assert stub.calls == 2 * 2 * 2, "equal replies are a tie unasked"
        found = report.preference
        assert (found.wins, found.ties, found.losses) == (2, 2, 0)
        assert found.p == 0.5
        assert (report.flips, report.flip_rate, report.first_rate) == (0, 0.0, 0.5)
        again = judged(project, "final", a, b)
        assert (again.calls, again.cached) == (0, 4)
        assert stub.calls == 8
        assert judged(project, "final", b, a).preference.losses == 2


def test_a_member_with_a_taste_for_the_first_place_shows_in_the_flip_rate(runs):
    with serving(PairStub()) as url:
        project, a, b = runs(url)
        report = judged(project, "two", a, b)
    assert (report.flips, report.votes, report.flip_rate) == (2, 4, 0.5)
    assert report.first_rate == 0.75
    assert report.preference.ties == 4, "one of two votes is no majority"


def test_runs_of_other_items_are_not_compared(runs):
    with serving(PairStub()) as url:
        project, a, b = runs(url)
        items = project.evalsets / "bench" / "items.jsonl"
        items.write_text(items.read_text().replace("SID=3", "SID=9"))
        with pytest.raises(Stale, match="changed since run"):
            pairs_of(project, a, b)


def test_the_verb_prints_shares_flips_and_reasons(runs):
    with serving(PairStub()) as url:
        project, a, b = runs(url)
        program = [sys.executable, "-m", "harness_cli.main", "judge", "pairwise"]
        words = [*program, a.id, b.id, "--judge", "final"]
        said = subprocess.run(words, cwd=project.root, capture_output=True, text=True, check=True)
        plain = subprocess.run(
            [*words, "--json"], cwd=project.root, capture_output=True, check=True
        )
    assert "A 2 / tie 2 / B 0 / unscored 0" in said.stdout
    assert "0 of 2 votes flip" in said.stdout
    assert "item-0000  A: it knows" in said.stdout
    assert json.loads(plain.stdout)["preference"]["wins"] == 2
