"""`harness --version`."""

import json
import sys

from harness_cli import __version__


def show_version(*, as_json: bool) -> None:
    """The version on stdout, as text or as one JSON object."""
    if as_json:
        sys.stdout.write(json.dumps({"schema": 1, "harness": __version__}) + "\n")
    else:
        sys.stdout.write(f"harness {__version__}\n")
