"""A policy of this program behind its own loopback server, for as long as it is measured."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.records.bench import ServingFacts
from harness_cli.records.config import PolicyConfig
from harness_cli.records.serve_job import MtpServing
from harness_cli.serving.replica import ReplicaSettings
from harness_cli.store.project import Project

UP_S: Final = 300.0
FINISH_S: Final = 10.0
SERVED: Final = "agent"


@contextmanager
def loopback(project: Project, policy: str, *, limit: int) -> Iterator[tuple[Project, str]]:
    """The project with one more policy, the served one, and its name.

    At most `limit` requests are let in at a time, so that the client's concurrency is what is
    measured. Raises `HarnessError` with the end of the server's words where it does not come up.
    """
    settings = ReplicaSettings(
        policy=policy,
        served_name=SERVED,
        limit=limit,
        queue=1024,
        queue_s=3600.0,
        finish_s=FINISH_S,
    )
    words = [sys.executable, "-m", "harness_cli.serving.replica", str(project.root), "0"]
    words.append(msgspec.json.encode(settings).decode())
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=project.root
            )
        try:
            port = _port(process, log, policy)
            yield _with_endpoint(project, policy, port)
        finally:
            _end(process)


def facts(project: Project, policy: str) -> ServingFacts:
    """What TR App. H.3 asks of a server, of one of ours."""
    config = project.policy(policy)[1]
    mtp = None
    if config.mtp is not None:
        mtp = MtpServing(
            num_steps=config.mtp.num_steps,
            num_draft_tokens=config.mtp.num_steps + 1,
            accept_threshold_single=config.mtp.accept_threshold_single,
            accept_threshold_acc=config.mtp.accept_threshold_acc,
        )
    model = config.checkpoint.uri if config.checkpoint else config.model
    return ServingFacts(
        job=policy,
        engine="local-mtp" if mtp else config.kind,
        model=model,
        dtype=config.dtype,
        mtp=mtp,
    )


def _with_endpoint(project: Project, policy: str, port: int) -> tuple[Project, str]:
    own = project.policy(policy)[1]
    config = PolicyConfig(
        kind="openai",
        model=SERVED,
        base_url=f"http://127.0.0.1:{port}/v1",
        checkpoint=own.checkpoint,
        pipeline=own.pipeline,
        max_tokens=own.max_tokens,
        temperature=own.temperature,
        top_p=own.top_p,
        attempt_timeout_s=600.0,
        total_timeout_s=600.0,
        stall_timeout_s=300.0,
    )
    name = policy.replace(":", "-").replace("+", "-").replace("/", "-")
    policies = {**project.config.policies, name: config}
    return replace(project, config=msgspec.structs.replace(project.config, policies=policies)), name


def _port(process: "subprocess.Popen[bytes]", log: Path, policy: str) -> int:
    end = time.monotonic() + UP_S
    while time.monotonic() < end and process.poll() is None:
        for line in log.read_text("utf-8", "replace").splitlines():
            if " listens on port " in line:
                return int(line.rpartition(" ")[2])
        time.sleep(0.1)
    said = log.read_text("utf-8", "replace").splitlines()[-3:]
    raise HarnessError(f"`{policy}` was not served: " + (" ".join(said) or "it said nothing"))


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(FINISH_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
