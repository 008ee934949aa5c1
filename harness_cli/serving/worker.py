"""The process behind `harness serve up POLICY`: one policy on one loopback port.

    python -m harness_cli.serving.worker PROJECT POLICY PORT

It writes its state file once it listens, so whoever started it knows by that file that it is up.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Final

from harness_cli.models.open import open_policy
from harness_cli.serving.app import ServedPolicy
from harness_cli.serving.hosting import host, told
from harness_cli.serving.jobs import LOOPBACK, Job, forget, job_paths, remember
from harness_cli.store.processes import this_process
from harness_cli.store.project import Project

FINISH_S: Final = 10.0
"""How long requests in flight may take once the process is told to end."""


async def serve(project: Project, name: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is in flight."""
    _, config = project.policy(name)
    policy = open_policy(name, config, root=project.root)
    paths = job_paths(project.root, name)
    made: list[Job] = []

    def up(bound: int) -> None:
        pid, boot, begun = this_process()
        job = Job(
            name=name,
            policy_id=policy.id,
            pid=pid,
            boot_id=boot,
            begun=begun,
            url=f"http://{LOOPBACK}:{bound}/v1",
            started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            log=str(paths.log.relative_to(project.root)),
        )
        remember(paths, job)
        made.append(job)

    def down() -> None:
        for job in made:
            forget(paths, job)

    served = ServedPolicy(policy, name)
    await host(served, port, finish_s=FINISH_S, up=up, down=down)


def main() -> None:
    """The process's own error goes to its log, where `serve up` finds it."""
    folder, name, port = sys.argv[1:4]
    with told(port):
        asyncio.run(serve(Project.find(Path(folder)), name, int(port)))


if __name__ == "__main__":
    main()
