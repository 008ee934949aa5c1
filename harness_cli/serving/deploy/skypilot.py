"""A job as a SkyPilot service: machines on clouds, one replica each, behind SkyServe's balancer."""

import shlex
from typing import Any

from harness_cli.records.serve_job import Deploy, ServeJob
from harness_cli.serving.deploy.engine import PORT, engine_words


def skypilot(job: ServeJob, deploy: Deploy) -> dict[str, Any]:
    """The file for `sky serve up`."""
    resources: dict[str, Any] = {
        "accelerators": f"{deploy.accelerator}:{job.parallelism.gpus}",
        "ports": PORT,
        "image_id": f"docker:{deploy.image}",
    }
    made: dict[str, Any] = {
        "name": job.name,
        "service": {
            "readiness_probe": {
                "path": "/health",
                "initial_delay_seconds": round(job.process.ready_s),
                "timeout_seconds": 20,
            },
            "replicas": job.replicas,
            "load_balancing_policy": "least_load",
        },
        "resources": resources,
    }
    if job.env:
        made["envs"] = dict(sorted(job.env.items()))
    if deploy.setup:
        made["setup"] = deploy.setup
    made["run"] = shlex.join(engine_words(job)) + "\n"
    return made
