"""How each engine is started: words, environment, address."""

import os
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness_cli.records.serve_job import ServeJob
from harness_cli.serving.hosting import LOOPBACK
from harness_cli.serving.preflight import OURS, served_policy
from harness_cli.serving.replica import ReplicaSettings
from harness_cli.serving.sglang.command import sglang_words
from harness_cli.serving.vllm_cpu import ENV, vllm_words


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start."""

    words: tuple[str, ...]
    url: str
    """Without `/v1`."""
    env: dict[str, str] = field(default_factory=dict)
    """Beside the environment that the supervisor has."""

    def shell(self) -> str:
        """The same as a person would type it."""
        return shlex.join([*(f"{k}={v}" for k, v in self.env.items()), *self.words])


def replica_launch(
    job: ServeJob, root: Path, *, number: int, model: str, sha256: str | None, port: int
) -> Launch:
    """Replica `number` of a job on `port`. `root`: the project's folder."""
    env = {k: v.replace("{replica}", str(number)) for k, v in job.env.items()}
    # Behind a router nobody else needs to reach a replica.
    host = LOOPBACK if job.router.use else job.host
    url = f"http://{reachable(host)}:{port}"
    if job.engine in OURS:
        return Launch(_own_words(job, root, model, port), f"http://{LOOPBACK}:{port}", env)
    if job.engine == "vllm-cpu":
        words = vllm_words(job, model=model, host=host, port=port)
        return Launch(words, url, {**ENV, **env})
    return Launch(sglang_words(job, model=model, host=host, port=port, sha256=sha256), url, env)


def reachable(host: str) -> str:
    """Where a client on this machine finds what listens on `host`, as it stands in an address."""
    if host in ("0.0.0.0", "::"):
        return LOOPBACK
    return f"[{host}]" if ":" in host else host


def _own_words(job: ServeJob, root: Path, model: str, port: int) -> tuple[str, ...]:
    admission = job.admission
    settings = ReplicaSettings(
        policy=served_policy(job, model),
        served_name=job.served_name,
        # A `checkpoint:` policy names its weights itself.
        model=model if job.policy or job.engine != "checkpoint" else "",
        limit=admission.per_replica,
        queue=admission.queue,
        queue_s=admission.queue_s,
        finish_s=max(1.0, job.process.drain_s - 1.0),
    )
    told = msgspec.json.encode(settings).decode()
    return (sys.executable, "-m", "harness_cli.serving.replica", str(root), str(port), told)


def environment(launch: Launch) -> dict[str, str]:
    """The environment of the process."""
    return {**os.environ, "PYTHONUNBUFFERED": "1", **launch.env}
