"""The content that ships with the program: harness, evalsets, templates, from their one copy."""

from pathlib import Path

import harness_cli
from harness_cli.errors import HarnessError

PARTS = ("harness_repo", "evalsets", "templates")


def content_folder() -> Path:
    """Where `harness_repo/`, `evalsets/` and `templates/` of this installation stand.

    In a wheel they lie inside the package, in a source tree beside it.
    """
    package = Path(harness_cli.__file__).parent
    for folder in (package / "content", package.parent):
        if all((folder / part).is_dir() for part in PARTS):
            return folder
    raise HarnessError(
        "this installation has no content to make a project from",
        hint="install the wheel, or work from a source tree",
    )
