"""`harness train mtp` whole: rollouts, the fit, its arms, the checkpoint; stopped and gone on."""

import asyncio
import json
import os
import random
import signal

import msgspec
import pytest
import torch
from tiny_checkpoint import END, PAD, make_tokenizer
from tiny_qwen import config, head_for
from transformers import Qwen3_5ForCausalLM
from typer.testing import CliRunner

from harness_cli.errors import BadFile, HarnessError, Interrupted, Stale, UnknownName, UsageError
from harness_cli.main import app
from harness_cli.models.base import Deadline
from harness_cli.models.checkpoint import open_checkpoint
from harness_cli.models.checkpoint_head import as_tensors
from harness_cli.models.checkpoint_load import load_model
from harness_cli.models.mtp_check import check_head
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights import read_weights
from harness_cli.models.weights_write import write_safetensors
from harness_cli.records.chat import ChatRequest
from harness_cli.records.mtp import MtpComparison, MtpTraining
from harness_cli.records.reader import read_json
from harness_cli.records.trajectory import Step, Trajectory
from harness_cli.store.checkpoints import checkpoint_policy, checkpoints_folder
from harness_cli.store.project import Project
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.mtp.recorded import calls_of, refuse_other_policy
from harness_cli.training.mtp_job import plan_mtp, run_mtp

JOB = MtpTraining(
    name="drafter",
    base="policy",
    head="native",
    native="native",
    moved="moved",
    random=True,
    prompts=("prompts.jsonl",),
    rollouts=32,
    new_tokens=24,
    temperature=0.3,
    steps=40,
    batch=8,
    lr=1e-2,
    measured=3,
    threads=1,
    save_every=20,
)
PROJECT = """schema: 1
harness: harness_repo
policy: builtin
policies: {builtin: {kind: builtin}}
judges: {grounded: {kind: grounded}}
roles: {final_judge: grounded}
"""


def make_policy(folder, seed, head=False):
    """A model that says letters in a round of its own, whatever it is asked."""
    make_tokenizer(folder)
    torch.manual_seed(seed)
    model = Qwen3_5ForCausalLM(config(vocab_size=259, eos_token_id=258, pad_token_id=256))
    draws = random.Random(seed)
    letters = draws.sample(range(80, 110), 6)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-2)
    for _ in range(40):
        turns = [draws.randrange(6) for _ in range(8)]
        ids = torch.tensor([[10, *((letters * 4)[n : n + 18])] for n in turns])
        loss = model(input_ids=ids, labels=ids).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    if head:
        part = folder / "h.part"
        write_safetensors(part, as_tensors(head_for(model), "F32"))
        stitch(part, folder, native=True)
        part.unlink()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("shop")
    (root / "harness.yaml").write_text(PROJECT)
    (root / "harness_repo").mkdir()
    for seed, name in enumerate(("native", "policy", "moved")):
        make_policy(root / name, seed, head=name == "native")
    asked = [{"prompt": f"{word} {n}?"} for word in ("how much", "when", "hi") for n in range(5)]
    (root / "prompts.jsonl").write_text("".join(json.dumps(a) + "\n" for a in asked))
    assert (PAD, END) == ("<|endoftext|>", "<|im_end|>")
    return Project.find(root)


@pytest.fixture(scope="module")
def made(project):
    return run_mtp(project, JOB)


def test_the_arms_are_compared_in_one_run(project, made):
    path = JobFolder.of(project.root, "drafter").path / "arms.json"
    found = read_json(path, MtpComparison, name="arms.json")
    arms = {arm.name: arm for arm in found.arms}
    greedy = {name: arm.drafting[0].accept_length for name, arm in arms.items()}
    assert list(arms) == ["native", "transplanted", "trained", "random", "stale", "absent"]
    assert greedy["trained"] >= 1.5 * greedy["transplanted"]
    assert greedy["absent"] == 1.0
    assert greedy["stale"] < greedy["trained"]
    assert all(arm.drafting[0].same_as_plain in (True, None) for arm in found.arms)
    assert arms["trained"].last_loss < 0.8 * arms["trained"].first_loss
    assert found.policy_digest_before == found.policy_digest_after
    assert made.metrics["accept_length/trained/greedy"] == greedy["trained"]


def test_the_checkpoint_is_the_policy_bit_for_bit_with_its_head(project, made):
    folder = checkpoints_folder(project.root) / "drafter"
    report = check_head(folder)
    assert (report.findings, report.provenance.origin) == ((), "trained")
    assert report.provenance.steps == JOB.steps
    before = read_weights(project.root / "policy").tensors
    after = read_weights(folder).tensors
    assert {n: after[n].data() for n in before} == {n: t.data() for n, t in before.items()}


def test_the_curve_is_drawn_faint_and_as_a_trailing_mean(project, made):
    text = (JobFolder.of(project.root, "drafter").path / "loss.svg").read_text()
    assert text.count("<polyline") == 2 * 3
    assert 'stroke-opacity="0.3"' in text
    assert "policy, from random" in text


def test_a_job_that_was_stopped_goes_on_to_the_same_weights(project, made):
    job = msgspec.structs.replace(JOB, name="halting", random=False, native=None, moved=None)

    def stop(running, values):
        if running.state.step == 23:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_mtp(project, job, observe=stop)
    folder = JobFolder.of(project.root, "halting")
    assert folder.state().status == "stopped"
    assert folder.saved_steps()[-1] == 23
    with pytest.raises(HarnessError, match="has states up to step 23"):
        run_mtp(project, job)
    with pytest.raises(Stale):
        run_mtp(project, msgspec.structs.replace(job, lr=1e-3), resume=True)
    run_mtp(project, job, resume=True)
    whole = JobFolder.of(project.root, "drafter").curve()
    assert [m["loss"] for m in folder.curve()] == [m["loss"] for m in whole]
    heads = [
        check_head(checkpoints_folder(project.root) / n).head_digest for n in ("halting", "drafter")
    ]
    assert heads[0] == heads[1]
    assert run_mtp(project, job, resume=True).name == "halting"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"head": None}, "has no draft head"),
        ({"prompts": ()}, "names no prompts"),
        ({"measured": 15}, "held out"),
        ({"base": "drafter"}, "no checkpoint named|replace its own base"),
        ({"head": "policy"}, "no draft head in"),
    ],
)
def test_a_job_that_cannot_be_meant_is_refused_before_anything_runs(project, changed, says):
    job = msgspec.structs.replace(JOB, name="wrong", random=False, **changed)
    job = job if "base" not in changed else msgspec.structs.replace(job, name="drafter")
    with pytest.raises((UsageError, HarnessError), match=says):
        plan_mtp(project, job)


def test_prompts_that_are_not_there_are_missed_before_stand_ins_are_made(tmp_path):
    (tmp_path / "harness.yaml").write_text(PROJECT)
    project = Project.find(tmp_path)
    job = MtpTraining(
        name="drafter", base="standin-task", prompts=("none.jsonl",), standin_steps=10**6
    )
    with pytest.raises(BadFile, match=r"no file of prompts `none.jsonl`") as refused:
        run_mtp(project, job)
    assert "bring their own" in refused.value.hint
    assert not checkpoints_folder(project.root).exists()


def test_recorded_runs_of_the_policy_are_learnt_from_and_others_refused(project, tmp_path):
    """Answers of a checkpoint policy, kept by a run, in place of fresh ones."""

    async def asked(policy):
        request = ChatRequest(messages=({"role": "user", "content": "hi"},), max_tokens=16)
        replies = [await policy.complete(request, Deadline()) for _ in range(3)]
        await policy.close()
        return replies

    policy = open_checkpoint("p", checkpoint_policy(project.root, "policy"), project.root)
    steps = tuple(
        Step(index=n, messages=(), reply=reply, fallback=n == 2)
        for n, reply in enumerate(asyncio.run(asked(policy)))
    )
    calls = calls_of([Trajectory(request_id="r", steps=steps, stop="completed")])
    assert [c.rollout.sampled for c in calls] == [list(s.reply.token_ids) for s in steps[:2]]
    own, other = (load_model(project.root / n, dtype="float32").eval() for n in ("policy", "moved"))
    refuse_other_policy(own, calls, 1.0, "r")
    with pytest.raises(UsageError, match="was not sampled by this policy"):
        refuse_other_policy(other, calls, 1.0, "r")
    with pytest.raises(UnknownName):
        plan_mtp(project, msgspec.structs.replace(JOB, name="again", runs=("no-such",)))


def test_from_the_command_line(project, made):
    file = project.root / "job.yaml"
    file.write_bytes(msgspec.yaml.encode(JOB))
    run = CliRunner().invoke
    told = run(app, ["train", "mtp", "job.yaml", "--dry-run", "--json", "-C", str(project.root)])
    assert json.loads(told.stdout)["arms"].startswith("native, transplanted, trained")
    done = run(app, ["train", "mtp", "job.yaml", "--resume", "-C", str(project.root)])
    assert done.exit_code == 0, done.output
    assert "transplanted" in done.stdout
    checked = run(app, ["mtp", "check", "drafter", "--json", "-C", str(project.root)])
    assert json.loads(checked.stdout)["ok"] is True
    bad = run(app, ["mtp", "check", "policy", "-C", str(project.root)])
    assert (bad.exit_code, "absent" in bad.stdout) == (1, True)
    again = run(app, ["mtp", "stitch", "drafter", "policy", "--json", "-C", str(project.root)])
    assert json.loads(again.stdout)["ok"] is True
