"""The arms of METHODS §7 in one run: whose head, for which policy, trained or not."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import torch

from harness_cli.evaluation.page.curves import Curve, curves
from harness_cli.models.checkpoint_head import DraftHead, as_tensors, load_head
from harness_cli.models.checkpoint_model import CheckpointModel
from harness_cli.models.mtp_check import PROVENANCE
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights import digest_of
from harness_cli.models.weights_write import write_safetensors
from harness_cli.records.canonical import write_atomic, write_json
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.mtp import ArmName, HeadOrigin, MtpArm, MtpComparison
from harness_cli.records.reader import read_json
from harness_cli.store.checkpoints import RECORD
from harness_cli.training.job_folder import JobFolder, Running
from harness_cli.training.keeping import record_of
from harness_cli.training.mtp.fit import Fit, Stepped, frozen, module_digest, signals
from harness_cli.training.mtp.measure import Trial, drafting
from harness_cli.training.mtp.recorded import recorded
from harness_cli.training.mtp.rollouts import Rollout, encoded, kept, sampled
from harness_cli.training.mtp_job import MtpPlan, Observe
from harness_cli.training.opening import Base

FIGURE: Final = "loss.svg"
COMPARISON: Final = "arms.json"
LAST: Final = 25


@dataclass(frozen=True, slots=True)
class Made:
    """What is to be registered."""

    record: Checkpoint
    write: Callable[[Path], None]


@dataclass(slots=True)
class Job:
    """A job under way."""

    plan: MtpPlan
    folder: JobFolder
    stop: dict[str, bool]
    observe: Stepped
    models: dict[Path, CheckpointModel] = field(default_factory=dict)

    def opened(self, base: Base) -> CheckpointModel:
        """A policy, frozen and loaded once."""
        if base.folder not in self.models:
            job = self.plan.job
            dtype = "float32" if job.dtype == "auto" else job.dtype
            found = CheckpointModel.open(base.folder, self.plan.template, dtype=dtype)
            found.model.eval().requires_grad_(False)
            self.models[base.folder] = found
        return self.models[base.folder]

    def rollouts(self, base: Base) -> list[Rollout]:
        """Answers of a policy, from the job's folder where they are there."""
        job, model = self.plan.job, self.opened(base)
        if self.plan.runs and base == self.plan.base:
            return recorded(model.model, self.plan.runs, job)
        identity = {
            "policy": base.named.digest,
            "prompts": self.plan.data["prompts"],
            "rollouts": job.rollouts,
            "new_tokens": job.new_tokens,
            "temperature": job.temperature,
            "seed": job.seed,
        }
        prompts = encoded(model, self.plan.learnt, job.prompt_tokens)
        path = self.folder.path / f"rollouts-{base.named.digest[:12]}.jsonl"
        return kept(path, identity, lambda: sampled(model, prompts, job, lambda *_: None))


def trained(
    plan: MtpPlan, folder: JobFolder, running: Running, start: int, observe: Observe | None
) -> Made:
    """Train the head, measure all arms, and say what is to be registered.

    An arm that was measured before it was stopped is not measured again.
    """
    if plan.job.threads is not None:
        torch.set_num_threads(plan.job.threads)

    def heard(step: int, _: int, loss: float) -> None:
        running.say(step=step, loss=loss, saved=(folder.saved_steps() or [0])[-1])
        if observe is not None:
            observe(running, {"loss": loss})

    with signals() as stop:
        under_way = Job(plan, folder, stop, heard)
        base = under_way.opened(plan.base)
        before = module_digest(base.model)
        torch.manual_seed(plan.job.seed)
        head = _fitted(under_way, plan.base, _first_head(under_way), folder, start, loud=True)
        found = [_arm(under_way, name, head) for name in _names(plan)]
        after = module_digest(base.model)
    _compare(plan, folder, found, before, after)
    return Made(_record(plan, folder, found), lambda target: write_checkpoint(plan, head, target))


def _names(plan: MtpPlan) -> list[ArmName]:
    from harness_cli.training.mtp_job import arms_of

    return msgspec.convert(arms_of(plan), list[ArmName])


def _first_head(job: Job) -> DraftHead:
    plan = job.plan
    config = job.opened(plan.base).model.config
    if plan.head_from is not None:
        return load_head(plan.head_from, config)
    return _random_head(job)


def _random_head(job: Job) -> DraftHead:
    head = DraftHead(job.opened(job.plan.base).model.config)
    head.initialise(job.plan.job.seed)
    return head


def _fitted(
    job: Job, base: Base, head: DraftHead, folder: JobFolder, start: int, *, loud: bool = False
) -> DraftHead:
    model = job.opened(base)
    rollouts = job.rollouts(base)
    with frozen(model.model):
        fit = Fit(model.model, head, rollouts, job.plan.job, folder)
        say: Stepped = job.observe if loud else (lambda *_: None)
        fit.run(start, say, lambda: job.stop["asked"])
    head.eval()
    return head


def _arm(job: Job, name: ArmName, head: DraftHead) -> MtpArm:
    """One arm, from its own file where it was measured before."""
    place = JobFolder(job.folder.path / "arms" / name)
    file = place.path / "arm.json"
    if file.is_file():
        return read_json(file, MtpArm, name=str(file))
    plan = job.plan
    base, own = plan.base, head
    curve: JobFolder | None = None
    origin: HeadOrigin | None = "trained"
    if name == "native" and plan.native is not None:
        base, origin = plan.native, "native"
        config = job.opened(base).model.config
        own = load_head(base.folder, config).eval()
        # The base's own trajectory of TR Figure 8; the arm itself is the head as it came.
        _fitted(job, base, load_head(base.folder, config), place, _saved(place))
        curve = place
    elif name == "transplanted":
        own, origin = _first_head(job).eval(), "transplanted"
    elif name == "trained":
        curve = job.folder
    elif name == "random":
        own, origin = _fitted(job, base, _random_head(job), place, _saved(place)), "random"
        curve = place
    elif name == "stale" and plan.moved is not None:
        base = plan.moved
    made = _measured(job, name, base, None if name == "absent" else own, origin, curve)
    write_json(file, made)
    return made


def _saved(place: JobFolder) -> int:
    return (place.saved_steps() or [0])[-1]


def _measured(
    job: Job,
    name: ArmName,
    base: Base,
    head: DraftHead | None,
    origin: HeadOrigin | None,
    curve: JobFolder | None,
) -> MtpArm:
    asked, model = job.plan.job, job.opened(base)
    trial = Trial(
        prompts=encoded(model, job.plan.measured, asked.prompt_tokens),
        new_tokens=asked.new_tokens,
        ends=frozenset(model.ends),
        temperature=asked.temperature or 1.0,
        top_p=asked.top_p,
        drafts=asked.drafts,
        seed=asked.seed,
    )
    losses = [m["loss"] for m in curve.curve()] if curve else []
    return MtpArm(
        name=name,
        policy=base.named.name,
        policy_digest=base.named.digest,
        head_digest=digest_of(as_tensors(head, "F32")) if head is not None else None,
        origin=origin if head is not None else None,
        steps=len(losses),
        first_loss=losses[0] if losses else None,
        last_loss=_mean(losses[-LAST:]) if losses else None,
        drafting=drafting(model.model, head, trial),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _compare(
    plan: MtpPlan, folder: JobFolder, found: Sequence[MtpArm], before: str, after: str
) -> None:
    job = plan.job
    write_json(
        folder.path / COMPARISON,
        MtpComparison(
            name=job.name,
            drafts=job.drafts,
            depths=job.depths,
            rollouts=job.rollouts,
            prompts_measured=len(plan.measured),
            policy_digest_before=before,
            policy_digest_after=after,
            arms=tuple(found),
        ),
    )
    drawn = [_curve(folder, "trained", f"{plan.base.named.name}, head trained")]
    if plan.native is not None:
        drawn.append(_curve(folder, "native", f"{plan.native.named.name}, own head"))
    if job.random:
        drawn.append(_curve(folder, "random", f"{plan.base.named.name}, from random"))
    text = curves(f"MTP loss of {job.name}", drawn)
    write_atomic(folder.path / FIGURE, text.encode())


def _curve(folder: JobFolder, name: str, label: str) -> Curve:
    place = folder if name == "trained" else JobFolder(folder.path / "arms" / name)
    found = place.curve()
    return Curve(label, [m["step"] for m in found], [m["loss"] for m in found])


def write_checkpoint(plan: MtpPlan, head: DraftHead, target: Path) -> None:
    """The policy's own files and the head: servers find both in one folder."""
    for path in sorted(plan.base.folder.iterdir()):
        if path.is_file() and path.name not in (RECORD, PROVENANCE):
            shutil.copyfile(path, target / path.name)
    part = target / "head.part"
    told = {"trained_for": plan.policy_digest, "steps": str(plan.steps), "job": plan.job.name}
    write_safetensors(part, as_tensors(head, "F32"), told)
    try:
        stitch(part, target, replace=True, named=f"harness train mtp {plan.job.name}")
    finally:
        part.unlink()


def _record(plan: MtpPlan, folder: JobFolder, found: Sequence[MtpArm]) -> Checkpoint:
    job, last = plan.job, (folder.curve() or [{}])[-1]
    metrics = {k: float(v) for k, v in last.items() if k != "step"}
    for arm in found:
        for way in arm.drafting:
            metrics[f"accept_length/{arm.name}/{way.way}"] = way.accept_length
    return record_of(job, "mtp", plan.base, plan.data, steps=plan.steps, metrics=metrics)
