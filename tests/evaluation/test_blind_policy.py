"""Through the whole engine: what an item expects, and what it is called, reaches no policy."""

import asyncio
import json
from pathlib import Path

from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.loop.scaffold import make_project
from harness_cli.store.project import Project

SHIPPED = Path(__file__).parents[2] / "evalsets" / "live_stream_qa" / "items.jsonl"
N = 12
HIDDEN = ("id", "category", "expect", "assert", "tags", "human")


def evalset(project: Project, name: str, items: list[dict]) -> None:
    folder = project.evalsets / name
    folder.mkdir()
    (folder / "items.jsonl").write_text("".join(json.dumps(i) + "\n" for i in items))
    (folder / "evalset.yaml").write_text(
        f"schema: 1\nname: {name}\nsplits: {{dev: {len(items)}}}\n"
    )


def said(project: Project, name: str) -> list:
    run = asyncio.run(evaluate(project, EvalOptions(evalset=name, concurrency=1))).run
    found = sorted(run.trajectories(), key=lambda t: t.item_id)
    return [(t.reply, t.stop, [(c.name, c.arguments) for c in t.calls]) for t in found]


def test_items_stripped_of_all_but_their_request_get_the_same_answers(tmp_path):
    project = Project.find(make_project(tmp_path / "shop").root)
    lines = [json.loads(line) for line in SHIPPED.read_text().splitlines()]
    dev = [item for item in lines if item.get("split", "dev") == "dev"]
    whole = [{**item, "id": f"w{n:02}"} for n, item in enumerate(dev[:: len(dev) // N][:N])]
    bare = [
        {k: v for k, v in item.items() if k not in HIDDEN} | {"id": f"b{n:02}"}
        for n, item in enumerate(whole)
    ]
    assert all(item["expect"] and item["category"] for item in whole)
    evalset(project, "whole", whole)
    evalset(project, "bare", bare)
    answers = said(project, "whole")
    assert len(answers) == N
    assert any(calls for _, _, calls in answers)
    assert said(project, "bare") == answers
