"""One replica of a job whose engine is this project's own server.

python -m harness_cli.serving.replica PROJECT PORT SETTINGS
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from harness_cli.models.open import open_policy
from harness_cli.serving.admission import Doorkeeper
from harness_cli.serving.app import ServedPolicy
from harness_cli.serving.hosting import host, told
from harness_cli.store.project import Project


class ReplicaSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a replica is told on its command line, as JSON."""

    policy: str
    served_name: str
    model: str = ""
    """Weights in place of those in harness.yaml."""
    limit: int
    queue: int
    queue_s: float
    finish_s: float


async def serve(project: Project, port: int, settings: ReplicaSettings) -> None:
    """Serve until SIGTERM."""
    name, config = project.policy(settings.policy)
    if settings.model:
        config = msgspec.structs.replace(config, model=settings.model)
    policy = open_policy(name, config, root=project.root)
    door = Doorkeeper(settings.limit, settings.queue, settings.queue_s)
    # Routers take what is no folder for a name on a hub, and would ask the net for it.
    weights = config.model if config.model and (project.root / config.model).is_dir() else ""
    served = ServedPolicy(policy, settings.served_name, door=door, model=weights)

    def up(bound: int) -> None:
        sys.stderr.write(f"{policy.id} listens on port {bound}\n")

    await host(served, port, finish_s=settings.finish_s, up=up)


def main() -> None:
    """`replica PROJECT PORT SETTINGS`."""
    folder, port, told_json = sys.argv[1:4]
    with told(port):
        settings = msgspec.json.decode(told_json, type=ReplicaSettings)
        asyncio.run(serve(Project.find(Path(folder)), int(port), settings))


if __name__ == "__main__":
    main()
