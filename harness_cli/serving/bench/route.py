"""What a benchmark measures: a policy of the project, or the endpoint of a running job."""

from dataclasses import replace
from typing import Final

import msgspec

from harness_cli.errors import UsageError
from harness_cli.models.base import Policy
from harness_cli.records.bench import ServingFacts
from harness_cli.records.config import CheckpointRef, PolicyConfig
from harness_cli.records.serve_job import Desired, Live
from harness_cli.serving.job_folder import job_names, known_job, runs
from harness_cli.serving.jobs import Job, jobs
from harness_cli.serving.preflight import OURS
from harness_cli.store.project import Project

CALL_S: Final = 600.0
"""A benchmark's own bounds end a request; the client only keeps a dead socket from hanging."""
STALL_S: Final = 120.0
LOCAL = ("http://127.0.0.1", "http://localhost", "http://[::1]")


def with_job(project: Project, job: str) -> tuple[Project, str, ServingFacts]:
    """The project with the running job as one more policy; its name; what the job says of itself.

    A policy that `serve up POLICY` serves is a job too. Raises `UsageError` where it does not run.
    """
    if job not in job_names(project.root):
        for served, state in jobs(project.root):
            if served.name == job and state == "up":
                return _with_policy(project, served)
    folder = known_job(project.root, job)
    live, desired = folder.live(), folder.desired()
    if live is None or desired is None or not runs(live.supervisor):
        raise UsageError(f"the job `{job}` does not run", hint="harness serve up JOB.yaml")
    config = PolicyConfig(
        kind="openai",
        model=desired.job.served_name,
        base_url=live.url,
        checkpoint=_weights_of(desired, live),
    )
    return _changed(project, job, config), job, facts_of(desired, live)


def _with_policy(project: Project, served: Job) -> tuple[Project, str, ServingFacts]:
    """The same of a policy of harness.yaml behind its own endpoint: it is asked as it is there."""
    own = project.policy(served.name)[1]
    config = PolicyConfig(
        kind="openai",
        model=served.name,
        base_url=served.url,
        checkpoint=own.checkpoint,
        pipeline=own.pipeline,
        context=own.context,
        max_tokens=own.max_tokens,
        temperature=own.temperature,
        top_p=own.top_p,
    )
    told = ServingFacts(
        job=served.name, engine=own.kind, digest=served.policy_id, model=own.model, dtype=own.dtype
    )
    return _changed(project, served.name, config), served.name, told


def _changed(project: Project, name: str, policy: PolicyConfig) -> Project:
    bounded = msgspec.structs.replace(
        policy, attempt_timeout_s=CALL_S, total_timeout_s=CALL_S, stall_timeout_s=STALL_S
    )
    policies = {**project.config.policies, name: bounded}
    return replace(project, config=msgspec.structs.replace(project.config, policies=policies))


def _weights_of(desired: Desired, live: Live) -> CheckpointRef | None:
    """The checkpoint that answers now: after a switch it is not the one of the job file."""
    if live.model == desired.job.model:
        return desired.job.checkpoint
    return CheckpointRef(uri=live.model, sha256=live.checkpoint_sha256)


def facts_of(desired: Desired, live: Live) -> ServingFacts:
    """What TR App. H.3 asks of a server: GPUs, parallelism, dtype, MTP, scheduler settings."""
    job = desired.job
    return ServingFacts(
        job=job.name,
        engine=job.engine,
        version=job.version,
        digest=live.digest,
        model=live.model,
        replicas=desired.replicas,
        gpu=job.gpu,
        gpus=None if job.engine in (*OURS, "vllm-cpu") else job.parallelism.gpus * desired.replicas,
        parallelism=job.parallelism,
        dtype="" if job.engine in OURS else job.dtype,  # our own server takes none from a job
        mtp=job.mtp,
        per_replica=job.admission.per_replica,
        queue=job.admission.queue if job.router.use else None,
        scheduler={"router": job.router.policy if job.router.use else None, **job.options},
    )


def route_of(config: PolicyConfig, policy: Policy | None = None) -> str:
    """Where the requests go; keys and queries of an address are no part of it."""
    if config.kind != "openai":
        return f"in process ({config.kind})"
    url = config.base_url or getattr(policy, "url", "") or "default endpoint"
    return url.partition("?")[0]


def region_of(route: str, told: str | None) -> str:
    """Where the client stands; a loopback route needs nobody to say it."""
    if told:
        return told
    near = route.startswith(LOCAL) or route.startswith("in process")
    return "this machine" if near else "not given"


def arm_of(facts: ServingFacts | None, told: str | None) -> str:
    """The name of what is compared."""
    if told:
        return told
    if facts is None or facts.engine in OURS:
        return ""
    if facts.mtp is None:
        return "mtp off"
    return "mtp on, lossy" if facts.mtp.lossy and not facts.mtp.rejection_sampling else "mtp on"
