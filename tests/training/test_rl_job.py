"""HSA-RL jobs on a tiny student: what is rolled out, rewarded, trained, recorded, refused, resumed.

One student is taught once for all tests; every job trains a copy of it in seconds.
"""

import asyncio
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from taught_student import make_taught_shop

from harness_cli.errors import HarnessError, UsageError
from harness_cli.judges.rewards.judge import RuleRewards
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.chat import ChatReply
from harness_cli.records.rl_job import Penalty, RlTraining, Rooms
from harness_cli.records.training_job import Lora
from harness_cli.records.verdict import Verdict
from harness_cli.store.checkpoints import checkpoints_folder, digest_of
from harness_cli.store.project import Project
from harness_cli.training import local_trainer
from harness_cli.training.advantages import gdpo
from harness_cli.training.batching import flat, padded
from harness_cli.training.collecting import generation_for, read_lines
from harness_cli.training.job_folder import JobFolder, Running
from harness_cli.training.losses import Clip, segment_policy_loss
from harness_cli.training.playing import Place
from harness_cli.training.rewards import COLUMNS
from harness_cli.training.rl_job import make_trainer, run_rl
from harness_cli.training.rl_plan import plan_rl

BASE = {
    "base": "models/taught",
    "evalset": "shop",
    "limit": 2,
    "augmented": 0.0,
    "groups": 2,
    "rollouts": 4,
    "updates": 2,
    "steps": 4,
    "batch": 2,
    "new_tokens": 56,
    "lr": 3e-3,
    "schedule": "constant",
    "warmup": 0.0,
    "save_every": 2,
    "threads": 1,
    "epsilon_low": 0.2,
    "epsilon_high": 0.2,
}


def job(name, **more):
    return RlTraining(name=name, **(BASE | more))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return make_taught_shop(tmp_path_factory.mktemp("rl"))


@pytest.fixture(scope="module")
def done(shop):
    """One whole job: (checkpoint, its folder)."""
    return run_rl(shop, job("whole")), JobFolder.of(shop.root, "whole")


class Spelling:
    """Rewards that differ for sure: by what the reply is spelled with. Not a judge of ours."""

    name = id = "spelling@1"

    async def judge(self, item, trajectory, world, *, calls=None):
        said = trajectory.reply
        tools = len(trajectory.calls)
        scores = {
            "accuracy": (sum(map(ord, said)) % 7) / 7,
            "effectiveness": (len(said) % 5) / 5,
            "tool_rationality": min(tools, 2) / 2,
            "skill_selection": float(any(c.arguments for c in trajectory.calls)),
        }
        return Verdict(judge=self.id, scores=scores)

    async def close(self):
        pass


def trainer_of(shop, name, judge=None, **more):
    """A trainer, not yet run, with the watch and the running state it needs."""
    plan = plan_rl(shop, job(name, **more))
    if judge is not None:
        plan = replace(plan, judge=judge)
    folder = JobFolder.of(shop.root, name)
    student = local_trainer.open_student(plan.job, plan.base.folder, plan.template)
    running = Running.begin(folder, plan.job, "rl", steps=plan.shape.steps, data_sha256="")
    watch = local_trainer.Watch(running, plan.job, None)
    return make_trainer(plan, folder, student, watch), watch, running


def run(shop, name, judge=None, **more):
    trainer, watch, running = trainer_of(shop, name, judge, **more)
    try:
        local_trainer.train(trainer, watch, running, 0)
    finally:
        trainer.hat.collector.close()
    return trainer, running.folder


def test_a_job_trains_both_segments_and_registers_its_checkpoint(shop, done):
    made, folder = done
    assert made.made_by == "rl"
    assert made.steps == 4
    assert digest_of(checkpoints_folder(shop.root) / "whole") == made.digest
    assert made.digest != digest_of(shop.root / "models/taught")
    curve = folder.curve()
    assert [line["step"] for line in curve] == [1, 2, 3, 4]
    assert max(abs(line["loss"]) for line in curve) > 1e-3
    assert max(line["grad_norm"] for line in curve) > 1e-3
    iteration = curve[0]
    assert iteration["tokens/tool"] > 0
    assert iteration["tokens/reply"] > 0
    assert {f"rewards/{c}/mean" for c in COLUMNS} <= iteration.keys()
    for name in ("cot/tool", "cot/reply", "cot/q", "dropped/tool", "dropped/reply", "logp_gap"):
        assert name in iteration
    assert "rewards/accuracy/mean" not in curve[1]  # no rollouts in between two updates
    assert list(folder.tensorboard.iterdir())
    assert folder.state().status == "done"
    assert "RL diagnostics of whole" in (folder.path / "figures.html").read_text()


def test_rollouts_of_a_group_share_request_and_state_and_every_iteration_has_new_weights(done):
    lines = read_lines(done[1].path)
    assert len(lines) == 2 * 2 * 4
    for step in (0, 2):
        here = [line for line in lines if line.step == step]
        assert {line.version for line in here} == {f"step-{step}"}
        assert len({line.policy_id for line in here}) == 1
        for group in {line.group for line in here}:
            members = [line for line in here if line.group == group]
            assert [m.rollout for m in members] == [0, 1, 2, 3]
            assert len({(m.harness_id, m.request) for m in members}) == 1
    assert len({line.policy_id for line in lines}) == 2


def test_figures_are_written_beside_the_project_wherever_the_command_is_given(
    shop, done, tmp_path, monkeypatch
):
    from typer.testing import CliRunner

    from harness_cli.commands.train import app

    monkeypatch.chdir(tmp_path)
    words = ["figures", "whole", "-o", "drawn/figures.html", "-C", str(shop.root), "--quiet"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert "RL diagnostics" in (shop.root / "drawn/figures.html").read_text()
    assert list(tmp_path.iterdir()) == []


def test_the_next_rollout_was_sampled_with_the_weights_of_the_last_update(shop):
    """Recorded log-probabilities are those of the weights that were current, and not of others."""
    seen = []
    trainer, watch, running = trainer_of(shop, "fresh", Spelling(), lr=2e-2, updates=1, batch=8)
    scored = trainer._generate_and_score_completions

    def keeping(inputs):
        batch = scored(inputs)
        weights = {k: v.detach().clone() for k, v in trainer.model.state_dict().items()}
        seen.append((batch, weights))
        return batch

    trainer._generate_and_score_completions = keeping
    local_trainer.train(trainer, watch, running, 0)
    trainer.hat.collector.close()
    assert len(seen) == 4

    def gap(batch, weights):
        trainer.model.load_state_dict(weights)
        rows = flat(batch)
        with torch.no_grad():
            logp, _, _ = trainer._of_rows(trainer.model, rows)
        on = rows.kept > 0
        return float((logp - rows.cut(batch["row_behaviour"]))[on].abs().mean())

    for (batch, weights), (_, before) in zip(seen[1:], seen, strict=False):
        assert gap(batch, weights) < 1e-4
        assert gap(batch, before) > 1e-2


def test_a_sampler_with_other_weights_ends_the_job(shop):
    """The proof has teeth: weights that are changed behind the sampler's back are found out."""
    trainer, watch, running = trainer_of(shop, "stale", Spelling())
    collect = trainer.hat.collector.collect

    def collecting(places):
        made = collect(places)
        with torch.no_grad():
            for p in trainer.model.parameters():
                p.mul_(3.0)
        return made

    object.__setattr__(trainer.hat, "collector", _Swapped(trainer.hat.collector, collecting))
    with pytest.raises(HarnessError, match="sampler and trainer differ"):
        local_trainer.train(trainer, watch, running, 0)
    assert running.folder.state().status == "failed"


class _Swapped:
    def __init__(self, inner, collect):
        self._inner, self.collect = inner, collect

    def __getattr__(self, name):
        return getattr(self._inner, name)


def test_ratios_move_once_rollouts_outlive_an_update(shop):
    """The trap of ratios that are 1 for ever: the first update's are, the second's are not."""
    _, folder = run(shop, "off", Spelling(), lr=5e-2, epsilon_low=1e-4, epsilon_high=1e-4)
    first, second, third, _ = folder.curve()
    for line in (first, third):
        assert line["ratio/reply"] == pytest.approx(1.0, abs=1e-4)
    assert abs(second["ratio/reply"] - 1) > 1e-3
    assert max(line["clipped/reply"] for line in (first, second)) > 0
    assert "all ratios are 1" in plan_rl(shop, job("on", updates=1)).told()["notes"]


def test_a_second_pass_over_the_same_rollouts_is_off_policy_too(shop):
    _, folder = run(shop, "passes", Spelling(), updates=1, passes=2, steps=2, lr=5e-2)
    first, second = folder.curve()
    assert first["ratio/reply"] == pytest.approx(1.0, abs=1e-4)
    assert abs(second["ratio/reply"] - 1) > 1e-3
    assert "logp_gap" in first
    assert "logp_gap" not in second


def test_rollouts_that_were_cut_off_are_left_out_where_the_job_says_so(shop):
    with pytest.raises(HarnessError, match="no rollout was scored: cut off at `new_tokens: 2`"):
        run(shop, "cut", Spelling(), new_tokens=2, truncated="drop")


def test_the_kept_denominator_divides_by_what_the_filter_left(shop):
    """One update over everything: the loss is the sampled one's times |S|·B over what is left."""
    losses, left = {}, 0
    for how in ("sampled", "kept"):
        _, folder = run(
            shop, how, Spelling(), denominator=how, updates=1, steps=1, epochs=1, batch=2
        )
        losses[how] = folder.curve()[0]["loss"]
        left = sum(
            bool(m.tokens[s] and m.advantages[s])
            for m in read_lines(folder.path)
            for s in ("tool", "reply")
        )
    assert 0 < left < 16
    assert losses["kept"] * left == pytest.approx(losses["sampled"] * 16, abs=1e-4)


def test_advantages_are_gdpo_over_the_gathered_rewards_and_trl_would_have_others(shop):
    trainer, folder = run(shop, "adv", Spelling(), steps=2)
    lines = read_lines(folder.path)
    reply = [COLUMNS.index(c) for c in ("accuracy", "effectiveness", "cot_reply")]
    table = trainer.hat.table_NC.double()
    ours = gdpo(table[:, reply], 4, weights=(1.0, 1.0, -0.1)).values_N
    torch.testing.assert_close(
        torch.tensor([line.advantages["reply"] for line in lines], dtype=torch.float64), ours
    )
    weights = trainer.reward_weights.tolist()
    trl = torch.tensor(list(trainer._logs["advantages"]), dtype=torch.float64)
    # TRL's own, for the same table: one sum over all columns, the sample deviation, an epsilon.
    summed = (table * torch.tensor(weights, dtype=torch.float64)).sum(-1)
    grouped = summed.view(-1, 4)
    wanted = (grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)
    torch.testing.assert_close(trl, wanted.reshape(-1), atol=1e-4, rtol=1e-3)
    assert (trl - ours).abs().max() > 0.1


def test_gdpo_over_the_batch_is_trls_where_both_compute_the_same(shop):
    """TRL's `normalize_then_sum` on the same table, by TRL's own code."""
    trainer, watch, running = trainer_of(shop, "trl", Spelling(), steps=2)
    trainer.multi_objective_aggregation = "normalize_then_sum"
    local_trainer.train(trainer, watch, running, 0)
    trainer.hat.collector.close()
    theirs = torch.tensor(list(trainer._logs["advantages"]), dtype=torch.float64)
    ours = gdpo(
        trainer.hat.table_NC.double(),
        4,
        weights=trainer.reward_weights.tolist(),
        final="batch",
        std="sample",
        floor=0.0,
        eps=1e-4,
    )
    torch.testing.assert_close(theirs, ours.values_N, atol=1e-4, rtol=1e-3)


def test_our_loss_is_trls_where_a_rollout_is_one_segment(shop):
    """One row a rollout, all of it reply: `loss_type="grpo"`, sequence ratios, TRL's own code."""
    from trl import GRPOTrainer

    trainer, _, _ = trainer_of(shop, "loss", Spelling(), steps=2)
    generator = torch.Generator().manual_seed(0)
    width, prompt = 12, 5
    ids = torch.randint(3, 200, (4, width), generator=generator)
    segments = torch.zeros(4, width, dtype=torch.long)
    mask = torch.ones(4, width, dtype=torch.long)
    for i, length in enumerate((12, 9, 7, 11)):
        mask[i, length:] = 0
        segments[i, prompt:length] = 2
    advantages = torch.tensor([1.0, -0.5, 0.3, -2.0])
    model = trainer.model.train()
    with torch.no_grad():
        old = trainer._get_per_token_logps_and_entropies(model, ids, mask, width - prompt)[0]
        old = old + 0.05 * torch.randn(old.shape, generator=generator)
    trainer.current_gradient_accumulation_steps = 1
    trainer.epsilon_low = trainer.epsilon_high = 0.02
    theirs = GRPOTrainer._compute_loss(
        trainer,
        model,
        {
            "prompt_ids": ids[:, :prompt],
            "prompt_mask": mask[:, :prompt],
            "completion_ids": ids[:, prompt:],
            "completion_mask": mask[:, prompt:],
            "advantages": advantages,
            "old_per_token_logps": old,
            "num_items_in_batch": mask.sum(),
        },
    )
    logp = trainer._get_per_token_logps_and_entropies(model, ids, mask, width - prompt)[0]
    ours = segment_policy_loss(
        logp,
        old,
        segments[:, prompt:],
        torch.stack([torch.zeros(4), advantages], -1),
        clip=Clip(0.02, 0.02),
    )
    # |S| = 2 segments are in our denominator, one of which has nothing here.
    torch.testing.assert_close(2 * ours.loss, theirs)
    assert ours.clipped_BS.any()
    grads = [
        torch.autograd.grad(loss, list(model.parameters()), retain_graph=True, allow_unused=True)
        for loss in (2 * ours.loss, theirs)
    ]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)
    trainer.hat.collector.close()


def test_forked_rows_stay_with_their_rollout_through_shuffling_and_micro_batches(shop):
    from trl.trainer.utils import shuffle_sequence_dict, split_tensor_dict

    trainer, _ = run(shop, "rows", Spelling(), steps=2)
    rollouts = [c.rollout for c in trainer.hat.drawn]
    assert any(r.forks for r in rollouts)
    batch = padded(rollouts, 0)
    batch["advantages"] = torch.arange(len(rollouts)).float()[:, None].repeat(1, 2)
    parts = split_tensor_dict(shuffle_sequence_dict(batch), 4)
    seen = 0
    for part in parts:
        rows = flat(part)
        for at, owner in enumerate(rows.owner_N.tolist()):
            rollout = rollouts[int(part["advantages"][owner, 0])]
            length = int(rows.mask[at].sum())
            assert rows.ids[at, :length].tolist() in [r.input_ids for r in rollout.rows]
            seen += int((rows.segments[at] > 0).sum())
    assert seen == sum(sum(r.tokens.values()) for r in rollouts)


def test_half_of_the_groups_run_under_augmented_states(shop):
    _, folder = run(shop, "hsa", RuleRewards(), augmented=0.5, seed=2, steps=2)
    lines = read_lines(folder.path)
    states = {line.group: (line.augmented, line.harness_id) for line in lines}
    assert {augmented for augmented, _ in states.values()} == {True, False}
    assert len({state for augmented, state in states.values() if not augmented}) == 1


def rooms_job(shop, **settings):
    """A job in live rooms of this repository's own project, whose scenarios they are made of."""
    return job(
        "rooms",
        base=str(shop.root / "models/taught"),
        evalset="",
        rooms=Rooms(tasks=3, settings=settings),
    )


def test_rooms_that_ask_what_measures_are_refused(shop):
    ours = Project.find(Path(__file__).parents[2])
    job = msgspec.structs.replace(rooms_job(shop), rooms=Rooms(tasks=64))
    assert len(plan_rl(ours, job).ground.tasks) == 64
    by_dev = msgspec.structs.replace(job, measured_by=("live_stream_qa:dev",))
    with pytest.raises(UsageError, match=r"room-\d+ holds live_stream_qa/lsq-") as caught:
        plan_rl(ours, by_dev)
    assert "measure by a sealed split" in str(caught.value.hint)


def test_rooms_of_the_simulator_are_tasks(shop):
    ours = Project.find(Path(__file__).parents[2])
    plan = plan_rl(ours, rooms_job(shop))
    assert 2 <= len(plan.ground.tasks) <= 3
    assert plan.told()["from"] == "live rooms"
    with pytest.raises(UsageError, match="share one request"):
        plan_rl(ours, rooms_job(shop, turns=2))


def test_a_group_in_a_live_room_shares_its_request_and_its_augmented_state(shop):
    """Two rollouts of one room by the trainer's own ground, with a script in the policy's place."""
    ours = Project.find(Path(__file__).parents[2])
    plan = plan_rl(ours, msgspec.structs.replace(rooms_job(shop), augmented=1.0))
    task = plan.ground.tasks[0]

    async def played(number, group="0:a"):
        policy = ScriptedPolicy([ChatReply(content="Hello!")], repeat=True)
        place = Place(task, group, number)
        made = await plan.ground.play(place, policy, generation_for(plan.job, place))
        return made, policy.requests[0]

    (one, asked), (two, _) = asyncio.run(played(0)), asyncio.run(played(1))
    assert one.augmented
    assert one.request == two.request
    assert one.trajectory.harness_id == two.trajectory.harness_id
    assert (asked.top_p, asked.temperature) == (1.0, 1.0)
    assert asked.max_tokens == plan.job.new_tokens
    assert asked.seed != asyncio.run(played(1))[1].seed
    other, _ = asyncio.run(played(0, "1:a"))
    assert other.trajectory.harness_id != one.trajectory.harness_id


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"top_p": 0.95}, "missing in every ratio"),
        ({"rollouts": 1, "updates": 1}, "nothing to be compared with"),
        ({"accumulate": 2}, "follows from groups"),
        ({"updates": 3}, "cannot be divided"),
        ({"groups": 3, "updates": 1}, "takes 3 tasks and there are 2"),
        ({"steps": 3}, "no whole number of iterations"),
        ({"penalty": Penalty(low=200, high=100)}, "low < high"),
        ({"base": "models/none"}, "none"),
        ({"evalset": "", "rooms": Rooms(settings={"nope": 3})}, "`rooms.settings` of `refused`"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_a_weight_is_loaded(shop, more, message):
    with pytest.raises(HarnessError, match=message):
        plan_rl(shop, job("refused", **more))


def test_a_template_that_knows_no_tools_is_refused_before_a_rollout_fails_on_it(shop):
    words = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    )
    (shop.root / "plain.jinja").write_text(words)
    with pytest.raises(UsageError, match=r"`toolless` plays rollouts with tools, and .*knows none"):
        plan_rl(shop, job("toolless", template="plain.jinja"))


def test_items_that_measure_are_refused(shop):
    source = msgspec.to_builtins(job("x")) | {"split": "test"}
    with pytest.raises(msgspec.ValidationError, match="split"):
        msgspec.convert(source, RlTraining)
    items = shop.root / "evalsets/shop/items.jsonl"
    text = items.read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    sealed = next(r for r in rows if r["split"] == "test")
    rows[0]["request"]["comments"] = sealed["request"]["comments"] = [
        {"viewer": "v", "text": "a sentence that stands in both splits"}
    ]
    items.write_text("".join(json.dumps(r) + "\n" for r in rows))
    try:
        with pytest.raises(UsageError, match="hello-1 holds shop/test-1"):
            plan_rl(shop, job("leak"))
    finally:
        items.write_text(text)


def test_a_reward_judge_in_the_final_panel_is_refused(shop):
    from harness_cli.records.config import JudgeConfig, PolicyConfig

    config = msgspec.structs.replace(
        shop.config,
        policies={**shop.config.policies, "big": PolicyConfig(kind="scripted", script="s.yaml")},
        judges={**shop.config.judges, "panel": JudgeConfig(panel=("big",))},
        roles={"final_judge": "panel"},
    )
    with pytest.raises(UsageError, match="reported by"):
        plan_rl(replace(shop, config=config), job("judged", reward_judge="panel"))


class Broken(Spelling):
    """Gives no number after the first iteration."""

    def __init__(self, score):
        self.score, self.asked = score, 0

    async def judge(self, item, trajectory, world, *, calls=None):
        self.asked += 1
        verdict = await super().judge(item, trajectory, world)
        if self.asked > 8:
            return msgspec.structs.replace(
                verdict, scores=dict.fromkeys(verdict.scores, self.score)
            )
        return verdict


@pytest.mark.parametrize(
    ("score", "message"),
    [(float("nan"), "the reward `accuracy` of .* is nan"), (None, "no rollout was scored")],
)
def test_a_reward_that_is_no_number_ends_the_job_and_leaves_the_last_state(shop, score, message):
    name = f"broken-{score}"
    with pytest.raises(HarnessError, match=message):
        run(shop, name, Broken(score), save_every=2)
    folder = JobFolder.of(shop.root, name)
    assert folder.state().status == "failed"
    assert folder.saved_steps() == [2]


def test_a_loss_that_is_no_number_ends_the_job(shop):
    with pytest.raises(HarnessError, match=r"is nan|is inf|no numbers|differ by nan"):
        run(shop, "exploded", Spelling(), lr=1e30, clip=1e30)
    assert JobFolder.of(shop.root, "exploded").state().status == "failed"


def test_adapters_are_trained_with_a_kl_penalty_to_what_lies_under_them(shop):
    made = run_rl(shop, job("lora", lora=Lora(r=4), kl=0.05, lr=5e-2))
    assert made.format == "full"
    curve = JobFolder.of(shop.root, "lora").curve()
    assert curve[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert max(line["kl"] for line in curve) > 0
    assert min(line["kl"] for line in curve) >= 0


@pytest.mark.timeout(600)
def test_equal_seeds_give_equal_curves_and_a_killed_job_goes_on_to_the_same(shop, done):
    """kill -9 in the middle, --resume, and the losses are those of a run that was never killed."""
    root = shop.root
    fields = BASE | {"name": "killed", "schema": 1}
    (root / "killed.yaml").write_text(json.dumps(fields))
    words = [sys.executable, "-m", "harness_cli.main", "train", "rl", "killed.yaml", "--quiet"]
    folder = JobFolder.of(root, "killed")
    process = subprocess.Popen(words, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 400
    while not folder.saved_steps() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert folder.saved_steps() == [2], process.stderr.read().decode()[-2000:]
    made = run_rl(shop, msgspec.convert(fields, RlTraining), resume=True)
    whole = [line["loss"] for line in done[1].curve()]
    assert [line["step"] for line in folder.curve()] == [1, 2, 3, 4]
    assert [line["loss"] for line in folder.curve()] == pytest.approx(whole, abs=1e-5)
    assert len(read_lines(folder.path)) == len(read_lines(done[1].path))
    again = run_rl(shop, msgspec.convert(fields, RlTraining), resume=True)
    assert again.digest == made.digest


@pytest.mark.accept
@pytest.mark.timeout(900)
def test_two_processes_make_the_rollouts_and_the_steps_of_one(shop):
    """gloo on this processor: groups are spread over both, advantages are of whole groups."""
    given = BASE | {"updates": 1, "steps": 2, "groups": 1, "batch": 2, "save_every": 1}
    fields = given | {"name": "two", "schema": 1}
    (shop.root / "two.yaml").write_text(json.dumps(fields))
    run_rl(shop, msgspec.convert(given | {"name": "one"}, RlTraining))
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    words += ["--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    words += ["-m", "harness_cli.main", "train", "rl", "two.yaml", "--quiet"]
    done = subprocess.run(words, cwd=shop.root, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = (JobFolder.of(shop.root, name) for name in ("one", "two"))
    assert two.state().status == "done"

    def facts(folder):
        return [
            (m.group, m.rollout, m.harness_id, m.reply, m.tokens, m.rewards, m.advantages)
            for m in read_lines(folder.path)
            if m.step == 0
        ]

    assert facts(one) == facts(two)  # the same rollouts in the same order, split over both
    losses = [[line["loss"] for line in folder.curve()] for folder in (one, two)]
    assert losses[0][0] == pytest.approx(losses[1][0], abs=1e-5)
    assert losses[0][1] == pytest.approx(losses[1][1], abs=1e-2)
    assert max(abs(loss) for loss in losses[0]) > 1e-4
