"""What HAT's own code costs: `python -m benchmarks.hat [--quick] [--local]`. One JSON line a goal.

gdpo_gspo   GDPO and GSPO (forward and backward) over 10^6 tokens beside the plain gather of their
            log-probabilities from logits of a small vocabulary: a larger one only makes it cheaper.
step        A GRPO-shaped step of ours beside TRL's own code, same model, same batch, in turns.
own         Share of an RL job's seconds that rows, rewards by rule, advantages, batches and
            bookkeeping take. `--local` trains SmolLM2-135M with adapters instead of the tiny model.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

import torch

from harness_cli.records.rl_job import RlTraining
from harness_cli.records.training_job import Lora
from harness_cli.training import local_trainer
from harness_cli.training.advantages import gdpo
from harness_cli.training.job_folder import JobFolder, Running
from harness_cli.training.losses import Clip, segment_policy_loss
from harness_cli.training.rl_job import make_trainer, run_rl
from harness_cli.training.rl_plan import plan_rl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/training"))

VOCABULARY = 512


def line(name, **values):
    print(json.dumps({"name": name, **values, "threads": torch.get_num_threads()}), flush=True)


def gdpo_gspo(quick):
    rollouts, width = (256, 512) if quick else (2048, 512)
    made = torch.Generator().manual_seed(0)
    logits = torch.randn(32, width, VOCABULARY, generator=made)
    ids = torch.randint(0, VOCABULARY, (32, width, 1), generator=made)
    segments = torch.randint(0, 3, (rollouts, width), generator=made)
    rewards = torch.rand(rollouts, 3, generator=made)
    old = torch.randn(rollouts, width, generator=made) - 7

    def gather():
        parts = [logits.log_softmax(-1).gather(-1, ids).squeeze(-1) for _ in range(rollouts // 32)]
        return torch.cat(parts)

    def ours(logp):
        logp = logp.detach().requires_grad_()
        each = [gdpo(rewards, 8, weights=(1.0, 1.0, -0.1)).values_N for _ in range(2)]
        found = segment_policy_loss(logp, old, segments, torch.stack(each, -1), clip=Clip())
        found.loss.backward()

    times = {"gather": [], "both": []}
    for _ in range(5):
        began = time.perf_counter()
        logp = gather()
        times["gather"].append(time.perf_counter() - began)
        ours(logp)
        times["both"].append(time.perf_counter() - began)
    found = {k: median(v) for k, v in times.items()}
    line(
        "gdpo_gspo",
        tokens=rollouts * width,
        vocabulary=VOCABULARY,
        gather_s=round(found["gather"], 4),
        with_ours_s=round(found["both"], 4),
        ratio=round(found["both"] / found["gather"], 3),
        goal=1.2,
    )


def tiny_project(folder, hidden, layers):
    from lesson_shop import make_lesson_shop
    from tiny_checkpoint import make_tiny

    project = make_lesson_shop(folder)
    make_tiny(folder / "models/tiny", hidden=hidden, layers=layers, heads=8, spread=0.1)
    return project


def job(**more):
    given = {
        "name": "bench",
        "base": "models/tiny",
        "evalset": "shop",
        "limit": 2,
        "groups": 2,
        "rollouts": 4,
        "updates": 2,
        "batch": 4,
        "steps": 2,
        "new_tokens": 64,
        "lr": 1e-4,
        "save_every": 100,
    }
    return RlTraining(**(given | more))


def step(quick):
    from trl import GRPOTrainer

    with tempfile.TemporaryDirectory() as name:
        project = tiny_project(Path(name), 256, 4)
        plan = plan_rl(project, job())
        student = local_trainer.open_student(plan.job, plan.base.folder, plan.template)
        folder = JobFolder.of(project.root, "bench")
        running = Running.begin(folder, plan.job, "rl", steps=2, data_sha256="")
        trainer = make_trainer(plan, folder, student, local_trainer.Watch(running, plan.job, None))
        rows, prompt, width = 4, 200, 600
        made = torch.Generator().manual_seed(0)
        ids = torch.randint(3, 250, (rows, width), generator=made)
        ones = torch.ones_like(ids)
        segments = torch.where(torch.arange(width) >= prompt, 2, 0).repeat(rows, 1)
        advantages = torch.randn(rows, generator=made)
        old = torch.randn(rows, width - prompt, generator=made) * 0.01 - 5
        theirs = {
            "prompt_ids": ids[:, :prompt],
            "prompt_mask": ones[:, :prompt],
            "completion_ids": ids[:, prompt:],
            "completion_mask": ones[:, prompt:],
            "advantages": advantages,
            "old_per_token_logps": old,
            "num_items_in_batch": torch.tensor(rows * (width - prompt)),
        }
        padded = torch.cat([torch.zeros(rows, prompt), old], 1)
        ours = {
            "row_ids": ids[:, None],
            "row_mask": ones[:, None],
            "row_segments": segments[:, None],
            "row_behaviour": padded[:, None],
            "row_old": padded[:, None],
            "advantages": torch.stack([torch.zeros(rows), advantages], -1),
            "kept": torch.tensor(4.0),
        }
        trainer.current_gradient_accumulation_steps = 1
        trainer._step = 1  # behind an update: the sampler is not compared
        model = trainer.model.train()
        times = {"ours": [], "trl": []}
        for _ in range(5 if quick else 15):
            for who, batch in (("ours", ours), ("trl", theirs)):
                model.zero_grad()
                began = time.perf_counter()
                own = type(trainer)._compute_loss if who == "ours" else GRPOTrainer._compute_loss
                own(trainer, model, batch).backward()
                times[who].append(time.perf_counter() - began)
        trainer.hat.collector.close()
        found = {k: median(v) for k, v in times.items()}
        line(
            "step",
            rows=rows,
            tokens=rows * width,
            ours_s=round(found["ours"], 4),
            trl_s=round(found["trl"], 4),
            ratio=round(found["ours"] / found["trl"], 3),
            goal=1.1,
        )


def own(quick, local):
    with tempfile.TemporaryDirectory() as name:
        project = tiny_project(Path(name), 64, 2)
        more = {"steps": 2} if quick or local else {"steps": 8}
        if local:
            more |= {
                "base": "smollm2",
                "template": "trl:qwen2_5_training",
                "lora": Lora(r=8),
                "groups": 1,
                "updates": 1,
                "batch": 2,
            }
        plan_job = job(**more)
        began = time.perf_counter()
        run_rl(project, plan_job)
        wall = time.perf_counter() - began
        curve = JobFolder.of(project.root, "bench").curve()
        mine = sum(m.get("seconds/own", 0.0) for m in curve)
        steps = sum(m["step_time"] for m in curve)
        line(
            "own",
            model="SmolLM2-135M, adapters" if local else "tiny",
            iterations=sum("seconds/own" in m for m in curve),
            rollouts_an_iteration=plan_job.groups * plan_job.rollouts,
            own_s=round(mine, 3),
            generation_s=round(sum(m.get("seconds/generation", 0.0) for m in curve), 3),
            steps_s=round(steps, 3),
            job_s=round(wall, 3),
            share=round(mine / steps, 4),
            goal=0.03,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--local", action="store_true", help="SmolLM2-135M in place of a tiny one")
    parser.add_argument("--only", choices=("gdpo_gspo", "step", "own"))
    given = parser.parse_args()
    if given.only in (None, "gdpo_gspo"):
        gdpo_gspo(given.quick)
    if given.only in (None, "step"):
        step(given.quick)
    if given.only in (None, "own"):
        own(given.quick, given.local)


if __name__ == "__main__":
    main()
