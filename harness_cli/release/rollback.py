"""A channel's switches back to a proven pair, as one commit."""

from datetime import UTC, datetime

from harness_cli.errors import RepoError
from harness_cli.records.manifest import Channel
from harness_cli.release.channels import list_manifests, read_channel, rolled_back, write_channel
from harness_cli.store.checkin import commit_paths
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


def roll_back(
    project: Project, name: str, *, axes: frozenset[str], by: str | None, reason: str
) -> Channel:
    """The channel after the rollback; written and committed. See `channels.rolled_back`."""
    with locked(
        project.runs.parent / "promote.lock",
        what="harness rollback",
        if_locked="wait",
        timeout_s=30,
    ):
        channel = rolled_back(
            read_channel(project.manifests, name),
            list_manifests(project.manifests),
            axes=axes,
            by=by or who(project),
            at=now(),
            reason=reason,
        )
        path = write_channel(project.manifests, channel)
        try:
            commit_paths(Repo.open(path), [path], f"rollback {name} to {channel.harness}")
        except RepoError:
            if is_repository(project):
                raise
    return channel


def is_repository(project: Project) -> bool:
    """Whether the manifests lie in a git repository at all."""
    try:
        Repo.open(project.manifests)
    except RepoError:
        return False
    return True


def who(project: Project) -> str:
    """The person git knows here, for histories."""
    try:
        return Repo.open(project.root).ask("config", "user.name") or "unknown"
    except RepoError:
        return "unknown"


def now() -> str:
    """This second, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
