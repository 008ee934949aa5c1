"""What `harness view` shows beside runs: one sub-application a kind of page.

The seam for further pages: a function that returns an application, named in `mounts`. A
sub-application is guarded by the parent, so it has no need to check hosts, origins or the token
again; links inside it are to be relative.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from aiohttp import web

from harness_cli.loop.view import review
from harness_cli.loop.view.app import Mount
from harness_cli.store.project import Project

BLIND_PAGE = "harness_cli.evaluation.blind.page"
SHEET = "sheet.json"
FOLDERS = ("blind", ".harness/blind")
"""Where sheets of blind tests are looked for, one folder each."""


def mounts(project: Project, token: str) -> list[Mount]:
    """Every sub-application of this project."""
    return [
        Mount(path="review", title="Proposals to review", app=review.application(project)),
        *blind_pages(project, token),
    ]


def blind_pages(project: Project, token: str) -> list[Mount]:
    """An annotation page for each blind test whose sheet lies in the project."""
    application = _blind_application()
    if application is None:
        return []
    return [
        Mount(
            path=f"blind/{folder.name}",
            title=f"Blind test {folder.name}",
            app=application(folder, token),
        )
        for folder in sheets(project)
    ]


def sheets(project: Project) -> Iterator[Path]:
    """Folders that hold a sheet; of two with one name the first counts."""
    seen: set[str] = set()
    for place in FOLDERS:
        for path in sorted((project.root / place).glob(f"*/{SHEET}")):
            if path.parent.name not in seen:
                seen.add(path.parent.name)
                yield path.parent


def _blind_application() -> Callable[[Path, str], web.Application] | None:
    if find_spec(BLIND_PAGE) is None:
        return None
    made: Callable[[Path, str], web.Application] = import_module(BLIND_PAGE).application
    return made
