"""RL tasks of `harness export rl-tasks` as what a job plays, here and on a cluster."""

import json
import sys
from pathlib import Path

import msgspec
import pytest
from lesson_shop import ITEMS, make_lesson_shop
from tiny_checkpoint import make_tiny

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call

from harness_cli.errors import BadFile, Stale, UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.records.cluster import Cluster
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.training import RlTask
from harness_cli.records.training_job import OpdTraining
from harness_cli.training.job_folder import job_digest
from harness_cli.training.opd_job import plan_opd
from harness_cli.training.rl_items import with_tasks
from harness_cli.training.rl_plan import plan_rl
from harness_cli.training.scale.roll_folder import write_roll_job
from harness_cli.training.scale.verl_folder import write_verl_job

BUCKETS = {"hello-1": "solved", "wrong-1": "unsolved", "both-1": "hard", "two-1": "medium"}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    project = make_lesson_shop(tmp_path_factory.mktemp("tasks") / "shop")
    make_tiny(project.root / "base", hidden=16, context=60_000)
    write_tasks(project, "data/tasks", BUCKETS)
    return project


def write_tasks(project, folder, buckets, **more):
    evalset = load_evalset(project, "shop", split="dev")
    items = {item.id: item for item in evalset.items}
    tasks = [
        RlTask(
            id=name,
            evalset="shop",
            split="dev",
            evalset_digest=evalset.digest,
            category=items[name].category,
            request=items[name].request,
            rollouts=4,
            passed=0,
            bucket=bucket,
        )
        for name, bucket in buckets.items()
    ]
    lines = [msgspec.json.encode(msgspec.structs.replace(t, **more)) + b"\n" for t in tasks]
    path = project.root / folder / "tasks.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))


def job(**more):
    given = {"groups": 2, "rollouts": 2, "steps": 2, "tasks": "data/tasks", "schedule": "constant"}
    return RlTraining(name="hsa", base="base", **{**given, **more})


def test_a_job_of_tasks_plays_these_items_alone_and_needs_no_evalset(shop):
    plan = plan_rl(shop, job())
    assert set(plan.ground.tasks) == BUCKETS.keys()
    assert (plan.job.evalset, plan.job.split) == ("shop", "dev")
    told = plan.told()
    assert told["tasks"] == 4
    assert told["of the tasks"] == "data/tasks (all of them)"
    whole = plan_rl(shop, job(tasks=None, evalset="shop"))
    assert len(whole.ground.tasks) == len(ITEMS)
    assert whole.data != plan.data, "another set of items is another job"


def test_buckets_choose_by_difficulty(shop):
    plan = plan_rl(shop, job(buckets=("hard", "medium")))
    assert set(plan.ground.tasks) == {"both-1", "two-1"}
    with pytest.raises(UsageError, match="no task of `data/tasks` is easy") as caught:
        plan_rl(shop, job(buckets=("easy",)))
    assert caught.value.hint == "there are: hard, medium, solved, unsolved"
    with pytest.raises(UsageError, match="the job names none"):
        plan_rl(shop, job(tasks=None, evalset="shop", buckets=("easy",)))


def test_the_file_itself_is_named_as_well(shop):
    assert with_tasks(shop, job(tasks="data/tasks/tasks.jsonl")).evalset == "shop"


@pytest.mark.parametrize("engine", ["verl", "roll"])
def test_a_cluster_gets_the_items_of_the_tasks_alone(shop, tmp_path, engine):
    cluster = Cluster(gpus=2, prompt_tokens=2048, response_tokens=2048)
    write = write_verl_job if engine == "verl" else write_roll_job
    write(shop, job(buckets=("hard", "medium")), cluster, tmp_path / engine)
    sent = (tmp_path / engine / "room/items.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in sent} == {"both-1", "two-1"}
    assert json.loads((tmp_path / engine / "room/room.json").read_text())["rooms"] is None


def test_an_agentic_distillation_plays_tasks_too(shop):
    plan = plan_opd(
        shop,
        OpdTraining(
            name="opd",
            base="base",
            teacher="base",
            kind="agentic",
            steps=1,
            batch=1,
            environment={"tasks": "data/tasks", "buckets": ["hard"]},
        ),
    )
    assert [prompt.id for prompt in plan.prompts] == ["both-1"]


def test_tasks_of_another_version_of_the_items_are_stale(shop):
    write_tasks(shop, "data/old", BUCKETS, evalset_digest="0" * 64)
    with pytest.raises(Stale, match="not what the tasks of `data/old` were made of"):
        plan_rl(shop, job(tasks="data/old"))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (None, BadFile, "there are no RL tasks `data/bad`"),
        ("\n", BadFile, "holds no task"),
        ('{"id": "x"}\n', BadFile, "data/bad:1"),
    ],
)
def test_a_file_that_holds_no_tasks_is_refused_with_its_place(shop, text, error, words):
    path = shop.root / "data/bad/tasks.jsonl"
    path.unlink(missing_ok=True)
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.raises(error, match=words):
        plan_rl(shop, job(tasks="data/bad"))


def test_another_evalset_than_the_tasks_own_is_refused(shop):
    with pytest.raises(UsageError, match=r"holds tasks of `shop` dev, the job names `other` dev"):
        plan_rl(shop, job(evalset="other"))
    write_tasks(shop, "data/sealed", {"hello-1": "hard"}, split="test")
    with pytest.raises(UsageError, match="which measures"):
        plan_rl(shop, job(tasks="data/sealed"))


def test_a_job_without_tasks_is_the_job_that_it_was():
    """Its digest is in states and records that were written before there were tasks."""
    plain = RlTraining(name="hsa", base="base", evalset="shop")
    assert job_digest(plain) != job_digest(msgspec.structs.replace(plain, tasks="data/tasks"))
    assert job_digest(plain) == "f8528d90906298b22eb215c410766ab5bc8038aec6eb372129300b324ef9eaa6"


def test_what_is_exported_is_what_is_trained_on(shop):
    """The two verbs, one after the other."""
    call(shop.root, "eval", "shop", "--repeat", "2", "--quiet")
    code, _, err = call(shop.root, "export", "rl-tasks", "-o", "data/made")
    assert code == 0, err
    text = "name: made\nbase: base\ntasks: data/made\ngroups: 2\nrollouts: 2\nsteps: 1\n"
    (shop.root / "made.yaml").write_text(text)
    code, out, err = call(shop.root, "train", "rl", "made.yaml", "--dry-run", "--json")
    assert code == 0, err
    assert json.loads(out)["from"] == "shop"
    assert 2 <= json.loads(out)["tasks"] <= len(ITEMS)
