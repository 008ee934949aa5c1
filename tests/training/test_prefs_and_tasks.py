"""Preference pairs from flips between two runs, and RL tasks with their difficulty."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from lesson_shop import GREETED, ITEMS, SCRIPT, item, make_lesson_shop

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))
sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from program import call
from small_shop import git

from harness_cli.errors import HarnessError, Stale, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.store.project import Project
from harness_cli.training.data_set import refuse_foreign
from harness_cli.training.preferences import write_prefs
from harness_cli.training.rl_tasks import bucket_of, write_rl_tasks

RIGHT = SCRIPT.replace("There are 99 left.", "There are 12 left.")
HARNESS = "harness_repo/prompts/blocks/base.md"


def evaluated(project, **options):
    return asyncio.run(evaluate(project, EvalOptions(evalset="shop", **options))).run


def rows(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def flips(tmp_path_factory):
    """A run before and after the teacher learnt the stock, in the same harness; one in another."""
    root = tmp_path_factory.mktemp("flips") / "shop"
    project = make_lesson_shop(root)
    before = evaluated(project)
    (root / "s.yaml").write_text(RIGHT)
    after = evaluated(Project.find(root))
    (root / HARNESS).write_text((root / HARNESS).read_text() + "Be kind.\n")
    git(root, "commit", "-q", "-am", "kind")
    other = evaluated(Project.find(root))
    return Project.find(root), before, after, other


def test_a_pair_is_the_first_turn_in_which_the_two_differ(flips, tmp_path):
    project, before, after, _ = flips
    card = write_prefs(project, before, after, tmp_path)
    (row,) = rows(tmp_path, "prefs.jsonl")
    assert row["id"] == "wrong-1#0"
    assert [m["role"] for m in row["prompt"]] == ["system", "user", "assistant", "tool"]
    assert row["chosen"] == [{"role": "assistant", "content": "There are 12 left."}]
    assert row["rejected"] == [{"role": "assistant", "content": "There are 99 left."}]
    assert row["same_prompt"] is True
    assert (row["chosen_from"]["run"], row["rejected_from"]["run"]) == (after.id, before.id)
    assert (row["chosen_from"]["verdict"], row["rejected_from"]["verdict"]) == ("passed", "failed")
    assert json.loads(row["tools"])[0]["function"]["name"] == "get_inventory"
    assert card.candidates == len(ITEMS)


def test_ties_and_what_broke_are_left_out_with_counts(flips, tmp_path):
    project, before, after, _ = flips
    card = write_prefs(project, before, after, tmp_path)
    assert card.left_out == {"both passed": 8, "errored": 1}
    assert sum(card.left_out.values()) + card.files["prefs.jsonl"].rows == card.candidates


def test_pass_to_fail_gives_pairs_only_when_asked(flips, tmp_path):
    project, before, after, _ = flips
    with pytest.raises(HarnessError, match=r"no pair in 10 rollouts.*1 × passed, then failed"):
        write_prefs(project, after, before, tmp_path / "a")
    write_prefs(project, after, before, tmp_path / "b", both=True)
    (row,) = rows(tmp_path / "b", "prefs.jsonl")
    assert row["chosen"][0]["content"] == "There are 12 left."


def test_a_reply_of_another_harness_stands_under_the_chosen_prompt_and_says_so(flips, tmp_path):
    project, before, _, other = flips
    card = write_prefs(project, before, other, tmp_path)
    (row,) = rows(tmp_path, "prefs.jsonl")
    assert row["same_prompt"] is False
    assert "Be kind." in row["prompt"][0]["content"]
    assert row["chosen_from"]["harness"] != row["rejected_from"]["harness"]
    assert any("same_prompt: false" in note for note in card.notes)


def test_runs_of_test_items_or_of_other_items_are_refused(flips, tmp_path):
    project, before, *_ = flips
    tested = evaluated(project, split="test", reason="a check")
    with pytest.raises(UsageError, match="no training data"):
        write_prefs(project, tested, tested, tmp_path)
    with pytest.raises(UsageError, match="no training data"):
        write_rl_tasks(project, [tested], tmp_path)
    file = project.evalsets / "shop/items.jsonl"
    text = file.read_text()
    file.write_text(text.replace("good evening", "good evening to you"))
    try:
        changed = evaluated(project)
        with pytest.raises(UsageError, match="different items"):
            write_prefs(project, before, changed, tmp_path)
        with pytest.raises(Stale, match="not what run"):
            write_rl_tasks(project, [before], tmp_path)
    finally:
        file.write_text(text)
    assert not (tmp_path / "manifest.json").exists()


FLAKY = """schema: 1
repeat: true
replies: [{text: Hello there!}, {text: nope}, {text: Hello there!}, {text: Hello there!}]
"""


@pytest.mark.parametrize(
    ("passed", "scored", "bucket"),
    [
        (0, 4, "unsolved"),
        (1, 4, "hard"),
        (1, 3, "hard"),
        (2, 4, "medium"),
        (2, 3, "medium"),
        (3, 4, "easy"),
        (4, 4, "solved"),
    ],
)
def test_difficulty_is_the_share_that_passed(passed, scored, bucket):
    assert bucket_of(passed, scored) == bucket


def test_tasks_count_the_rollouts_of_all_runs_and_hold_what_rewards_need(flips, tmp_path):
    project, *_ = flips
    runs = [evaluated(project, repeat=2), evaluated(project, repeat=2, seed=9)]
    card = write_rl_tasks(project, runs, tmp_path)
    tasks = {row["id"]: row for row in rows(tmp_path, "tasks.jsonl")}
    assert tasks["hello-1"] | {"request": {}} == {
        "id": "hello-1",
        "evalset": "shop",
        "split": "dev",
        "evalset_digest": card.evalset_digest,
        "category": "chat",
        "tags": [],
        "request": {},
        "facts": [],
        "skills": ["greet"],
        "tools": [],
        "policy": card.policy,
        "harness": card.harness,
        "rollouts": 4,
        "passed": 4,
        "unscored": 0,
        "bucket": "solved",
    }
    assert tasks["both-1"]["facts"][0]["value"] == 12
    assert tasks["both-1"]["request"]["comments"][0]["text"].startswith("both mugs")
    assert "broken-1" not in tasks
    assert card.left_out == {"fewer than 2 scored rollouts": 1}
    assert card.job["buckets"] == {"solved": 9}


def test_tasks_of_two_policies_are_no_measure(flips, tmp_path):
    project, before, after, _ = flips
    with pytest.raises(UsageError, match="differ in their policy"):
        write_rl_tasks(project, [before, after], tmp_path)


def test_one_rollout_an_item_measures_no_difficulty(flips, tmp_path):
    project, before, *_ = flips
    with pytest.raises(HarnessError, match="no item has 2 scored rollouts") as refused:
        write_rl_tasks(project, [before], tmp_path)
    assert "--repeat" in refused.value.hint


def test_flaky_items_are_between_solved_and_unsolved(tmp_path):
    root = tmp_path / "shop"
    project = make_lesson_shop(root, script=FLAKY)
    line = json.dumps(item("hello-1", "hello", GREETED)) + "\n"
    (root / "evalsets/shop/items.jsonl").write_text(line)
    (root / "evalsets/shop/evalset.yaml").write_text("name: shop\nsplits: {dev: 1}\n")
    run = evaluated(project, repeat=4, concurrency=1)
    write_rl_tasks(project, [run], tmp_path / "t")
    (task,) = rows(tmp_path / "t", "tasks.jsonl")
    states = [r.state for r in run.results()]
    assert task["passed"] == states.count("passed") == 3
    assert task["bucket"] == "easy"


def test_the_commands_write_sets_and_say_what_was_left_out(flips, tmp_path):
    project, before, after, _ = flips
    out = str(tmp_path / "p")
    done = call(project.root, "export", "prefs", before.id, after.id, "-o", out)
    assert done.code == 0, done.err
    assert "8 × both passed" in done.out
    none = call(project.root, "export", "prefs", after.id, before.id, "-o", out)
    assert none.code == 1
    assert "passed, then failed" in none.err
    tasks = call(project.root, "export", "rl-tasks", before.id, "-o", out)
    assert tasks.code == 1
    assert "hint: harness eval shop --repeat 4" in tasks.err


def test_a_folder_that_holds_something_else_is_left_as_it_is(flips, tmp_path):
    project, before, after, _ = flips
    items = project.root / "evalsets/shop/items.jsonl"
    kept = items.read_bytes()
    for words in (
        ("prefs", before.id, after.id, "-o", "evalsets/shop"),
        ("sft", "--evalset", "shop", "-o", "evalsets/shop"),
        ("sft", "--evalset", "shop", "-o", "harness.yaml"),
    ):
        done = call(project.root, "export", *words)
        assert done.code == 2, done.err
        assert "-o names a folder of its own" in done.err
    assert items.read_bytes() == kept
    assert not (items.parent / "teacher").exists()
    (tmp_path / "agent.jsonl").touch()
    with pytest.raises(UsageError, match=r"holds `agent.jsonl`, which is of no rl-tasks data"):
        refuse_foreign(tmp_path, "rl-tasks")
