"""A serving job checked as a whole, before anything of it is started."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness_cli.errors import HarnessError
from harness_cli.harness.findings import Finding
from harness_cli.models.mtp_check import check_head
from harness_cli.models.weights import digest_of, read_weights
from harness_cli.records.config import ProjectConfig
from harness_cli.records.serve_job import ServeJob
from harness_cli.serving.findings import error, warning
from harness_cli.serving.sglang.rules import job_findings
from harness_cli.serving.vllm_cpu import vllm_findings

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
OURS: Final = ("builtin", "local", "checkpoint", "policy")
"""Engines behind this project's own server."""


def check_job(job: ServeJob, config: ProjectConfig, root: Path) -> list[Finding]:
    """Everything wrong with a job, errors first. `root` is the folder its paths start from."""
    found = [*_numbers(job), *_engine(job, config), *_weights(job, root)]
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


def _engine(job: ServeJob, config: ProjectConfig) -> Iterator[Finding]:
    if job.engine == "sglang":
        yield from job_findings(job)
        return
    if job.engine == "vllm-cpu":
        yield from vllm_findings(job)
        return
    if job.mtp is not None:
        yield error("mtp", f"the engine `{job.engine}` drafts nothing", "leave `mtp` out")
    for name in ("options", "launcher"):
        if getattr(job, name):
            yield error("option", f"`{name}` is for engines of others", "leave it out")
    name = served_policy(job)
    known = config.policies.get(name)
    if known is None:
        listed = ", ".join(sorted(config.policies))
        yield error("policy", f"harness.yaml has no policy `{name}`", f"it has {listed}")
    elif known.kind == "openai":
        yield error("policy", f"the policy `{name}` has an endpoint already")
    elif job.engine != "policy" and known.kind != job.engine:
        yield error("policy", f"the policy `{name}` is of kind `{known.kind}`, not `{job.engine}`")


def served_policy(job: ServeJob) -> str:
    """The policy that our own server answers with."""
    return job.policy or job.engine


def _weights(job: ServeJob, root: Path) -> Iterator[Finding]:
    """The checkpoint is the one that is bound, and its draft head will draft."""
    if not job.model or job.engine in OURS:
        return
    folder = root / job.model
    if not folder.is_dir():
        if job.mtp is not None or (job.checkpoint and job.checkpoint.sha256):
            yield warning(
                "checkpoint",
                f"`{job.model}` is no folder on this machine: neither its digest nor its draft "
                "head is checked",
                "harness mtp check, where the weights lie",
            )
        return
    try:
        yield from _digest(job, folder)
        yield from head_findings(job, folder)
    except HarnessError as exc:
        yield error("checkpoint", str(exc), exc.hint or "")


def _digest(job: ServeJob, folder: Path) -> Iterator[Finding]:
    wanted = job.checkpoint.sha256 if job.checkpoint else None
    if wanted is None:
        return
    found = checkpoint_digest(folder)
    if not found.startswith(wanted):
        yield error(
            "checkpoint",
            f"the weights in `{job.model}` are {found[:16]}…, the job binds {wanted[:16]}…",
            "bring the weights back, or bind what lies there",
        )


def checkpoint_digest(folder: Path) -> str:
    """SHA-256 over all tensors of a checkpoint, by name, type, shape and bytes."""
    return digest_of(read_weights(folder).tensors)


def head_findings(job: ServeJob, folder: Path) -> Iterator[Finding]:
    """`harness mtp check` of the head that the server is to take."""
    mtp = job.mtp
    if mtp is None:
        return
    if mtp.draft_model_path is not None:
        folder = Path(mtp.draft_model_path)
        if not folder.is_dir():
            yield warning("mtp-head", f"`{folder}` is not on this machine: its head is unchecked")
            return
    for found in check_head(folder, steps=mtp.num_steps, digests=False).findings:
        make = error if found.level == "error" else warning
        yield make(f"mtp-head-{found.trouble.replace('_', '-')}", found.message, found.fix)
