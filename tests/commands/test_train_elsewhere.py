"""`harness train … --engine verl|roll`: what a user sees of a job that another engine runs."""

import json
import stat
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from lesson_shop import make_lesson_shop
from program import call
from tiny_checkpoint import make_tiny

JOB = """name: hsa
base: base
evalset: shop
groups: 4
rollouts: 4
steps: 6
schedule: constant
"""
CLUSTER = """gpus: 2
auth: disabled
model: /models/base
prompt_tokens: 2048
response_tokens: 2048
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    project = make_lesson_shop(tmp_path_factory.mktemp("elsewhere") / "shop")
    make_tiny(project.root / "base", hidden=16)
    (project.root / "hsa.yaml").write_text(JOB)
    (project.root / "cluster.yaml").write_text(CLUSTER)
    return project


def asked(shop, *words):
    return call(shop.root, "train", "rl", "hsa.yaml", *words)


def test_a_dry_run_writes_the_folder_and_prints_the_command(shop):
    code, out, err = asked(shop, "--engine", "verl", "--cluster", "cluster.yaml", "--dry-run")
    assert code == 0, err
    folder = shop.root / ".harness/train/hsa/verl"
    assert out.startswith(f"cd {folder} && RAY_AUTH_MODE=disabled ray job submit --address ")
    assert "trainer.v1.trainer_mode=harness_sync" in out
    assert "actor_rollout_ref.model.path=/models/base" in out
    assert "not handed in" in err
    assert "2 tasks of each round are no whole step" in err
    assert (folder / "room" / "room.json").is_file()


def test_json_has_folder_command_environment_and_overrides(shop):
    code, out, err = asked(
        shop, "--engine", "verl", "--cluster", "cluster.yaml", "--dry-run", "--json"
    )
    assert code == 0, err
    told = json.loads(out)
    assert told["dry_run"] is True
    assert told["environment"] == {"RAY_AUTH_MODE": "disabled"}
    assert told["left_out_a_round"] == 2, "ten items, four groups a step"
    assert told["command"][:3] == ["ray", "job", "submit"]
    assert told["command"][-len(told["overrides"]) :] == told["overrides"]


def test_without_a_dry_run_the_job_is_handed_in(shop, tmp_path):
    program = tmp_path / "ray"
    program.write_text('#!/bin/sh\necho "Job raysubmit_7 submitted, mode $RAY_AUTH_MODE"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (shop.root / "mine.yaml").write_text(f"{CLUSTER}ray: {program}\n")
    code, out, err = asked(shop, "--engine", "verl", "--cluster", "mine.yaml")
    assert code == 0, err
    assert "raysubmit_7 submitted, mode disabled" in out
    assert "handed in" in err


def test_roll_gets_a_configuration_and_a_starter(shop):
    code, out, err = asked(shop, "--engine", "roll", "--cluster", "cluster.yaml")
    assert code == 0, err
    folder = shop.root / ".harness/train/hsa/roll"
    assert out.strip() == f"python {folder / 'start.py'}"
    assert (folder / "harness_rl.yaml").is_file()


@pytest.mark.parametrize("engine", ["verl", "roll"])
def test_a_folder_is_replaced_by_one_that_was_checked_or_not_at_all(shop, engine):
    """A second export that is refused, before or in the middle, leaves the first as it is."""
    words = ("--engine", engine, "--cluster", "cluster.yaml", "--dry-run")
    code, _, err = asked(shop, *words)
    assert code == 0, err
    where = shop.root / ".harness/train/hsa"
    (where / engine / "mine").write_text("of the first")
    before = files_of(where / engine)
    for text in (JOB.replace("groups: 4", "groups: 11"), JOB + "denominator: kept\n"):
        (shop.root / "hsa.yaml").write_text(text)
        code, _, _ = asked(shop, *words)
        (shop.root / "hsa.yaml").write_text(JOB)
        assert code == 2
        assert files_of(where / engine) == before
    code, _, err = asked(shop, *words)
    assert code == 0, err
    before.pop("mine")
    assert files_of(where / engine).keys() == before.keys()
    assert [p.name for p in where.iterdir() if p.name.startswith(".")] == []
    if engine == "roll":
        said = (where / engine / "harness_rl.yaml").read_text()
        assert f"room: {where / engine / 'room'}" in said


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "very"), "very"),
        (("--engine", "verl", "--resume"), "--resume is for jobs that train here"),
        (("--engine", "verl", "--gpus", "2"), "--gpus is for jobs that train here"),
        (("--cluster", "cluster.yaml"), "--cluster is for --engine"),
        (("--engine", "verl", "--cluster", "none.yaml"), "none.yaml"),
        (("--engine", "verl", "--cluster", "old.yaml"), "schema 2 is not known"),
        (("--engine", "verl", "--cluster", "wrong.yaml"), "node"),
        (("--engine", "verl", "--cluster", "tensor.yaml"), "strategy: megatron"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(shop, words, said):
    (shop.root / "old.yaml").write_text("schema: 2\n")
    (shop.root / "wrong.yaml").write_text("node: 3\n")
    (shop.root / "tensor.yaml").write_text(f"{CLUSTER}tensor: 2\n")
    code, _, err = asked(shop, *words, "--dry-run")
    assert code == 2
    assert said in err


def test_fewer_prompts_than_a_step_of_verl_takes_are_refused(shop):
    (shop.root / "one.jsonl").write_text('{"prompt": "Name a colour."}\n')
    text = "name: few\nbase: base\nteacher: base\nprompts: [one.jsonl]\nsteps: 2\nbatch: 2\n"
    (shop.root / "few.yaml").write_text(text)
    code, _, err = call(shop.root, "train", "opd", "few.yaml", "--engine", "verl", "--dry-run")
    assert code == 2
    assert "a step of `few` takes 2 prompts and there are 1" in err
    assert not (shop.root / ".harness/train/few/verl").exists()


def test_a_dry_run_of_a_distillation_for_roll_is_refused(shop):
    (shop.root / "p.jsonl").write_text('{"prompt": "Name a colour."}\n')
    text = "name: opd\nbase: base\nteacher: base\nprompts: [p.jsonl]\nsteps: 2\n"
    (shop.root / "opd.yaml").write_text(text)
    code, _, err = call(shop.root, "train", "opd", "opd.yaml", "--engine", "roll")
    assert code == 2
    assert "reinforcement alone" in err
