"""Preference pairs and RL tasks from runs whose items ran under augmented states."""

import asyncio
import json

import msgspec
import pytest

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import HarnessError, Stale
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.variant_set import draw_rows, states_text
from harness_cli.harness.load import harness_files, load_state
from harness_cli.loop.scaffold import make_project
from harness_cli.records.augmentation import Dimension, Recipe
from harness_cli.records.reader import dump_yaml
from harness_cli.records.rl_job import RlTraining
from harness_cli.simulator.solutions import read_oracle
from harness_cli.store.project import Project
from harness_cli.training.preferences import write_prefs
from harness_cli.training.rl_items import open_items, with_tasks
from harness_cli.training.rl_tasks import write_rl_tasks
from harness_cli.training.run_states import run_states

NAMES = Recipe(
    dimensions={
        "tool_definitions": Dimension(strength=1.0, moves=("rename", "parameters")),
        "skill_identifiers": Dimension(strength=1.0, moves=("rename",)),
    },
    skip=0.0,
)
SCRIPT = {
    "schema": 1,
    "repeat": True,
    "replies": [
        {
            "text": None,
            "calls": [
                {"name": "load_skill", "arguments": {"skill": "thanks"}},
                {"name": "get_product_info_by_link_id", "arguments": {"link_id": 1}},
            ],
        },
        {"text": "Thank you, what a lovely evening!"},
    ],
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Two items, and the same two under states of their own; a policy that fails in base names."""
    project = Project.find(make_project(tmp_path_factory.mktemp("states") / "shop").root)
    every = load_evalset(project, "live_stream_qa", split="dev").items
    items = [i for i in every if i.expect.tools and len(i.expect.facts) == 1][:2]
    base, folder = project.evalsets / "few", project.evalsets / "few-states"
    base.mkdir()
    folder.mkdir()
    (base / "items.jsonl").write_bytes(b"".join(msgspec.json.encode(i) + b"\n" for i in items))
    (base / "evalset.yaml").write_text("name: few\nsplits: {dev: 2}\n")
    (folder / "evalset.yaml").write_text(
        "name: few-states\nsplits: {dev: 2}\nitems_of: few\nstates: states.json\n"
    )
    state, oracle = load_state(project), read_oracle(project.evalsets)
    drawn, _ = asyncio.run(draw_rows(harness_files(project), state, NAMES, items, oracle, seed=5))
    (folder / "states.json").write_bytes(states_text(state.id, NAMES, drawn))
    (project.root / "s.yaml").write_text(dump_yaml(SCRIPT))
    settings = (project.root / "harness.yaml").read_text()
    entry = "policies:\n  wrong: {kind: scripted, script: s.yaml}\n"
    (project.root / "harness.yaml").write_text(settings.replace("policies:\n", entry, 1))
    return Project.find(project.root)


def evaluated(project, evalset, **options):
    return asyncio.run(evaluate(project, EvalOptions(evalset=evalset, **options))).run


@pytest.fixture(scope="module")
def runs(shop):
    return {
        "failed": evaluated(shop, "few", policy="wrong"),
        "base": evaluated(shop, "few", policy="builtin"),
        "states": evaluated(shop, "few-states", policy="builtin", repeat=2),
    }


def rows(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_a_pair_across_states_is_said_in_the_names_of_the_chosen_one(shop, runs, tmp_path):
    card = write_prefs(shop, runs["failed"], runs["states"], tmp_path)
    made = rows(tmp_path, "prefs.jsonl")
    assert made
    states = load_evalset(shop, "few-states")
    held = {item.id: states.states.given(item.state) for item in states.items}
    for row in made:
        given = held[row["chosen_from"]["item"]]
        names = Renaming(given)
        offered = [tool["function"]["name"] for tool in json.loads(row["tools"])]
        loaded, asked = (c["function"] for c in row["rejected"][0]["tool_calls"])
        assert loaded["name"] == names.tool("load_skill") != "load_skill"
        assert loaded["arguments"] == names.arguments("load_skill", {"skill": "thanks"})
        assert asked["name"] == names.tool("get_product_info_by_link_id")
        assert asked["arguments"] == names.arguments("get_product_info_by_link_id", {"link_id": 1})
        assert {loaded["name"], asked["name"]} <= set(offered)
        assert {c["function"]["name"] for c in row["chosen"][0]["tool_calls"]} <= set(offered)
        assert row["same_prompt"] is False
        assert row["rejected_from"]["state"] == "original"
        assert row["rejected_from"]["map_sha256"] == ""
        assert row["chosen_from"]["state"] == given.state
        assert row["chosen_from"]["harness"] == card.states[given.state]
        assert len(row["chosen_from"]["map_sha256"]) == 64


def test_a_rejected_reply_of_states_comes_back_in_the_names_of_the_base(shop, runs, tmp_path):
    states = run_states(shop, runs["states"].config())
    for trajectory in runs["states"].trajectories():
        under = states.of(trajectory.item_id)
        assert under.state.id == trajectory.harness_id
        back = under.in_base(trajectory)
        known = {tool.name for tool in load_state(shop).all_tools()}
        assert {call.name for call in back.calls} <= known
        assert under.from_base(back) == trajectory


def test_tasks_of_states_are_the_items_of_the_base(shop, runs, tmp_path):
    card = write_rl_tasks(shop, [runs["states"]], tmp_path)
    base = load_evalset(shop, "few")
    assert (card.evalset, card.evalset_digest) == ("few", base.digest)
    assert "augmented states of `few-states`" in card.notes[0]
    expected = {item.id: item.expect for item in base.items}
    for task in rows(tmp_path, "tasks.jsonl"):
        assert (task["evalset"], task["evalset_digest"]) == ("few", base.digest)
        assert tuple(task["skills"]) == expected[task["id"]].skills
        assert task["tools"] == [tool.name for tool in expected[task["id"]].tools]
        assert task["rollouts"] == 2
    job = with_tasks(shop, RlTraining(name="x", base="tiny", tasks=str(tmp_path)))
    assert len(open_items(shop, job).evalset.items) == 2


def test_a_run_in_one_augmented_harness_has_that_state_for_every_item(shop, runs, tmp_path):
    states = load_evalset(shop, "few-states")
    item = next(iter(states.items))
    out = tmp_path / "out" / item.state
    for path, data in states.states.state(item.state).files.items():
        file = out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    given = states.states.given(item.state)
    out.with_name(f"{item.state}.yaml").write_text(dump_yaml(given))
    run = evaluated(shop, "few", policy="builtin", only=(item.id,), harness=str(out), repeat=2)
    under = run_states(shop, run.config()).of(item.id)
    assert (under.name, under.state.id) == (item.state, run.config().harness_id)
    card = write_rl_tasks(shop, [run], tmp_path / "tasks")
    assert f"state `{item.state}`" in card.notes[0]
    (task,) = rows(tmp_path / "tasks", "tasks.jsonl")
    assert task["skills"] == list(load_evalset(shop, "few").item(item.id).expect.skills)


def test_states_that_changed_since_and_runs_of_other_sets_are_refused(shop, runs, tmp_path):
    with pytest.raises(HarnessError, match="are of different items"):
        write_rl_tasks(shop, [runs["base"], runs["states"]], tmp_path)
    path = shop.evalsets / "few-states" / "states.json"
    text = path.read_text()
    path.write_text(text.replace('"seed":6', '"seed":7'))
    try:
        for call in (
            lambda: write_prefs(shop, runs["failed"], runs["states"], tmp_path),
            lambda: write_rl_tasks(shop, [runs["states"]], tmp_path),
        ):
            with pytest.raises(Stale, match="not what run"):
                call()
    finally:
        path.write_text(text)
