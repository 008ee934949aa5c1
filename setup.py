"""Put the shipped content into the wheel from its one copy in the source tree.

Everything else is in pyproject.toml. `harness_repo/`, `evalsets/` and the templates stand beside
the package in the source tree, where people edit them; a wheel carries them as
`harness_cli/content/`.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CONTENT = ("harness_repo", "evalsets", "templates")


class BuildWithContent(build_py):
    """`build_py`, then the content folders beside the modules."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "harness_cli", "content")
        for name in CONTENT:
            shutil.rmtree(target / name, ignore_errors=True)
            shutil.copytree(
                name, target / name, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.pyc")
            )


setup(cmdclass={"build_py": BuildWithContent})
