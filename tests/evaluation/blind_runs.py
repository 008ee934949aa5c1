"""Two runs on one small evalset, as blind tests start from them."""

import json

import msgspec

from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.records.journal import ItemRecord
from harness_cli.records.run import RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.store.journal import line_of
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

STRATA = {"product-qa": 46, "chat": 19, "clarification": 16, "after-sales": 10, "promotion": 9}


def make_project(folder, strata=STRATA):
    """A project with one evalset; items are `<category>-<n>`."""
    (folder / "harness.yaml").write_text("schema: 1\n")
    qa = folder / "evalsets" / "qa"
    qa.mkdir(parents=True)
    names = [f"{category}-{n:02}" for category, size in strata.items() for n in range(size)]
    (qa / "evalset.yaml").write_text(
        f"schema: 1\nname: qa\nsplits: {{dev: {len(names)}}}\ncatalogue: null\n"
    )
    lines = [
        json.dumps(
            {
                "id": name,
                "category": name.rsplit("-", 1)[0],
                "request": {"comments": [{"viewer": "v1", "text": f"=what about {name}?"}]},
            }
        )
        for name in names
    ]
    (qa / "items.jsonl").write_text("\n".join(lines) + "\n")
    return Project.find(folder)


def make_run(project, run, replies, *, agent="harness", errored=()):
    """A finished run whose reply to an item is `replies(item)`."""
    evalset = load_evalset(project, "qa")
    config = RunConfig(
        id=run,
        evalset=evalset.ref,
        agent=agent,
        harness_id="h" * 40,
        policy="p",
        policy_id="p@1",
        judge="none",
        judge_id="none",
    )
    folder = RunStore(project.runs).create(config)
    results = [
        ItemResult(
            item_id=item.id,
            category=item.category,
            state="errored" if item.id in errored else "passed",
            reply=replies(item.id),
        )
        for item in evalset.items
    ]
    folder.journal.write_bytes(
        b"".join(
            line_of(msgspec.json.encode(ItemRecord(item=r.item_id, result=r))) for r in results
        )
    )
    return folder


def two_runs(folder, **more):
    """The project, a baseline (`r-react`) and a candidate (`r-harness`)."""
    project = make_project(folder, **more)
    baseline = make_run(project, "r-react", lambda i: f"react says {i}", agent="react")
    candidate = make_run(project, "r-harness", lambda i: f"harness says {i}")
    return project, baseline, candidate
