"""`builtin` scores the same whatever skills and tools are called: names mean nothing to it."""

import asyncio
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from renaming import made_up, names_of, permuted, rename, renamed_item

from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.metrics import skill_selection
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.loop.scaffold import make_project
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.project import Project

SHIPPED = Path(__file__).parents[2] / "evalsets" / "live_stream_qa" / "items.jsonl"
SEED, N = 20261129, 48
MARGIN = 0.05
"""Paired differences whose interval lies within 5 points of zero are called the same."""
METRICS = ("pass", "accuracy", "effectiveness", "skill_selection", "tc", "tool_rationality")


def items() -> list[dict]:
    lines = [json.loads(line) for line in SHIPPED.read_text().splitlines()]
    dev = [item for item in lines if item.get("split", "dev") == "dev"]
    ordered = [item for item in dev if item["expect"]["order"]]
    chosen = random.Random(SEED).sample([i for i in dev if i not in ordered], N - 4)
    return chosen + ordered[:4]


def evaluated(project: Project, chosen: list[dict]):
    folder = project.evalsets / "sample"
    folder.mkdir()
    (folder / "items.jsonl").write_text("".join(json.dumps(i) + "\n" for i in chosen))
    (folder / "evalset.yaml").write_text(
        f"schema: 1\nname: sample\nsplits: {{dev: {len(chosen)}}}\n"
    )
    return asyncio.run(evaluate(project, EvalOptions(evalset="sample"))).run


@pytest.fixture(scope="module")
def as_shipped(tmp_path_factory):
    project = Project.find(make_project(tmp_path_factory.mktemp("named") / "shop").root)
    return evaluated(project, items())


def skills_and_tools(project: Project, how: str) -> tuple[dict[str, str], dict[str, str]]:
    rng = random.Random(f"{SEED}/{how}")
    skills, tools = names_of(project)
    if how == "permuted":
        return permuted(skills, rng), permuted(tools, rng)
    return made_up(skills, rng, "-"), made_up(tools, rng, "_")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["permuted", "made up"])
def test_other_names_of_skills_and_tools_give_the_same_scores(tmp_path, as_shipped, how):
    project = Project.find(make_project(tmp_path / "shop").root)
    skills, tools = skills_and_tools(project, how)
    rename(project, skills, tools)
    other = evaluated(project, [renamed_item(item, skills, tools) for item in items()])
    found = compare(as_shipped.results(), other.results())
    assert found.items == N
    for delta in found.metrics:
        if delta.metric in METRICS:
            low, high = delta.paired.low, delta.paired.high
            assert delta.paired.n == delta.of > 0
            assert -MARGIN < low <= 0 <= high < MARGIN, (how, delta.metric, low, high)
    trajectories = list(other.trajectories())
    assert not left_over(trajectories, {**skills, **tools}) or how == "permuted"
    assert {c.name for t in trajectories for c in t.calls} & set(tools.values())
    # The scores would show it: held against the old names the same rollouts select no right skill.
    asked = {item["id"]: msgspec.convert(item, Item) for item in items()}
    under_old = [skill_selection(asked[t.item_id], t) for t in trajectories]
    assert fmean(s for s in under_old if s is not None) < 0.15


def left_over(trajectories: list[Trajectory], names: Mapping[str, str]) -> set[str]:
    """Old names that stand in anything the policy was shown; ordinary words are none."""
    shown = "\n".join(
        str(message.get("content")) for t in trajectories for s in t.steps for message in s.messages
    )
    return {name for name in names if re.search(r"[-_]", name) and name in shown}
