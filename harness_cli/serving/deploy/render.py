"""The files for more than one machine, as text."""

from typing import Literal

from harness_cli.errors import UsageError
from harness_cli.records.reader import dump_yaml
from harness_cli.records.serve_job import ServeJob
from harness_cli.serving.deploy.kubernetes import kubernetes
from harness_cli.serving.deploy.skypilot import skypilot

Target = Literal["kubernetes", "skypilot"]


def render(job: ServeJob, target: Target) -> str:
    """YAML of a job for a cluster. Raises `UsageError` where the job says nothing about one."""
    if job.deploy is None:
        raise UsageError(
            f"the job `{job.name}` names no image for other machines",
            hint="deploy: {image: lmsysorg/sglang:v0.5.23}",
        )
    head = f"# Made by `harness serve render` from the job `{job.name}`; edit the job, not this.\n"
    if target == "skypilot":
        return head + dump_yaml(skypilot(job, job.deploy))
    return head + "---\n".join(dump_yaml(item) for item in kubernetes(job, job.deploy))
