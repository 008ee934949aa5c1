"""A serving job checked as a whole, before anything of it is started."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from harness_cli.errors import BadFile, HarnessError
from harness_cli.harness.findings import Finding
from harness_cli.models.mtp_check import check_head
from harness_cli.records.config import CheckpointRef, ProjectConfig
from harness_cli.records.serve_job import MtpServing, ServeJob
from harness_cli.serving.findings import error, warning
from harness_cli.serving.sglang.rules import job_findings
from harness_cli.serving.vllm_cpu import vllm_findings
from harness_cli.store.checkpoints import (
    DRAFTED,
    LOSSY,
    PREFIX,
    checkpoints_folder,
    digest_of,
    find_checkpoint,
    read_checkpoint,
)
from harness_cli.store.project import Project

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
OURS: Final = ("builtin", "local", "checkpoint", "policy")
"""Engines behind this project's own server."""


def check_job(job: ServeJob, config: ProjectConfig, root: Path) -> list[Finding]:
    """Everything wrong with a job, errors first. `root` is the folder its paths start from."""
    found = [*_numbers(job), *_engine(job, config, root), *_weights(job, root)]
    return sorted(found, key=lambda finding: finding.level != "error")


def _numbers(job: ServeJob) -> Iterator[Finding]:
    if job.schema != 1:
        yield error("schema", f"schema {job.schema} is not known", "this is 1")
    if not NAME.fullmatch(job.name):
        told = f"`{job.name}` cannot name a job: letters, digits, dots, hyphens, underscores"
        yield error("name", told)
    if not job.router.use and job.replicas > 1:
        yield error("router", f"{job.replicas} replicas need a router", "router: {use: true}")
    if job.router.use and importlib.util.find_spec("sglang_router") is None:
        yield error(
            "router",
            "the router is not installed",
            "make install EXTRA=serve; or `router: {use: false}` for one replica without admission",
        )


def _engine(job: ServeJob, config: ProjectConfig, root: Path) -> Iterator[Finding]:
    if job.engine == "sglang":
        yield from job_findings(job)
        return
    if job.engine == "vllm-cpu":
        yield from vllm_findings(job)
        return
    yield from _local_drafting(job)
    for name in ("options", "launcher"):
        if getattr(job, name):
            yield error("option", f"`{name}` is for engines of others", "leave it out")
    try:
        name, known = Project(root, config).policy(served_policy(job))
    except HarnessError as exc:
        yield error("policy", str(exc), exc.hint or "")
        return
    if known.kind == "openai":
        yield error("policy", f"the policy `{name}` has an endpoint already")
    elif job.engine not in ("policy", known.kind):
        yield error("policy", f"the policy `{name}` is of kind `{known.kind}`, not `{job.engine}`")


def _local_drafting(job: ServeJob) -> Iterator[Finding]:
    """Our own server drafts for a checkpoint, at the two settings that its policies have."""
    if job.mtp is None:
        return
    if job.engine != "checkpoint" or job.policy is not None or not job.model:
        what = f"the engine `{job.engine}`" + (
            f" with `policy: {job.policy}`" if job.policy else ""
        )
        yield error("mtp", f"{what} drafts nothing", "leave `mtp` out, or `model: CHECKPOINT`")
    elif _drafting(job.mtp) is None:
        yield error(
            "mtp",
            "our own server drafts 3 steps, at thresholds 1.0/1.0 or 0.5/0.7, with the head of the "
            "checkpoint",
            "mtp: {accept_threshold_single: 1.0, accept_threshold_acc: 1.0}",
        )


def _drafting(mtp: MtpServing) -> str | None:
    """What our own policies call this setting; None where they have none."""
    single, acc = mtp.accept_threshold_single, mtp.accept_threshold_acc
    own = MtpServing(
        algorithm=mtp.algorithm, accept_threshold_single=single, accept_threshold_acc=acc
    )
    return {(1.0, 1.0): DRAFTED, (0.5, 0.7): LOSSY}.get((single, acc)) if mtp == own else None


def served_policy(job: ServeJob, model: str | None = None) -> str:
    """The policy that our own server answers with; `model` stands in for the job's weights."""
    weights = job.model if model is None else model
    if job.policy is None and job.engine == "checkpoint" and weights:
        drafting = "" if job.mtp is None else _drafting(job.mtp) or ""
        return f"{PREFIX}{weights}{drafting}"
    return job.policy or job.engine


def resolved(job: ServeJob, root: Path) -> ServeJob:
    """The job with a registered checkpoint's folder and digest in place of its name."""
    folder = checkpoints_folder(root) / job.model
    if job.engine in OURS or not job.model or "/" in job.model:
        return job
    record = read_checkpoint(folder) if folder.is_dir() else None
    if record is None:
        return job
    bound = job.checkpoint or CheckpointRef(uri=f"file://{folder}", sha256=record.digest)
    return msgspec.structs.replace(job, model=str(folder), checkpoint=bound)


def _weights(job: ServeJob, root: Path) -> Iterator[Finding]:
    """The checkpoint is the one that is bound, and its draft head will draft."""
    if not job.model or (job.engine in OURS and job.engine != "checkpoint"):
        return
    try:
        if job.engine == "checkpoint":
            yield from head_findings(job, root) if job.mtp is not None else ()
            return
        folder = root / job.model
        if folder.is_dir():
            yield from _digest(job, folder)
        elif job.mtp is not None or (job.checkpoint and job.checkpoint.sha256):
            yield warning(
                "checkpoint",
                f"`{job.model}` is no folder on this machine: neither its digest nor its draft "
                "head is checked",
                "harness mtp check, where the weights lie",
            )
        yield from head_findings(job, root)
    except HarnessError as exc:
        yield error("checkpoint", str(exc), exc.hint or "")


def _digest(job: ServeJob, folder: Path) -> Iterator[Finding]:
    wanted = job.checkpoint.sha256 if job.checkpoint else None
    if wanted is None:
        return
    found = digest_of(folder)
    if not found.startswith(wanted):
        yield error(
            "checkpoint",
            f"the weights in `{job.model}` are {found[:16]}…, the job binds {wanted[:16]}…",
            "bring the weights back, or bind what lies there",
        )


def head_findings(job: ServeJob, root: Path) -> Iterator[Finding]:
    """`harness mtp check` of the head that the server is to take; engines start in `root`.

    A draft model of EAGLE's own kind has no `mtp.*`, and nothing is known of its tensors here.
    """
    mtp = job.mtp
    if mtp is None:
        return
    folder = root / (mtp.draft_model_path or job.model)
    if job.engine == "checkpoint":
        folder = find_checkpoint(root, job.model)
    elif mtp.draft_model_path is not None and not folder.is_dir():
        yield warning("mtp-head", f"`{folder}` is not on this machine: its head is unchecked")
    if not folder.is_dir():
        return
    try:
        report = check_head(folder, steps=mtp.num_steps)
    except BadFile as exc:
        if mtp.algorithm != "EAGLE":
            raise
        yield warning("mtp-head", f"the draft is unchecked: {exc}")  # as `pytorch_model.bin`
        return
    if mtp.algorithm == "EAGLE" and report.family is None:
        return
    for found in report.findings:
        make = error if found.level == "error" else warning
        yield make(f"mtp-head-{found.trouble.replace('_', '-')}", found.message, found.fix)
