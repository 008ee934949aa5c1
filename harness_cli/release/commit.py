"""A channel's switches and everything they rest on, as one commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import RepoError
from harness_cli.records.manifest import Channel
from harness_cli.release.channels import channel_path
from harness_cli.release.gather import APPROVALS
from harness_cli.store.checkin import commit_paths
from harness_cli.store.locks import IfLocked, locked
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


@dataclass(frozen=True, slots=True)
class Lock:
    """What to do where another process switches at the moment."""

    if_locked: IfLocked = "wait"
    wait_s: float = 60.0
    """A switch takes about a second; who waits longer stands behind a process that hangs."""


WAIT = Lock()


@contextmanager
def channels_locked(project: Project, what: str, lock: Lock = WAIT) -> Iterator[None]:
    """One change of channels and approvals at a time."""
    path = project.runs.parent / "promote.lock"
    with locked(path, what=what, if_locked=lock.if_locked, timeout_s=lock.wait_s):
        yield


def commit_channel(project: Project, channel: Channel, message: str) -> str | None:
    """One commit on the branch that is checked out; None without a repository."""
    try:
        repo = Repo.open(project.manifests)
    except RepoError:
        return None
    files = bound_files(project.manifests, channel)
    try:
        return commit_paths(repo, files, message)
    except RepoError as exc:
        raise RepoError(
            f"channel `{channel.name}` is switched, but git did not commit it: {exc}",
            hint=f"commit `{project.config.manifests}` yourself with the message `{message}`",
        ) from exc


def bound_files(manifests: Path, channel: Channel) -> list[Path]:
    """The channel's file and what its history rests on: manifests, their evidence, approvals.

    All of them and not the newest alone: a promotion that was killed after its switch has left
    its manifest uncommitted, and a clone could not go back to it.
    """
    names = {n for event in channel.history for n in (event.policy, event.harness) if n}
    wanted = [channel_path(manifests, channel.name), manifests / APPROVALS]
    for name in sorted(names):
        wanted += [manifests / f"{name}.json", manifests / f"{name}.json.sig"]
        wanted.append(manifests / "evidence" / f"{name}.jsonl.zst")
    return [path for path in wanted if path.is_file()]
