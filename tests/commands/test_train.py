"""`harness train`: jobs from the command line, before and behind it, and what comes of them."""

import json
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from lesson_shop import make_lesson_shop
from program import call
from tiny_checkpoint import make_tiny
from training_shop import greetings, write_rows

from harness_cli.training.job_folder import JobFolder, live_status

JOB = """schema: 1
name: {name}
base: tiny
data: [rows.jsonl]
steps: {steps}
batch: 2
lr: 0.01
threads: 1
save_every: 2
served: {{max_tokens: 8}}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    project = make_lesson_shop(tmp_path_factory.mktemp("train") / "shop")
    make_tiny(project.root / "tiny", hidden=16, context=60_000)
    write_rows(project.root, "rows.jsonl", greetings(project.root / "tiny", 8))
    return project


def job(shop, name, steps=2, text=JOB):
    path = shop.root / f"{name}.yaml"
    path.write_text(text.format(name=name, steps=steps))
    return path.name


def asked(shop, *words):
    return call(shop.root, *words)


def test_a_job_is_trained_evaluated_and_bound_by_its_digest(shop):
    code, out, err = asked(shop, "train", "sft", job(shop, "student"))
    assert (code, out) == (0, "checkpoint:student\n"), err
    assert "student: step 1 of 2" in err or "student: step 2 of 2" in err
    code, out, err = asked(
        shop, "eval", "shop", "--limit", "1", "--policy", "checkpoint:student", "--json", "-q"
    )
    assert code == 0, err
    run = next((shop.root / ".harness/runs").glob("*/run.json"))
    config = json.loads(run.read_text())
    assert config["policy"] == "checkpoint:student"
    assert config["policy_id"].startswith("checkpoint:student@")
    made = json.loads((shop.root / ".harness/checkpoints/student/checkpoint.json").read_text())
    assert config["policy_settings"]["checkpoint"]["sha256"] == made["digest"]
    assert json.loads(out)


def test_a_dry_run_checks_everything_and_writes_nothing(shop):
    code, out, _ = asked(shop, "train", "sft", job(shop, "dry"), "--dry-run", "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["rows"], told["steps"], told["rows a step"]) == (8, 2, 2)
    assert not JobFolder.of(shop.root, "dry").path.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (JOB + "learning_rate: 3\n", r"learning_rate"),
        (JOB.replace("base: tiny", "base: nowhere"), "no checkpoint named `nowhere`"),
        (JOB.replace("rows.jsonl", "none.jsonl"), "no training data `none.jsonl`"),
        (JOB.replace("schema: 1", "schema: 7"), "schema 7 is not known"),
        (JOB + "lora: {{r: 0}}\n", "lora"),
    ],
)
def test_a_job_that_cannot_be_meant_exits_2_with_its_place(shop, text, words):
    code, out, err = asked(shop, "train", "sft", job(shop, "wrong", text=text))
    assert code == 2
    assert words in err
    assert "Traceback" not in err + out


def test_a_job_that_is_done_says_so_and_how_it_is_served_from_now_on(shop):
    name = job(shop, "again")
    assert asked(shop, "train", "sft", name).code == 0
    code, out, err = asked(shop, "train", "sft", name, "--resume", "--json")
    assert (code, json.loads(out)["trained"]) == (0, False), err
    job(shop, "again", text=JOB.replace("max_tokens: 8", "max_tokens: 5, temperature: 0.5"))
    code, out, err = asked(shop, "train", "sft", name, "--resume")
    assert (code, out) == (0, "checkpoint:again\n")
    assert "nothing was trained" in err
    assert "served with max_tokens 5 from now on (was 8)" in err
    assert "served with temperature 0.5 from now on (was None)" in err
    code, _, err = asked(shop, "train", "sft", name, "--resume")
    assert "nothing was trained" in err
    assert "served with" not in err
    made = json.loads((shop.root / ".harness/checkpoints/again/checkpoint.json").read_text())
    assert made["served"]["max_tokens"] == 5


@pytest.mark.parametrize("verb", ["logs", "stop", "figures"])
def test_where_no_job_has_begun_the_newest_is_no_name(tmp_path, verb):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    code, out, err = call(tmp_path, "train", verb)
    assert (code, out) == (2, "")
    assert "no training job has begun" in err
    assert "``" not in err


def test_resume_and_again_cannot_both_be_meant(shop):
    code, _, err = asked(shop, "train", "sft", job(shop, "both"), "--resume", "--again")
    assert code == 2
    assert "only one can be meant" in err


def test_a_job_in_the_background_outlives_its_command_and_is_stopped(shop):
    name = job(shop, "behind", steps=4000)
    code, out, err = asked(shop, "train", "sft", name, "--background")
    assert (code, out) == (0, "behind\n"), err
    folder = JobFolder.of(shop.root, "behind")
    state = folder.state()
    assert live_status(state) == "running"
    code, _, err = asked(shop, "train", "sft", name, "--background")
    assert code == 2
    assert "is running" in err
    end = time.monotonic() + 60
    while not folder.curve() and time.monotonic() < end:
        time.sleep(0.05)
    code, out, _ = asked(shop, "train", "stop", "behind", "--json")
    assert (code, json.loads(out)["stopped"]) == (0, True)
    assert folder.state().status == "stopped"
    assert folder.saved_steps()[-1] == folder.state().step
    code, out, _ = asked(shop, "train", "status", "--json")
    known = {j["name"]: j["status"] for j in json.loads(out)["jobs"]}
    assert known["behind"] == "stopped"
    code, out, _ = asked(shop, "train", "logs", "behind", "-n", "2")
    assert code == 0
    assert out.count("loss") >= 1
    code, out, _ = asked(shop, "train", "stop", "behind", "--json")
    assert json.loads(out)["stopped"] is False


def test_a_job_that_does_not_come_up_says_why(shop):
    name = job(shop, "cannot", text=JOB.replace("base: tiny", "base: nowhere"))
    code, _, err = asked(shop, "train", "sft", name, "--background")
    assert code == 2, "bad input, as without --background"
    assert "`cannot` did not start" in err
    assert "no checkpoint named `nowhere`" in err


def test_several_gpus_are_a_command_and_a_configuration(shop):
    code, out, _ = asked(shop, "train", "sft", job(shop, "wide"), "--gpus", "4", "--dry-run")
    assert code == 0
    assert "accelerate.commands.launch --config_file" in out
    config = (shop.root / ".harness/train/wide/accelerate.yaml").read_text()
    assert "num_processes: 4" in config
    assert "MULTI_GPU" in config


def test_a_job_for_several_gpus_is_checked_before_a_process_starts(shop):
    name = job(shop, "never", text=JOB.replace("base: tiny", "base: nowhere"))
    code, _, err = asked(shop, "train", "sft", name, "--gpus", "2")
    assert code == 2
    assert "no checkpoint named `nowhere`" in err
    assert not JobFolder.of(shop.root, "never").path.exists()


@pytest.mark.accept
def test_two_processes_train_one_model(shop, monkeypatch):
    """gloo on this processor: the loss of a step is the one of a single process on both parts."""
    monkeypatch.setenv("ACCELERATE_USE_CPU", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    code, _, err = asked(shop, "train", "sft", job(shop, "pair"), "--gpus", "2")
    assert code == 0, err
    single = JOB.replace("batch: 2", "batch: 2\naccumulate: 2")
    code, _, err = asked(shop, "train", "sft", job(shop, "single", text=single))
    assert code == 0, err
    pair, alone = (JobFolder.of(shop.root, name).curve() for name in ("pair", "single"))
    assert len(pair) == len(alone) == 2
    assert pair[0]["loss"] == pytest.approx(alone[0]["loss"], rel=2e-2)  # other rows, one model
    assert pair[0]["num_tokens"] > 1.5 * alone[0]["num_tokens"] / 2
    state = JobFolder.of(shop.root, "pair").state()
    assert (state.status, state.step) == ("done", 2)
