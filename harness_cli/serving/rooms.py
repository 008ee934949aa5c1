"""Live rooms of this machine: processes that answer with a policy in a harness, and say which.

A room writes `.harness/serve/rooms/<pid>.json` when it takes its first comment and removes it when
it ends. What it loaded is what it serves to its end, so the digests in the file are true as long
as that very process lives (boot id and start time stand beside the pid).
"""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.canonical import write_json
from harness_cli.records.reader import read_json
from harness_cli.store.processes import alive, this_process


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """A process that serves a live room."""

    schema: int = 1
    name: str
    channel: str | None = None
    """The release channel whose switches it was told to serve."""
    policy_id: str
    harness_id: str
    pid: int
    boot_id: str
    begun: int
    started: str

    @property
    def up(self) -> bool:
        """Whether the process that wrote the file still runs."""
        return alive(self.pid, self.boot_id, self.begun)


@contextmanager
def open_room(
    root: Path, *, name: str, channel: str | None, policy_id: str, harness_id: str
) -> Iterator[Room]:
    """Be known as a live room while inside."""
    pid, boot, begun = this_process()
    room = Room(
        name=name,
        channel=channel,
        policy_id=policy_id,
        harness_id=harness_id,
        pid=pid,
        boot_id=boot,
        begun=begun,
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    path = folder(root) / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, room)
    try:
        yield room
    finally:
        path.unlink(missing_ok=True)


def rooms(root: Path) -> list[Room]:
    """The rooms that are open now; what killed ones have left is swept away."""
    found = []
    for path in sorted(folder(root).glob("*.json")):
        try:
            room = read_json(path, Room, name=str(path))
        except (BadFile, OSError):
            continue
        if room.up:
            found.append(room)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    return found


def folder(root: Path) -> Path:
    """Where rooms are known."""
    return root / ".harness" / "serve" / "rooms"
