"""One head fitted to one frozen policy, step by step; a state that was saved goes on bit by bit."""

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from harness_cli.errors import HarnessError, Interrupted
from harness_cli.models.checkpoint_head import DraftHead
from harness_cli.models.weights import read_weights
from harness_cli.models.weights_write import Made, made, write_safetensors
from harness_cli.records.canonical import write_json
from harness_cli.records.mtp import MtpTraining
from harness_cli.training.job_folder import JobFolder, mark_complete
from harness_cli.training.mtp.loss import MtpLoss, mtp_loss
from harness_cli.training.mtp.rollouts import Rollout, batch_of, hidden_states
from harness_cli.training.signals import on_signals

HEAD: Final = "head.safetensors"
MOMENTS: Final = "moments.safetensors"
BETAS: Final = (0.9, 0.95)

Stepped = Callable[[int, int, float], None]
"""step, steps, loss"""


@contextmanager
def frozen(policy: Any) -> Iterator[str]:
    """The policy in eval mode without gradients; its digest. Raises when a bit of it changed."""
    before = module_digest(policy)
    wanted = [(p, p.requires_grad) for p in policy.parameters()]
    training = policy.training
    policy.eval().requires_grad_(False)
    try:
        yield before
    finally:
        for parameter, grad in wanted:
            parameter.requires_grad_(grad)
        policy.train(training)
    if module_digest(policy) != before:
        raise HarnessError("the policy's weights changed while its head was trained: a bug here")


def module_digest(module: Any) -> str:
    """SHA-256 over every parameter and buffer of a module, by name."""
    whole = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        # bfloat16 has no numpy type: its bytes are looked at as they are.
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        whole.update(flat.view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


class Fit:
    """The training of one head; `folder` holds its curve and states."""

    def __init__(
        self,
        policy: Any,
        head: DraftHead,
        rollouts: Sequence[Rollout],
        job: MtpTraining,
        folder: JobFolder,
    ) -> None:
        self.policy, self.head, self.job, self.folder = policy, head, job, folder
        self.rollouts = rollouts
        per_step = job.batch * job.accumulate
        self.steps = job.steps or max(1, math.ceil(job.epochs * len(rollouts) / per_step))
        self._per_step = per_step
        self._optimiser = torch.optim.AdamW(
            head.parameters(), lr=job.lr, betas=BETAS, weight_decay=job.weight_decay
        )

    def run(self, start: int, observe: Stepped, stopped: Callable[[], bool]) -> None:
        """From the state at `start` to the last step. Raises `Interrupted` when asked to stop."""
        if start:
            self._load(self.folder.state_at(start))
        self.folder.path.mkdir(parents=True, exist_ok=True)
        self.folder.cut_curve(start)
        self.head.train()
        for step in range(start + 1, self.steps + 1):
            loss = self._step(step)
            observe(step, self.steps, loss)
            ended = stopped()
            if step % self.job.save_every == 0 or step == self.steps or ended:
                self._save(step)
            if ended and step < self.steps:
                raise Interrupted(
                    f"stopped after step {step} of {self.steps}", hint="--resume goes on from there"
                )
        self.head.eval()

    def _step(self, step: int) -> float:
        rate = self.job.lr * share_of(self.job, step, self.steps)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.zero_grad(set_to_none=True)
        parts = [self._part(rows) for rows in self._rows(step)]
        norm = torch.nn.utils.clip_grad_norm_(self.head.parameters(), self.job.clip)
        mean = sum(float(p.total.detach()) for p in parts) / len(parts)
        if not math.isfinite(mean) or not math.isfinite(float(norm)):
            raise HarnessError(
                f"step {step}: the loss or its gradient is no number",
                hint="a smaller lr; the last state is untouched",
            )
        self._optimiser.step()
        told = {"loss": mean, "lr": rate, "grad_norm": float(norm)}
        for depth in range(len(parts[0].by_depth)):
            told[f"loss_{depth}"] = _mean([p.by_depth[depth] for p in parts])
            told[f"hits_{depth}"] = _mean([p.hits[depth] for p in parts])
        self.folder.measure(step, told)
        return mean

    def _part(self, rows: Sequence[Rollout]) -> MtpLoss:
        batch = batch_of(rows)
        hidden = hidden_states(self.policy, batch).to(self.head.fc.weight.dtype)
        found = mtp_loss(self.head, self.policy, hidden, batch, self.job.depths)
        (found.total / self.job.accumulate).backward()
        return found

    def _rows(self, step: int) -> Iterator[list[Rollout]]:
        """The rollouts of a step, in parts of `batch`: each epoch in an order of its own."""
        count = len(self.rollouts)
        chosen = []
        for at in range((step - 1) * self._per_step, step * self._per_step):
            epoch, place = divmod(at, count)
            chosen.append(self.rollouts[self._order(epoch)[place]])
        for start in range(0, len(chosen), self.job.batch):
            yield chosen[start : start + self.job.batch]

    def _order(self, epoch: int) -> list[int]:
        order = list(range(len(self.rollouts)))
        random.Random(f"{self.job.seed}:order:{epoch}").shuffle(order)
        return order

    def _save(self, step: int) -> None:
        place = self.folder.state_at(step)
        place.mkdir(parents=True, exist_ok=True)
        write_safetensors(place / HEAD, _tensors(self.head.state_dict()))
        moments: dict[str, Tensor] = {}
        names = {id(p): n for n, p in self.head.named_parameters()}
        for parameter, state in self._optimiser.state.items():
            for kind in ("exp_avg", "exp_avg_sq"):
                moments[f"{names[id(parameter)]}.{kind}"] = state[kind]
        write_safetensors(place / MOMENTS, _tensors(moments))
        write_json(place / "trainer.json", {"schema": 1, "step": step})
        mark_complete(place, step)
        self.folder.prune_states(self.job.keep)

    def _load(self, place: Path) -> None:
        self.head.load_state_dict(_read(place / HEAD))
        moments = _read(place / MOMENTS)
        step = float(json.loads((place / "trainer.json").read_bytes())["step"])
        for name, parameter in self.head.named_parameters():
            self._optimiser.state[parameter] = {
                "step": torch.tensor(step),
                "exp_avg": moments[f"{name}.exp_avg"],
                "exp_avg_sq": moments[f"{name}.exp_avg_sq"],
            }


def share_of(job: MtpTraining, step: int, steps: int) -> float:
    """The share of `lr` at a step, 1-based: a linear warm-up, then the schedule down to 0."""
    warm = math.ceil(job.warmup * steps)
    if step <= warm:
        return step / warm
    if job.schedule == "constant":
        return 1.0
    done = (step - 1 - warm) / max(1, steps - warm)
    return 0.5 * (1 + math.cos(math.pi * done)) if job.schedule == "cosine" else 1.0 - done


def _mean(values: Sequence[float]) -> float:
    finite = [v for v in values if math.isfinite(v)]
    return sum(finite) / len(finite) if finite else float("nan")


def _tensors(state: dict[str, Tensor]) -> dict[str, Made]:
    return {n: made(t.detach().float().cpu().numpy(), "F32") for n, t in state.items()}


def _read(path: Path) -> dict[str, Tensor]:
    tensors = read_weights(path).tensors
    return {n: torch.from_numpy(t.values().copy()) for n, t in tensors.items()}


@contextmanager
def signals() -> Iterator[dict[str, bool]]:
    """`asked` becomes true on SIGINT or SIGTERM: the job ends after its step."""
    asked = {"asked": False}

    def arrived(_: int, __: Any) -> None:
        asked["asked"] = True

    with on_signals(arrived):
        yield asked
