"""Ports of this machine: free ones, and who has the others."""

import socket
from pathlib import Path
from typing import Final

from harness_cli.errors import HarnessError

_LISTENS: Final = "0A"
"""State of a listening socket in `/proc/net/tcp`."""


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody has now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def refuse_taken(host: str, port: int) -> None:
    """Raise `HarnessError` when `port` cannot be bound, with who has it where that shows."""
    if not port:
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As servers do it: a connection that is still closing does not keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            who = holder(port)
            by = f" by process {who[0]} ({who[1]})" if who else ""
            raise HarnessError(
                f"port {port} on {host} is taken{by}: {exc.strerror}",
                hint="end that process, or set another `port` (0 takes a free one)",
            ) from exc


def holder(port: int) -> tuple[int, str] | None:
    """(pid, name) of who listens on a port; None where this user cannot see it."""
    inodes = _inodes(port)
    if not inodes:
        return None
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(str(link.readlink()) in inodes for link in folder.iterdir()):
                name = folder.parent.joinpath("comm").read_text().strip()
                return int(folder.parent.name), name
        except OSError:
            continue
    return None


def _inodes(port: int) -> set[str]:
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found
