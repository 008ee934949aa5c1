"""The process behind `harness serve up`: one policy on one loopback port until it is told to end.

    python -m harness_cli.serving.worker PROJECT POLICY PORT

It writes its state file once it listens, so whoever started it knows by that file that it is up.
"""

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import Final

from aiohttp import web

from harness_cli.errors import HarnessError
from harness_cli.models.base import Policy
from harness_cli.models.open import open_policy
from harness_cli.serving.app import ServedPolicy
from harness_cli.serving.jobs import LOOPBACK, Job, forget, job_paths, remember, this_process
from harness_cli.store.project import Project

FINISH_S: Final = 10.0
"""How long requests in flight may take once the process is told to end."""


async def serve(project: Project, name: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is in flight."""
    _, config = project.policy(name)
    policy = open_policy(name, config, root=project.root)
    if config.kind == "local":
        await _warm(policy)
    runner = web.AppRunner(
        ServedPolicy(policy, name).app(),
        access_log=None,
        shutdown_timeout=FINISH_S,
        handler_cancellation=True,
    )
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
        bound = int(runner.addresses[0][1])
        paths = job_paths(project.root, name)
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
        try:
            await ended.wait()
        finally:
            forget(paths, job)
    finally:
        await runner.cleanup()


async def _warm(policy: Policy) -> None:
    """Have the weights read, and converted the first time, before anyone waits for an answer."""
    from harness_cli.models.local import LocalPolicy

    if isinstance(policy, LocalPolicy):
        await policy.warm()


def main() -> None:
    """The process's own error goes to its log, where `serve up` finds it."""
    folder, name, port = sys.argv[1:4]
    try:
        asyncio.run(serve(Project.find(Path(folder)), name, int(port)))
    except HarnessError as exc:
        sys.stderr.write(f"error: {exc}\n" + (f"hint: {exc.hint}\n" if exc.hint else ""))
        sys.exit(exc.exit_code)
    except OSError as exc:
        sys.stderr.write(f"error: cannot listen on port {port}: {exc.strerror}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
