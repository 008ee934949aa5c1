"""Whether the very process that wrote a file still runs: pid, boot id and start time together.

A pid alone proves nothing: after a restart, or after enough processes, it is another's.
"""

import os
from pathlib import Path

from harness_cli.store.locks import boot_id


def this_process() -> tuple[int, str, int]:
    """(pid, boot id, start in clock ticks) of this process."""
    return os.getpid(), boot_id(), begun_of(os.getpid())


def begun_of(pid: int) -> int:
    """When a process began, in clock ticks since boot; 0 when there is none, -1 for a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    # The name in brackets may hold blanks and brackets: count from the last one.
    fields = text.rpartition(")")[2].split()
    return -1 if fields[0] == "Z" else int(fields[19])


def alive(pid: int, boot: str, begun: int) -> bool:
    """Whether the process that was told of by these three numbers runs."""
    return pid > 0 and boot == boot_id() and begun_of(pid) == begun
