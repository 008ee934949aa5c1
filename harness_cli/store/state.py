"""`$XDG_STATE_HOME/harness`: caches, bug reports and long runs, outside any project."""

import getpass
import os
import time
from pathlib import Path

from harness_cli.errors import HarnessError


def user_name() -> str:
    """Who runs this, for the record: by name, or by number where the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def state_folder(*parts: str) -> Path:
    """A folder under the state home, made when it is not there.

    Raises `HarnessError` for a user who has no home.
    """
    try:
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:
        raise HarnessError(
            "this user has no home folder", hint="set XDG_STATE_HOME to a folder"
        ) from None
    folder = home.joinpath("harness", *parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_bug_report(text: str) -> Path:
    """A traceback kept for a report; returns where."""
    name = time.strftime("%Y%m%dT%H%M%S") + f"-{os.getpid()}.txt"
    path = state_folder("bugs") / name
    path.write_text(text)
    return path
