"""`--engine verl` and `--engine roll`: folders that are whole, keys that the engines know."""

import json
import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from lesson_shop import make_lesson_shop
from tiny_checkpoint import make_tiny

from harness_cli.errors import HarnessError, MissingExtra, Stale, UsageError
from harness_cli.records.cluster import Cluster
from harness_cli.records.mtp import MtpTraining
from harness_cli.records.reader import load_yaml
from harness_cli.records.rl_job import RlTraining, Rooms
from harness_cli.records.training_job import Lora, OpdTraining, SftTraining
from harness_cli.store.project import Project
from harness_cli.training.scale.from_jobs import rl_plan
from harness_cli.training.scale.key_tree import (
    check_mapping,
    check_overrides,
    key_tree,
)
from harness_cli.training.scale.parquet import read_rows, write_rows
from harness_cli.training.scale.roll_folder import roll_config, write_roll_job
from harness_cli.training.scale.room import CARD, Room
from harness_cli.training.scale.submit import submit, submit_words
from harness_cli.training.scale.verl_folder import write_verl_job
from harness_cli.training.scale.verl_overrides import GROUPS
from harness_cli.training.scale.verl_rows import MaskedRows

TWO = Cluster(gpus=2, prompt_tokens=2048, response_tokens=2048)
MEGATRON = msgspec.structs.replace(TWO, strategy="megatron", tensor=2, experts=2, serve_tensor=2)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    root = tmp_path_factory.mktemp("shop")
    project = make_lesson_shop(root)
    make_tiny(root / "base")
    return project


def rl_job(**given):
    settings = {"evalset": "shop", "groups": 4, "rollouts": 4, "steps": 6, "schedule": "constant"}
    return RlTraining(**{"name": "hsa", "base": "base", **settings, **given})


def values_of(overrides):
    return {
        key: load_yaml(text, name=key) for key, _, text in (o.partition("=") for o in overrides)
    }


@pytest.fixture(scope="module")
def rl(shop, tmp_path_factory):
    return write_verl_job(shop, rl_job(kl=0.01), TWO, tmp_path_factory.mktemp("rl") / "verl")


def test_a_reinforcement_job_is_a_whole_folder(rl):
    names = {str(p.relative_to(rl.folder)) for p in rl.folder.rglob("*") if p.is_file()}
    assert {
        "agent_loop.yaml",
        "data/train.parquet",
        "data/val.parquet",
        "job.json",
        "overrides.txt",
        "room/harness.yaml",
        "room/items.jsonl",
        "room/room.json",
        "runtime_env.yaml",
        "submit.sh",
    } <= names
    assert any(name.startswith("room/harness/skills/") for name in names)
    assert not any(".git/" in name for name in names)


def test_its_overrides_say_what_methods_say(rl):
    told = values_of(rl.overrides)
    actor, rollout = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
    assert told[actor + "policy_loss.loss_mode"] == "gspo"
    assert told[actor + "loss_agg_mode"] == "seq-mean-token-mean"
    assert told[actor + "clip_ratio_low"] == 3e-4
    assert told[actor + "clip_ratio_high"] == 4e-4
    assert told[actor + "use_kl_loss"] is True
    assert told[actor + "kl_loss_coef"] == 0.01
    assert told["algorithm.use_kl_in_reward"] is False
    assert (told[rollout + "top_p"], told[rollout + "top_k"]) == (1.0, -1)
    assert told[rollout + "calculate_log_probs"] is True
    assert told[rollout + "name"] == "sglang"
    assert told[rollout + "n"] == 4
    assert told["data.train_batch_size"] == 4
    assert told["trainer.v1.trainer_mode"] == "harness_sync"
    assert told["trainer.total_training_steps"] == 6


def test_all_rows_of_a_step_are_one_mini_batch(rl):
    # 4 prompts x 4 rollouts x 2 segments = 32 rows; verl multiplies the mini-batch by n.
    told = values_of(rl.overrides)
    assert told["actor_rollout_ref.actor.ppo_mini_batch_size"] * 4 == 32
    # … and lets more than train_batch_size through under this alone.
    assert told["actor_rollout_ref.actor.use_dynamic_bsz"] is True


def test_no_key_is_added_behind_the_engines_back(rl):
    assert not any(line.startswith(("+", "~")) for line in rl.overrides)


def test_the_prompts_are_the_tasks_of_the_room(rl):
    rows = read_rows(rl.folder / "data" / "train.parquet")
    room = Room.open(rl.folder / "room")
    assert [row["extra_info"]["task"] for row in rows] == list(room.ground.tasks)
    assert [row["extra_info"]["index"] for row in rows] == list(range(10))
    assert {row["agent_name"] for row in rows} == {"harness"}
    assert room.card.rows == "segments"
    assert room.card.one_version is True


def test_no_sealed_item_is_sent(rl):
    sent = (rl.folder / "room" / "items.jsonl").read_text() + "".join(
        p.read_text() for p in (rl.folder / "room").rglob("*.yaml")
    )
    assert "test-1" not in sent


def test_tasks_of_live_rooms_come_with_the_scenarios_they_are_drawn_from(shop, tmp_path):
    project = Project.find(Path(__file__).parents[2])  # the shipped harness, catalogue, scenarios
    job = rl_job(base=str(shop.root / "base"), evalset="", rooms=Rooms(tasks=5, first=7))
    made = write_verl_job(project, job, TWO, tmp_path / "v")
    room = Room.open(made.folder / "room")
    assert set(room.ground.tasks) <= {f"room-{seed}" for seed in range(7, 12)}
    assert len(room.ground.tasks) >= 4
    assert (made.folder / "room/evalsets/scenarios").is_dir()
    assert not (made.folder / "room/items.jsonl").exists()
    sent = sorted(p.name for p in (made.folder / "room/evalsets").iterdir())
    assert sent == ["catalogue", "scenarios"]  # no evalset, sealed or open
    rows = read_rows(made.folder / "data/train.parquet")
    assert [row["extra_info"]["task"] for row in rows] == list(room.ground.tasks)


def test_a_room_with_another_harness_is_refused(rl, tmp_path):
    room = tmp_path / "room"
    shutil.copytree(rl.folder / "room", room)
    skill = next((room / "harness" / "skills").rglob("SKILL.md"))
    skill.write_text(skill.read_text() + "\nBe brief.\n")
    with pytest.raises(Stale, match="harness"):
        Room.open(room)


def test_ray_gets_the_folder_and_the_plug_in_by_name(rl):
    env = load_yaml((rl.folder / "runtime_env.yaml").read_text(), name="env")
    assert env["working_dir"] == "."
    plugin = "harness_cli.training.scale.verl_plugin"
    assert env["env_vars"]["VERL_USE_EXTERNAL_MODULES"] == plugin
    assert rl.words[:3] == ("ray", "job", "submit")
    assert rl.words[rl.words.index("--runtime-env") + 1] == "runtime_env.yaml"
    assert rl.words[rl.words.index("--") + 1 :][:3] == (
        "python3",
        "-m",
        "harness_cli.training.scale.verl_start",
    )


def test_the_plug_in_loads_without_verl_and_is_an_entry_point():
    import harness_cli.training.scale.verl_plugin as plugin

    with pytest.raises(MissingExtra, match="verl"):
        plugin.assert_registered()
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.entry-points."verl.plugins"]' in text
    assert 'harness = "harness_cli.training.scale.verl_plugin"' in text


@pytest.mark.parametrize(
    ("cluster", "keys"),
    [
        (
            msgspec.structs.replace(TWO, trainer="disaggregated", sync_every=2),
            {
                "trainer.v1.trainer_mode": "harness_separate_async",
                "actor_rollout_ref.hybrid_engine": False,
                "trainer.v1.separate_async.parameter_sync_step": 2,
                "actor_rollout_ref.actor.ppo_mini_batch_size": 2,
                "actor_rollout_ref.rollout.checkpoint_engine.backend": "nccl",
                "algorithm.rollout_correction.bypass_mode": False,
                "algorithm.rollout_correction.rollout_is": "token",
                "algorithm.rollout_correction.rollout_is_threshold": 5.0,
            },
        ),
        (
            msgspec.structs.replace(TWO, trainer="colocated_async"),
            {
                "trainer.v1.trainer_mode": "harness_colocate_async",
                "trainer.v1.sampler.max_off_policy_threshold": 1,
            },
        ),
        (
            msgspec.structs.replace(MEGATRON, replay_routing=True),
            {
                "model_engine": "megatron",
                "actor_rollout_ref.actor.megatron.expert_model_parallel_size": 2,
                "actor_rollout_ref.actor.megatron.router_replay.mode": "R3",
                "actor_rollout_ref.rollout.enable_rollout_routing_replay": True,
                "actor_rollout_ref.rollout.expert_parallel_size": 2,
            },
        ),
    ],
    ids=["disaggregated", "colocated_async", "megatron_moe"],
)
def test_a_cluster_decides_how_it_is_cut_up(shop, tmp_path, cluster, keys):
    told = values_of(write_verl_job(shop, rl_job(), cluster, tmp_path / "verl").overrides)
    assert {key: told[key] for key in keys} == keys


@pytest.mark.parametrize(
    ("job", "cluster", "said"),
    [
        (rl_job(denominator="kept"), TWO, "divide by the rollouts sampled"),
        (rl_job(top_p=0.9), TWO, "top_p"),
        (rl_job(schedule="linear"), TWO, "no linear schedule under FSDP"),
        (rl_job(), msgspec.structs.replace(TWO, tensor=2), "strategy: megatron"),
        (rl_job(), msgspec.structs.replace(TWO, replay_routing=True), "megatron"),
        (rl_job(), msgspec.structs.replace(TWO, tokens_per_gpu=100), "4096 tokens"),
        (rl_job(template="trl:qwen3_training"), TWO, "lies in the base"),
        (
            rl_job(),
            msgspec.structs.replace(TWO, trainer="disaggregated", sync_every=3),
            "do not divide",
        ),
        (rl_job(lora=Lora(dropout=0.1)), TWO, "no dropout"),
    ],
)
def test_what_verl_cannot_do_is_refused_before_anything_is_sent(shop, tmp_path, job, cluster, said):
    with pytest.raises(UsageError) as found:
        write_verl_job(shop, job, cluster, tmp_path / "verl")
    assert said in f"{found.value} {found.value.hint}"


def test_general_distillation_is_reverse_kl_by_policy_gradient(shop, tmp_path):
    (shop.root / "prompts.jsonl").write_text('{"prompt": "Name a colour."}\n{"prompt": "Add."}\n')
    job = OpdTraining(name="opd", base="base", teacher="base", prompts=("prompts.jsonl",), steps=3,
                      batch=2)  # fmt: skip
    made = write_verl_job(shop, job, msgspec.structs.replace(TWO, teacher="/big"), tmp_path / "v")
    told = values_of(made.overrides)
    at = "distillation.distillation_loss."
    assert told[at + "loss_mode"] == "k1"
    assert told[at + "use_policy_gradient"] is True
    assert told[at + "use_task_rewards"] is False
    assert told["distillation.teacher_models.teacher_model.model_path"] == "/big"
    assert told["trainer.v1.trainer_mode"] == "sync"
    loop = load_yaml((made.folder / "agent_loop.yaml").read_text(), name="loop")
    assert loop[0]["_target_"].endswith(".PromptLoop")
    assert not (made.folder / "room").exists()
    assert len(read_rows(made.folder / "data" / "train.parquet")) == 2


def test_agentic_distillation_is_one_output_a_rollout(shop, tmp_path):
    where = {"evalset": "shop", "augmented": 0.0}
    job = OpdTraining(name="opd", base="base", teacher="base", kind="agentic", environment=where,
                      steps=3, batch=4, schedule="constant")  # fmt: skip
    made = write_verl_job(shop, job, TWO, tmp_path / "v")
    # verl asks the teacher about the last output of a rollout alone.
    assert Room.open(made.folder / "room").card.rows == "whole"


def head_job(**given):
    settings = {"prompts": ("p.jsonl",), "depths": 1, "batch": 2, "rollouts": 8, **given}
    return MtpTraining(name="head", base="base", weight_decay=0.1, **settings)


def test_a_draft_head_is_trained_while_nothing_pulls_at_the_policy(shop, tmp_path):
    (shop.root / "p.jsonl").write_text('{"prompt": "Name a colour."}\n{"prompt": "Add."}\n')
    job = head_job(schedule="constant")
    told = values_of(write_verl_job(shop, job, MEGATRON, tmp_path / "v").overrides)
    mtp = "actor_rollout_ref.model.mtp."
    assert [told[mtp + k] for k in ("enable", "enable_train", "detach_encoder")] == [True] * 3
    assert told["actor_rollout_ref.actor.optim.weight_decay"] == 0.0
    assert told["actor_rollout_ref.actor.use_kl_loss"] is False
    assert told["trainer.total_training_steps"] == 4


@pytest.mark.parametrize(
    ("given", "cluster", "said"),
    [
        ({"depths": 3}, MEGATRON, "depths"),
        ({"random": True}, MEGATRON, "arms are compared"),
        ({"temperature": 0.0}, MEGATRON, "whole distribution"),
        ({}, TWO, "under Megatron alone"),
    ],
)
def test_what_verl_cannot_do_with_a_head_is_refused(shop, tmp_path, given, cluster, said):
    with pytest.raises(UsageError, match=said):
        write_verl_job(shop, head_job(schedule="constant", **given), cluster, tmp_path / "v")


def test_supervised_rows_bring_their_own_masks(shop, tmp_path):
    rows = [{"input_ids": [5, 6, 7, 8], "labels": [-100, -100, 7, 8]},
            {"input_ids": [5, 6], "labels": [-100, 6]}]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (shop.root / "rows.jsonl").write_text(text)
    job = SftTraining(name="sft", base="base", data=("rows.jsonl",), steps=2, batch=2)
    made = write_verl_job(shop, job, TWO, tmp_path / "v")
    told = values_of(made.overrides)
    assert told["data.max_length"] == 4
    assert told["data.custom_cls.name"] == "MaskedRows"
    assert "--sft" in made.words
    data = MaskedRows(str(made.folder / "data" / "train.parquet"), config={"max_length": 4})
    assert [data[0][k].tolist() for k in ("input_ids", "loss_mask", "position_ids")] == [
        [5, 6, 7, 8],
        [0, 0, 1, 1],
        [0, 1, 2, 3],
    ]
    with pytest.raises(UsageError, match="`max_length` is 3"):
        MaskedRows(str(made.folder / "data" / "train.parquet"), config={"max_length": 3})


# -- keys ------------------------------------------------------------------------------------------


def test_every_exported_key_once_misspelt_is_refused(rl):
    tree = key_tree("verl-ppo-dp")
    for line in rl.overrides:
        key, _, value = line.partition("=")
        misspelt = f"{key[:-1]}={value}" if len(key) > 3 else f"x{line}"
        with pytest.raises(UsageError, match="does not know"):
            check_overrides([misspelt], tree, groups=GROUPS)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("trainer.nnode=1", "did you mean `nnodes`"),
        ("+trainer.nnodes=1", "only `key=value`"),
        ("++trainer.nnodes=1", "only `key=value`"),
        ("~trainer.nnodes", "only `key=value`"),
        ("trainer.nnodes=one", "is no int"),
        ("trainer.nnodes=true", "is no int"),
        ("trainer.use_v1=1", "is no bool"),
        ("trainer=1", "is a section"),
        ("trainer.nnodes.more=1", "is a value"),
        ("data.train_batch_size", "only `key=value`"),
    ],
)
def test_a_wrong_override_is_named(line, said):
    with pytest.raises(UsageError, match="does not know") as found:
        check_overrides([line], key_tree("verl-ppo-dp"))
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("name", "key", "kind"),
    [
        ("verl-ppo-dp", "actor_rollout_ref.actor.loss_agg_mode", "str"),
        ("verl-ppo-dp", "algorithm.rollout_correction.bypass_mode", "bool"),
        ("verl-ppo-megatron", "actor_rollout_ref.actor.megatron.expert_model_parallel_size", "int"),
        ("verl-ppo-dp", "actor_rollout_ref.rollout.top_p", "float"),
        ("verl-sft-fsdp", "data.custom_cls.path", "any"),
        ("verl-ppo-megatron", "actor_rollout_ref.model.mtp.detach_encoder", "bool"),
        ("roll-agentic", "ratio_type", "str"),
        ("roll-agentic", "actor_train.training_args.learning_rate", "float"),
        ("roll-agentic", "custom_envs", "open"),
    ],
)
def test_the_trees_hold_names_and_types(name, key, kind):
    node = key_tree(name)
    for step in key.split("."):
        node = node[step]
    assert node == kind


def test_a_roll_job_is_a_configuration_and_a_starter(shop, tmp_path):
    file = write_roll_job(shop, rl_job(), TWO, tmp_path / "roll")
    told = load_yaml(file.read_text(), name="roll")
    assert told["ratio_type"] == "segment"
    assert told["loss_agg_mode"] == "seq-mean-token-mean"  # token-mean sums masked tokens there
    assert told["rollout_batch_size"] == 16
    assert told["actor_infer"]["generating_args"]["top_p"] == 1.0
    env = told["custom_envs"]["Harness"]
    assert Path(env["env_config"]["room"]) == (tmp_path / "roll" / "room").resolve()
    assert Room.open(tmp_path / "roll" / "room").ground.tasks
    compile((tmp_path / "roll" / "start.py").read_text(), "start.py", "exec")


def test_every_key_of_a_roll_job_once_misspelt_is_refused(shop, tmp_path):
    # dacite drops a key that it does not know without a word: here is the only guard.
    told = load_yaml(write_roll_job(shop, rl_job(), TWO, tmp_path / "roll").read_text(), name="r")
    tree = key_tree("roll-agentic")
    free = ("custom_envs", "checkpoint_config", "tracker_kwargs", "strategy_config")
    tried = 0
    for path in _paths(told):
        if any(step in free for step in path[:-1]):
            continue
        with pytest.raises(UsageError, match="does not know"):
            check_mapping(_renamed(told, path), tree)
        tried += 1
    assert tried > 60


def _paths(node, before=()):
    for key, value in node.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from _paths(value, (*before, key))


def _renamed(node, path):
    head, rest = path[0], path[1:]
    if not rest:
        return {(k + "x" if k == head else k): v for k, v in node.items()}
    return {k: (_renamed(v, rest) if k == head else v) for k, v in node.items()}


def test_roll_counts_steps_alone(shop, tmp_path):
    plan = replace(rl_plan(shop, rl_job(), TWO), steps=None)
    with pytest.raises(UsageError, match="counts steps"):
        roll_config(plan, rl_job(), TWO, tmp_path)


# -- handing in ------------------------------------------------------------------------------------


@pytest.fixture
def ray_program(tmp_path):
    """A program called `ray` that writes down how it was called."""
    program = tmp_path / "bin" / "ray"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > "$CALLED"\nprintf "%s" "$RAY_AUTH_MODE" > "$CALLED.env"\n'
        'pwd > "$CALLED.cwd"\n[ -z "$FAIL" ] || { echo "no head at all"; exit 3; }\n'
        "echo submitted raysubmit_1\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_a_job_is_handed_in_from_its_folder_with_the_mode_said(
    rl, ray_program, tmp_path, monkeypatch
):
    called = tmp_path / "called"
    monkeypatch.setenv("CALLED", str(called))
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    cluster = msgspec.structs.replace(TWO, ray=str(ray_program), auth="disabled")
    words = submit_words(cluster, ["python3", "-c", "1"])
    assert "raysubmit_1" in submit(rl.folder, cluster, words)
    assert called.read_text().split("\n")[:5] == [
        "job", "submit", "--address", "http://127.0.0.1:8265", "--no-wait",
    ]  # fmt: skip
    assert Path(f"{called}.env").read_text() == "disabled"
    assert Path(f"{called}.cwd").read_text().strip() == str(rl.folder)


def test_a_missing_token_is_missed_before_anything_is_sent(rl, ray_program, tmp_path, monkeypatch):
    monkeypatch.setenv("CALLED", str(tmp_path / "called"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    cluster = msgspec.structs.replace(TWO, ray=str(ray_program), auth="token")
    with pytest.raises(UsageError, match="asks for a token"):
        submit(rl.folder, cluster, submit_words(cluster, ["true"]))
    assert not (tmp_path / "called").exists()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "t" * 32)
    submit(rl.folder, cluster, submit_words(cluster, ["true"]))
    assert (tmp_path / "called").exists()


def test_what_ray_says_of_a_failure_is_shown(rl, ray_program, tmp_path, monkeypatch):
    monkeypatch.setenv("CALLED", str(tmp_path / "called"))
    monkeypatch.setenv("FAIL", "1")
    cluster = msgspec.structs.replace(TWO, ray=str(ray_program), auth="disabled")
    with pytest.raises(HarnessError, match="no head at all"):
        submit(rl.folder, cluster, submit_words(cluster, ["true"]))


def test_without_ray_the_extra_is_named(rl):
    cluster = msgspec.structs.replace(TWO, ray="no-such-ray", auth="disabled")
    with pytest.raises(MissingExtra, match="no-such-ray"):
        submit(rl.folder, cluster, submit_words(cluster, ["true"]))


def test_the_script_does_the_same_by_hand(rl, ray_program, tmp_path):
    called = tmp_path / "called"
    env = {
        **os.environ,
        "CALLED": str(called),
        "PATH": f"{ray_program.parent}:{os.environ['PATH']}",
    }
    subprocess.run([str(rl.folder / "submit.sh")], env=env, check=True, capture_output=True)
    assert Path(f"{called}.env").read_text() == "token"
    assert Path(f"{called}.cwd").read_text().strip() == str(rl.folder)
    assert "trainer.v1.trainer_mode=harness_sync" in called.read_text()


def test_rows_of_nested_values_come_back(tmp_path):
    rows = [{"prompt": [{"role": "user", "content": "你好"}], "extra_info": {"index": 0}}]
    write_rows(tmp_path / "a.parquet", rows)
    assert read_rows(tmp_path / "a.parquet") == rows


def test_a_card_keeps_what_the_job_says(rl):
    card = json.loads((rl.folder / "room" / CARD).read_text())
    assert card["augmented"] == 0.5
    assert card["penalty"] == {"low": 100.0, "high": 200.0, "weight": 0.1} or card["penalty"] == {
        "low": 100, "high": 200, "weight": 0.1
    }  # fmt: skip
