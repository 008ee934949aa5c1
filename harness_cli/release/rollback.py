"""A channel's switches back to a proven pair, as one commit."""

from datetime import UTC, datetime

from harness_cli.errors import RepoError
from harness_cli.records.manifest import Channel
from harness_cli.release.channels import list_manifests, read_channel, rolled_back, write_channel
from harness_cli.release.commit import channels_locked, commit_channel
from harness_cli.store.checkin import refuse_busy
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


def roll_back(
    project: Project, name: str, *, axes: frozenset[str], by: str | None, reason: str
) -> Channel:
    """The channel after the rollback; written and committed. See `channels.rolled_back`."""
    with channels_locked(project, "harness rollback"):
        refuse_busy(project.manifests)
        before, manifests, at = (
            read_channel(project.manifests, name),
            list_manifests(project.manifests),
            now(),
        )
        channel = rolled_back(
            before,
            manifests,
            axes=axes,
            by=by or who(project),
            at=at,
            reason=reason,
        )
        write_channel(project.manifests, channel)
        commit_channel(project, channel, f"rollback {name} to {channel.harness}")
    return channel


def who(project: Project) -> str:
    """The person git knows here, for histories."""
    try:
        return Repo.open(project.root).ask("config", "user.name") or "unknown"
    except RepoError:
        return "unknown"


def now() -> str:
    """This second, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
