"""`$XDG_STATE_HOME/harness`: caches, bug reports and long runs, outside any project."""

import os
import time
from pathlib import Path


def state_folder(*parts: str) -> Path:
    """A folder under the state home, made when it is not there."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(home, "harness", *parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_bug_report(text: str) -> Path:
    """A traceback kept for a report; returns where."""
    name = time.strftime("%Y%m%dT%H%M%S") + f"-{os.getpid()}.txt"
    path = state_folder("bugs") / name
    path.write_text(text)
    return path
