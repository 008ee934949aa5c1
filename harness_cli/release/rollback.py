"""A channel's switches back to a proven pair, as one commit."""

from harness_cli.errors import RepoError
from harness_cli.records.manifest import Channel
from harness_cli.release.channels import (
    NotProven,
    list_manifests,
    read_channel,
    rolled_back,
    write_channel,
)
from harness_cli.release.clock import now
from harness_cli.release.commit import WAIT, Lock, channels_locked, commit_channel
from harness_cli.store.checkin import refuse_busy
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


def roll_back(
    project: Project,
    name: str,
    *,
    axes: frozenset[str],
    by: str | None,
    reason: str,
    lock: Lock = WAIT,
) -> Channel:
    """The channel after the rollback; written and committed. See `channels.rolled_back`."""
    with channels_locked(project, "harness rollback", lock):
        refuse_busy(project.manifests)
        before = read_channel(project.manifests, name)
        manifests = list_manifests(project.manifests)
        try:
            channel = rolled_back(
                before, manifests, axes=axes, by=by or who(project), at=now(), reason=reason
            )
        except NotProven as exc:
            from harness_cli.release.proving import mixed_pair, proof_of

            pair = mixed_pair(manifests[exc.policy], manifests[exc.harness])
            proof = "\n  ".join(proof_of(project, pair))
            exc.hint = f"{exc.hint}; this would prove the pair:\n  {proof}"
            raise
        write_channel(project.manifests, channel)
        commit_channel(project, channel, f"rollback {name} to {channel.harness}")
    return channel


def who(project: Project) -> str:
    """The person git knows here, for histories."""
    try:
        return Repo.open(project.root).ask("config", "user.name") or "unknown"
    except RepoError:
        return "unknown"
