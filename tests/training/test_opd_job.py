"""`harness train opd`: what the divergence is, whose words it is on, who may teach."""

import json
import shutil

import pytest
import torch
from lesson_shop import make_lesson_shop
from tiny_checkpoint import make_tiny
from training_shop import make_project, opd
from transformers import AutoModelForCausalLM

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.records.rl_job import RlTraining
from harness_cli.store.checkpoints import digest_of, find_checkpoint, read_checkpoint
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.local_trainer import open_student
from harness_cli.training.losses import distillation_loss
from harness_cli.training.opd_job import plan_opd, run_opd
from harness_cli.training.opd_trainer import make_trainer, rows_as_tensors
from harness_cli.training.rl_job import run_rl
from harness_cli.training.rollouts import Rollout, Row


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("opd") / "shop")


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    """A project with items to roll a student out on; what it says is random words."""
    project = make_lesson_shop(tmp_path_factory.mktemp("agentic"))
    make_tiny(project.root / "wild", hidden=16, spread=0.4, context=60_000)
    make_tiny(project.root / "teacher", hidden=16, spread=0.4, context=60_000, seed=3)
    return project


def agentic(name="followed", **more):
    given = {
        "base": "wild",
        "teacher": "teacher",
        "kind": "agentic",
        "environment": {"evalset": "shop", "limit": 2, "augmented": 0.5, "pool": 2},
        "new_tokens": 12,
        "steps": 2,
        "batch": 2,
        "prompts": (),
    }
    return opd(name, **{**given, **more})


def test_the_student_comes_nearer_to_its_teacher_and_is_registered(shop):
    made = run_opd(shop, opd())
    curve = [line["loss"] for line in JobFolder.of(shop.root, "distilled").curve()]
    assert len(curve) == 4
    assert curve[-1] < curve[0]
    assert made.teacher.digest == digest_of(shop.root / "tiny")
    assert made.base.digest == digest_of(shop.root / "other")
    assert made.digest == read_checkpoint(find_checkpoint(shop.root, "distilled")).digest
    assert made.data.keys() == {"prompts.jsonl", "teacher"}


def test_the_loss_is_the_reverse_divergence_over_the_whole_vocabulary_on_sampled_tokens(shop):
    job = opd("checked", lr=1e-9, steps=1)
    plan = plan_opd(shop, job)
    student = open_student(job, plan.base.folder, plan.template)
    with make_trainer(plan, JobFolder.of(shop.root, "checked"), student, None) as trainer:
        assert (trainer.args.top_p, trainer.args.top_k, trainer.args.beta) == (1.0, 0, 1.0)
        picked = []
        compute = trainer.compute_loss
        trainer.compute_loss = lambda m, i, **k: picked.append(i) or compute(m, i, **k)
        trainer.train()
    (batch,) = picked
    logged = trainer.state.log_history[0]["loss"]
    assert logged == pytest.approx(divergence(shop, batch, "other", "tiny"), rel=1e-3)


def divergence(project, batch, student, teacher):
    """KL(student ‖ teacher), a mean over the tokens with loss, from plain forward passes."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    wanted = batch["completion_mask"] * batch.get("tool_mask", batch["completion_mask"])
    logits = []
    for name in (student, teacher):
        model = AutoModelForCausalLM.from_pretrained(project.root / name)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        with torch.no_grad():
            whole = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits
        kept = whole[:, batch["prompt_ids"].shape[1] - 1 : -1]
        logits.append(kept[wanted.bool()])
    one, other = (part.log_softmax(-1) for part in logits)
    return float((one.exp() * (one - other)).sum(-1).mean())


def test_our_own_divergence_is_the_same_number(shop):
    torch.manual_seed(0)
    one, other = torch.randn(5, 11), torch.randn(5, 11)
    p, q = one.log_softmax(-1), other.log_softmax(-1)
    wanted = (p.exp() * (p - q)).sum(-1)
    mask = torch.tensor([1, 1, 0, 1, 1])
    found = distillation_loss(one[None], other[None], mask[None])
    assert float(found) == pytest.approx(float(wanted[mask.bool()].mean()), rel=1e-5)


def test_a_stopped_distillation_samples_on_as_if_it_had_not_been_stopped(shop):
    import signal

    from harness_cli.errors import Interrupted

    run_opd(shop, opd("through"))

    def observe(running, values):
        if running.state.step == 2:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_opd(shop, opd("resumed"), observe=observe)
    run_opd(shop, opd("resumed"), resume=True)
    curves = [
        [line["loss"] for line in JobFolder.of(shop.root, name).curve()]
        for name in ("through", "resumed")
    ]
    assert curves[0] == pytest.approx(curves[1], abs=1e-6)


def test_a_teacher_of_another_vocabulary_is_refused(shop):
    make_tiny(shop.root / "words", texts=["hello there " * 30], vocab=300)
    with pytest.raises(
        UsageError, match=r"the teacher `words` has another vocabulary than `other`"
    ):
        plan_opd(shop, opd(teacher="words"))
    swapped = shop.root / "swapped"
    shutil.copytree(shop.root / "tiny", swapped)
    tokenizer = json.loads((swapped / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]
    (swapped / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(UsageError, match="another vocabulary"):
        plan_opd(shop, opd(teacher="swapped"))


@pytest.mark.parametrize(
    ("lines", "error", "words"),
    [
        (None, BadFile, "no file of prompts `p.jsonl`"),
        ("", BadFile, "hold none"),
        ('{"prompt": []}', BadFile, r"p.jsonl:1: a prompt ends with what a user says"),
        ('{"text": "hi"}', BadFile, r"p.jsonl:1"),
        (json.dumps({"prompt": "far too long " * 20}), UsageError, "longer than 60 tokens"),
    ],
)
def test_prompts_that_cannot_be_meant_are_refused_with_their_place(shop, lines, error, words):
    path = shop.root / "p.jsonl"
    path.unlink(missing_ok=True)
    if lines is not None:
        path.write_text(lines + "\n")
    with pytest.raises(error, match=words):
        plan_opd(shop, opd(prompts=("p.jsonl",), prompt_tokens=60))


def test_a_step_takes_no_prompt_twice(shop):
    held = len((shop.root / "prompts.jsonl").read_text().splitlines())
    with pytest.raises(UsageError, match=f"takes {held + 1} prompts and there are {held}"):
        plan_opd(shop, opd(batch=held + 1))


def test_an_agentic_student_is_rolled_out_by_the_runtime_and_taught_on_its_own_tokens(rooms):
    job = agentic("checked", steps=1, lr=1e-9, batch=2)
    plan = plan_opd(rooms, job)
    assert plan.told()["from"] == "shop"
    student = open_student(job, plan.base.folder, plan.template)
    with make_trainer(plan, JobFolder.of(rooms.root, "checked"), student, None) as trainer:
        picked = []
        compute = trainer.compute_loss
        trainer.compute_loss = lambda m, i, **k: picked.append(i) or compute(m, i, **k)
        trainer.train()
        assert trainer._player.policy.version == "step-0"
    (batch,) = picked
    assert batch["tool_mask"].sum() == batch["num_items_in_batch"] > 0
    shown = student.tokenizer.decode(batch["prompt_ids"][0])
    assert shown.endswith("<|im_start|>assistant\n")
    logged = trainer.state.log_history[0]
    assert logged["loss"] == pytest.approx(divergence(rooms, batch, "wild", "teacher"), rel=1e-3)
    assert logged["rollouts/tokens"] == int(batch["tool_mask"].sum()) / 2


def test_what_the_environment_says_is_context_without_loss():
    rows = (Row([1, 2, 7, 8, 3, 4, 9], [0, 0, 1, 1, 0, 0, 2], [0] * 7, [0.0] * 7),)
    made = rows_as_tensors([Rollout(rows=rows, policy_id="p@1", tokens={}, cot={})], 0, 1)
    assert made["prompt_ids"].tolist() == [[1, 2]]
    assert made["completion_ids"].tolist() == [[7, 8, 3, 4, 9]]
    assert made["completion_mask"].tolist() == [[1, 1, 1, 1, 1]]
    assert made["tool_mask"].tolist() == [[1, 1, 0, 0, 1]]


def test_the_environment_is_the_one_of_the_teachers_rl_job(rooms):
    with pytest.raises(UsageError, match="not trained by `harness train rl`"):
        plan_opd(rooms, agentic(environment={}))
    with pytest.raises(UsageError, match="knows no `seats`"):
        plan_opd(rooms, agentic(environment={"seats": 3}))
    taught = RlTraining(
        name="rewarded",
        base="wild",
        evalset="shop",
        limit=2,
        augmented=0.5,
        pool=2,
        groups=2,
        rollouts=2,
        steps=1,
        batch=2,
        new_tokens=12,
        threads=1,
    )
    run_rl(rooms, taught)
    after = agentic("after", teacher="rewarded", environment={})
    found = plan_opd(rooms, after).environment.job
    assert (found.evalset, found.limit, found.augmented, found.pool) == ("shop", 2, 0.5, 2)
    made = run_opd(rooms, after)
    assert made.teacher.name == "rewarded"
    curve = JobFolder.of(rooms.root, "after").curve()
    assert [line["rollouts/tokens"] > 0 for line in curve] == [True, True]


def test_rows_without_loss_fill_the_last_micro_batch_up():
    rows = tuple(
        Row([1, 2, *([3] * n)], [0, 0, *([1] * n)], [0] * (n + 2), [0.0] * (n + 2))
        for n in (1, 2, 3)
    )
    rollout = Rollout(rows=rows, policy_id="p@1", tokens={"tool": 6, "reply": 0}, cot={})
    made = rows_as_tensors([rollout], 0, 2)
    assert made["prompt_ids"].shape[0] == 4
    assert made["tool_mask"].sum(1).tolist() == [1, 2, 3, 0]
    assert (made["completion_mask"] >= made["tool_mask"]).all()
    assert made["prompt_mask"].sum(1).tolist() == [2, 2, 2, 1]


def test_a_distillation_that_is_done_is_not_done_again(shop):
    first = run_opd(shop, opd("twice", steps=1))
    assert run_opd(shop, opd("twice", steps=1), resume=True) == first
    with pytest.raises(HarnessError, match="there is a checkpoint `twice` already"):
        run_opd(shop, opd("twice", steps=1))
