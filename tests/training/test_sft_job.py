"""`harness train sft`: the loss that is trained, states, resume, and every trap of the trainer."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest
import torch
from tiny_checkpoint import make_tiny
from training_shop import greetings, make_project, sft, write_rows
from transformers import AutoModelForCausalLM

from harness_cli.errors import BadFile, HarnessError, Interrupted, Stale, UnknownName, UsageError
from harness_cli.models.checkpoint import open_checkpoint
from harness_cli.records.checkpoint import ServedAs
from harness_cli.records.training_job import Lora
from harness_cli.store.checkpoints import (
    checkpoint_policy,
    checkpoints,
    checkpoints_folder,
    digest_of,
    find_checkpoint,
    read_checkpoint,
)
from harness_cli.training.job_folder import JobFolder, Running, live_status
from harness_cli.training.local_trainer import NotFinite, Watch, open_student, train
from harness_cli.training.sft_job import make_trainer, plan_sft, run_sft


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("sft") / "shop")


@pytest.fixture(scope="module")
def straight(shop):
    """A job that ran through, and its curve."""
    made = run_sft(shop, sft("straight"))
    return made, JobFolder.of(shop.root, "straight").curve()


def losses(project, name):
    return [line["loss"] for line in JobFolder.of(project.root, name).curve()]


def trainer_of(project, job):
    plan = plan_sft(project, job)
    folder = JobFolder.of(project.root, job.name)
    student = open_student(job, plan.base.folder, plan.template)
    return make_trainer(plan, folder, student, None), plan


def test_the_loss_falls_and_the_checkpoint_is_registered_with_where_it_comes_from(shop, straight):
    made, curve = straight
    assert [line["step"] for line in curve] == [1, 2, 3, 4, 5, 6]
    assert curve[-1]["loss"] < curve[0]["loss"] - 0.5
    folder = find_checkpoint(shop.root, "straight")
    assert made.digest == digest_of(folder) == read_checkpoint(folder).digest
    assert made.base.digest == digest_of(shop.root / "tiny")
    assert made.data.keys() == {"rows.jsonl"}
    assert (made.steps, made.seed, made.made_by) == (6, 0, "sft")
    assert {"torch", "transformers", "trl", "peft"} <= made.versions.keys()
    state = JobFolder.of(shop.root, "straight").state()
    assert (state.status, state.checkpoint, state.step) == ("done", made.digest, 6)
    assert not JobFolder.of(shop.root, "straight").steps.exists()


def test_the_curve_goes_to_tensorboard_as_well(shop, straight):
    (events,) = JobFolder.of(shop.root, "straight").tensorboard.iterdir()
    assert b"train/loss" in events.read_bytes()


def test_the_loss_is_the_mean_over_all_trained_tokens_of_a_step(shop):
    """Accumulated batches together: a short row's tokens weigh as much as a long row's."""
    from harness_cli.training.losses import sft_loss

    job = sft("mean", batch=2, accumulate=3, steps=1, lr=1e-9)
    trainer, _ = trainer_of(shop, job)
    picked = []
    step = trainer.training_step
    trainer.training_step = lambda m, i, n: (
        picked.append({k: v.clone() for k, v in i.items()}) or step(m, i, n)
    )
    trainer.train()
    model = AutoModelForCausalLM.from_pretrained(shop.root / "tiny")
    parts, masks = [], []
    for batch in picked:
        with torch.no_grad():
            logits = model(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
            ).logits
        logp = logits[:, :-1].log_softmax(-1)
        labels = batch["labels"][:, 1:]
        mask = labels != -100
        parts.append(logp.gather(-1, labels.clamp(min=0)[..., None])[..., 0].reshape(-1))
        masks.append(mask.reshape(-1))
    wanted = sft_loss(torch.cat(parts)[None], torch.cat(masks)[None])
    assert len(picked) == 3
    assert trainer.state.log_history[0]["loss"] == pytest.approx(float(wanted), rel=1e-4)


def test_no_row_is_dropped_or_cut_without_a_word(shop):
    """TRL's `max_length` of 1024 keeps the start and drops rows whose labels lie behind it."""
    (row,) = greetings(shop.root / "tiny", 1)
    pad = [5] * 1500
    long = {"input_ids": pad + row["input_ids"], "labels": [-100] * 1500 + row["labels"]}
    write_rows(shop.root, "long.jsonl", [row, long])
    trainer, plan = trainer_of(shop, sft("long", data=("long.jsonl",)))
    assert [len(r["input_ids"]) for r in trainer.train_dataset] == [
        len(row["input_ids"]),
        1500 + len(row["input_ids"]),
    ]
    assert [r["labels"] for r in trainer.train_dataset] == [list(r.labels) for r in plan.rows.rows]
    with pytest.raises(UsageError, match=r"1 rows are longer than 1000 tokens; `long.jsonl:2`"):
        plan_sft(shop, sft("long", data=("long.jsonl",), max_tokens=1000))


def test_rows_longer_than_the_model_reads_are_refused_before_it_is_loaded(shop):
    (row,) = greetings(shop.root / "tiny", 1)
    write_rows(shop.root, "fits.jsonl", [row])
    make_tiny(shop.root / "short", context=len(row["input_ids"]) - 1)
    with pytest.raises(UsageError, match=r"the longest row has \d+ tokens, `short` reads \d+"):
        plan_sft(shop, sft("short-1", base="short", data=("fits.jsonl",)))
    make_tiny(shop.root / "short", context=len(row["input_ids"]))
    assert plan_sft(shop, sft("short-1", base="short", data=("fits.jsonl",))).steps


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"input_ids": [5, 6, 7], "labels": [-100] * 3}, "the mask is all zero"),
        ({"input_ids": [5, 6, 7], "labels": [5, -100, -100]}, "nothing predicts the first one"),
        ({"input_ids": [5, 6, 7], "labels": [-100, 7, 7]}, "another token than the one at its"),
        ({"input_ids": [5, 6, 7], "labels": [-100, 6]}, "3 tokens and 2 labels"),
        ({"input_ids": [5, 9999], "labels": [-100, 9999]}, "beyond the vocabulary of 259"),
        ({"input_ids": [5, 6]}, "labels"),
    ],
)
def test_rows_that_would_train_on_nothing_or_on_something_else_are_refused_with_their_place(
    shop, row, words
):
    (sound,) = greetings(shop.root / "tiny", 1)
    write_rows(shop.root, "wrong.jsonl", [sound, row])
    with pytest.raises(BadFile, match=words) as caught:
        plan_sft(shop, sft("wrong", data=("wrong.jsonl",)))
    assert "wrong.jsonl:2" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"base": "nowhere"}, UnknownName, "no checkpoint named `nowhere`"),
        ({"data": ("nothing.jsonl",)}, BadFile, "no training data `nothing.jsonl`"),
        ({"template": "no.jinja"}, BadFile, "no chat template `no.jinja`"),
        ({"name": "../up"}, UsageError, "cannot name a checkpoint"),
        ({"name": "tiny"}, UsageError, "replace its own base"),
    ],
)
def test_a_job_that_cannot_be_meant_is_refused_before_anything_is_loaded(
    shop, change, error, words
):
    with pytest.raises(error, match=words):
        plan_sft(shop, sft(**change))


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("config.json", lambda data: data[: len(data) // 2], "cut short or no JSON"),
        ("model.safetensors", lambda data: data[: len(data) // 2], "does not load"),
        ("model.safetensors", lambda data: data[:100], "does not load"),
    ],
)
def test_a_base_that_was_copied_in_part_is_refused(shop, file, change, words):
    folder = shop.root / "broken"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(shop.root / "tiny", folder)
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    with pytest.raises(BadFile) as caught:
        run_sft(shop, sft("of-broken", base="broken"))
    assert words in f"{caught.value} {caught.value.hint}"
    assert JobFolder.of(shop.root, "of-broken").state() is None


def test_a_base_that_lacks_a_weight_is_refused_and_not_drawn_at_random(shop):
    from safetensors.torch import load_file, save_file

    folder = shop.root / "partial"
    shutil.copytree(shop.root / "tiny", folder)
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(BadFile, match=r"lacks 1 weights .* `model.layers.1.mlp.up_proj.weight`"):
        run_sft(shop, sft("of-partial", base="partial"))


def test_a_registered_base_whose_files_were_changed_is_refused(shop, straight):
    run_sft(shop, sft("changed", steps=1))
    config = find_checkpoint(shop.root, "changed") / "config.json"
    config.write_text(config.read_text() + "\n")
    with pytest.raises(BadFile, match="`changed` is not the checkpoint that was registered"):
        plan_sft(shop, sft("of-changed", base="changed"))


def test_a_killed_job_goes_on_to_the_same_curve(shop, straight):
    """kill -9 in the middle of a run; tolerance 1e-6 on every step's loss, weights alike."""
    job = sft("killed")
    path = shop.root / "killed.json"
    path.write_bytes(msgspec.json.encode(job))
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUN, str(shop.root), str(path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    folder = JobFolder.of(shop.root, "killed")
    end = time.monotonic() + 120
    while time.monotonic() < end and not (folder.saved_steps() and len(folder.curve()) >= 3):
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert live_status(folder.state()) == "stale"
    assert folder.saved_steps()
    assert len(folder.curve()) < 6
    with pytest.raises(HarnessError, match="has states up to step"):
        run_sft(shop, job)
    with pytest.raises(Stale, match="the job of `killed` is another"):
        run_sft(shop, msgspec.structs.replace(job, lr=1.0), resume=True)
    made = run_sft(shop, job, resume=True)
    whole, curve = straight
    assert [line["step"] for line in folder.curve()] == [1, 2, 3, 4, 5, 6]
    assert losses(shop, "killed") == pytest.approx([line["loss"] for line in curve], abs=1e-6)
    assert made.files["model.safetensors"] == whole.files["model.safetensors"]


SLOW_RUN = """
import sys, time
from pathlib import Path
import msgspec
from harness_cli.records.training_job import SftTraining
from harness_cli.store.project import Project
from harness_cli.training.sft_job import run_sft
job = msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=SftTraining)
run_sft(Project.find(Path(sys.argv[1])), job, observe=lambda running, values: time.sleep(0.5))
"""


def test_a_job_that_is_done_is_not_done_again_and_not_replaced_unasked(shop, straight):
    made, _ = straight
    assert run_sft(shop, sft("straight"), resume=True) == made
    with pytest.raises(HarnessError, match="there is a checkpoint `straight` already, of this job"):
        run_sft(shop, sft("straight"))
    with pytest.raises(HarnessError, match="of another job"):
        run_sft(shop, sft("straight", lr=0.5), resume=True)
    again = run_sft(shop, sft("straight"), again=True)
    assert again.digest == made.digest


def test_what_changes_only_how_it_is_served_goes_into_the_record_of_a_job_that_is_done(shop):
    first = run_sft(shop, sft("served", steps=1))
    changed = sft("served", steps=1, served=ServedAs(max_tokens=9, temperature=0.0), keep=1)
    again = run_sft(shop, changed, resume=True)
    assert (again.digest, again.created) == (first.digest, first.created)
    assert (again.served.max_tokens, again.served.temperature) == (9, 0.0)
    assert (again.job["served"]["max_tokens"], again.job["keep"]) == (9, 1)
    assert read_checkpoint(find_checkpoint(shop.root, "served")) == again
    assert checkpoint_policy(shop.root, "served").max_tokens == 9


def test_a_job_that_fails_while_its_trainer_is_built_has_failed(shop):
    """Not `stale`: nobody killed it. Here the folder of its states is a file."""
    folder = JobFolder.of(shop.root, "unbuilt")
    folder.path.mkdir(parents=True)
    folder.steps.write_text("")
    with pytest.raises(FileExistsError):
        run_sft(shop, sft("unbuilt", steps=1))
    state = folder.state()
    assert (state.status, live_status(state)) == ("failed", "failed")
    assert "FileExistsError" in state.error
    folder.steps.unlink()
    assert run_sft(shop, sft("unbuilt", steps=1)).steps == 1


def test_a_state_that_was_cut_short_is_no_state(shop):
    job = sft("cut")
    stop_after(shop, job, 3)
    folder = JobFolder.of(shop.root, "cut")
    assert folder.saved_steps() == [2, 3]
    (folder.state_at(3) / "complete.json").unlink()
    (folder.state_at(3) / "optimizer.pt").write_bytes(b"half")
    made = run_sft(shop, job, resume=True)
    assert made.steps == 6
    assert [line["step"] for line in folder.curve()] == [1, 2, 3, 4, 5, 6]


def stop_after(project, job, step):
    """TERM at a step, as `harness train stop` sends it."""

    def observe(running, values):
        if running.state.step == step:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted, match=f"stopped after step {step}"):
        run_sft(project, job, observe=observe)


def test_a_job_stops_after_its_step_and_goes_on_from_there(shop, straight):
    job = sft("stopped")
    stop_after(shop, job, 3)
    state = JobFolder.of(shop.root, "stopped").state()
    assert (state.status, state.step, state.saved) == ("stopped", 3, 3)
    run_sft(shop, job, resume=True)
    assert losses(shop, "stopped") == pytest.approx([s["loss"] for s in straight[1]], abs=1e-6)


@pytest.mark.parametrize("before", [{"steps": 2}, {}], ids=["another job", "the same job"])
def test_a_replacement_that_was_cut_short_goes_on(shop, straight, before):
    """The checkpoint that had the name stays until then, and is not taken for what is asked for."""
    name = f"replaced-{len(before)}"
    first = run_sft(shop, sft(name, **before))

    def observe(running, values):
        if running.state.step == 3:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted, match="stopped after step 3") as caught:
        run_sft(shop, sft(name), again=True, observe=observe)
    assert caught.value.hint == "--resume goes on from step 3"
    assert read_checkpoint(find_checkpoint(shop.root, name)) == first
    with pytest.raises(HarnessError, match="there is a checkpoint"):
        run_sft(shop, sft(name))
    made = run_sft(shop, sft(name), resume=True)
    assert losses(shop, name) == pytest.approx([s["loss"] for s in straight[1]], abs=1e-6)
    assert made.created >= first.created
    assert made.files["model.safetensors"] == straight[0].files["model.safetensors"]
    assert run_sft(shop, sft(name), resume=True) == made


def test_again_is_said_of_one_checkpoint_and_of_no_other_that_came_to_the_name(shop):
    run_sft(shop, sft("moved", steps=1))

    def observe(running, values):
        if running.state.step == 3:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_sft(shop, sft("moved"), again=True, observe=observe)
    place = checkpoints_folder(shop.root)
    shutil.rmtree(place / "moved")
    other = run_sft(shop, sft("mover", steps=1, seed=9))
    (place / "mover").rename(place / "moved")
    with pytest.raises(HarnessError, match="of another job or other data"):
        run_sft(shop, sft("moved"), resume=True)
    assert read_checkpoint(place / "moved") == other


def test_a_second_signal_stops_at_once(shop):
    def observe(running, values):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match="before the step was done"):
        run_sft(shop, sft("twice"), observe=observe)
    assert JobFolder.of(shop.root, "twice").state().status == "stopped"


def test_a_loss_that_is_no_number_ends_the_job_with_the_last_state_whole(shop):
    plan = plan_sft(shop, sft("nan"))
    folder = JobFolder.of(shop.root, "nan")
    running = Running.begin(folder, plan.job, "sft", steps=6, data_sha256="")
    student = open_student(plan.job, plan.base.folder, plan.template)

    def poison(running, values):
        if running.state.step == 3:
            trainer.model.model.norm.weight.data.fill_(float("nan"))

    watch = Watch(running, plan.job, poison)
    trainer = make_trainer(plan, folder, student, watch)
    with pytest.raises(NotFinite, match=r"step 4: loss is nan"):
        train(trainer, watch, running, 0)
    assert folder.saved_steps() == [2]
    assert folder.state().status == "failed"
    assert [line["step"] for line in folder.curve()] == [1, 2, 3]
    weights = AutoModelForCausalLM.from_pretrained(folder.state_at(2))
    assert all(torch.isfinite(p).all() for p in weights.parameters())


def test_an_update_that_blows_up_leaves_no_state_and_no_checkpoint(shop):
    """The loss of the step was a number still; the weights behind it are none."""
    job = sft("hot", lr=1e38, clip=1e38, schedule="constant", warmup=0.0, save_every=1)
    with pytest.raises(NotFinite, match=r"no numbers|is nan|is inf") as caught:
        run_sft(shop, job)
    assert "a smaller lr" in caught.value.hint
    saved = JobFolder.of(shop.root, "hot").saved_steps()
    for step in saved:
        weights = AutoModelForCausalLM.from_pretrained(
            JobFolder.of(shop.root, "hot").state_at(step)
        )
        assert all(torch.isfinite(p).all() for p in weights.parameters())
    assert "hot" not in [c.name for c in checkpoints(shop.root)]


def test_a_full_disk_leaves_the_last_state_and_the_checkpoint_before(shop, straight):
    """No file may grow beyond some bytes: what a full disk does to a write."""
    before = digest_of(checkpoints_folder(shop.root) / "straight")
    job = sft("straight", steps=4)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def observe(running, values):
        if running.state.step == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))

    try:
        with pytest.raises(HarnessError, match="the disk is full") as caught:
            run_sft(shop, job, again=True, observe=observe)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, previous)
    assert "make room" in caught.value.hint
    folder = JobFolder.of(shop.root, "straight")
    assert folder.saved_steps() == [2]
    assert digest_of(checkpoints_folder(shop.root) / "straight") == before
    assert [p.name for p in checkpoints_folder(shop.root).glob(".*")] == []


def test_adapters_are_merged_into_the_checkpoint_or_kept_apart(shop):
    merged = run_sft(shop, sft("merged", lora=Lora(r=4), steps=2))
    apart = run_sft(shop, sft("apart", lora=Lora(r=4, save="adapter"), steps=2))
    assert (merged.format, apart.format) == ("full", "adapter")
    assert "adapter_model.safetensors" in apart.files
    whole = AutoModelForCausalLM.from_pretrained(find_checkpoint(shop.root, "merged"))
    base = AutoModelForCausalLM.from_pretrained(shop.root / "tiny")
    name = "model.layers.0.self_attn.q_proj.weight"
    assert not torch.equal(whole.state_dict()[name], base.state_dict()[name])
    assert torch.equal(
        whole.state_dict()["model.embed_tokens.weight"],
        base.state_dict()["model.embed_tokens.weight"],
    )
    acting = {
        name: open_checkpoint(name, checkpoint_policy(shop.root, name), shop.root).loaded()
        for name in ("merged", "apart")
    }
    ids = torch.tensor([[5, 6, 7]])
    with torch.inference_mode():
        one, other = (acting[name].model(input_ids=ids).logits for name in ("merged", "apart"))
    torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)  # merging rounds
    with pytest.raises(UsageError, match="an adapter, no whole checkpoint"):
        plan_sft(shop, sft("next", base="apart"))


def test_adapters_on_layers_that_there_are_not_are_refused_and_leave_no_running_job(shop):
    job = sft("layers", lora=Lora(targets=("q_proj", "nosuch")))
    with pytest.raises(UsageError, match="no layer `nosuch`") as caught:
        run_sft(shop, job)
    assert "q_proj" in caught.value.hint
    assert JobFolder.of(shop.root, "layers").state() is None


def test_two_jobs_of_one_name_do_not_run_at_once(shop):
    from harness_cli.errors import Locked

    caught = []

    def observe(running, values):
        if running.state.step == 1:
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()

    def second():
        try:
            run_sft(shop, sft("both", steps=2))
        except Locked as exc:
            caught.append(exc)

    run_sft(shop, sft("both", steps=2), observe=observe)
    assert caught
    assert caught[0].hint == "wait until it is done, or harness train stop both"


def test_epochs_count_every_row_once_whatever_is_accumulated(shop):
    plan = plan_sft(shop, sft("epochs", steps=None, epochs=2.0, batch=5, accumulate=2))
    assert plan.steps == 6  # 24 rows: 5 batches, 3 steps an epoch
    assert plan.told()["rows"] == 24


def test_the_checkpoint_keeps_the_template_it_was_trained_under(shop, tmp_path):
    from harness_cli.models.template_source import trl_template

    job = sft("templated", template="trl:qwen2_5_training", steps=1)
    run_sft(shop, job)
    folder = find_checkpoint(shop.root, "templated")
    trained = trl_template("trl:qwen2_5_training").read_text()
    assert (folder / "chat_template.jinja").read_text() == trained


def test_json_of_the_curve_is_one_line_a_step(shop, straight):
    path = JobFolder.of(shop.root, "straight").metrics
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all({"step", "loss", "grad_norm", "learning_rate"} <= line.keys() for line in lines)
