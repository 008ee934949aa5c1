"""The pages of `harness view`: the runs, a run's report, and what is mounted beside them."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from markupsafe import Markup

from harness_cli.errors import HarnessError, UnknownName
from harness_cli.evaluation.page.template import environment, shell
from harness_cli.evaluation.page.write import write_page
from harness_cli.loop.report_page import subject_of
from harness_cli.loop.view.guard import Guard
from harness_cli.store.project import Project
from harness_cli.store.redact import Redactor
from harness_cli.store.runs import RunFolder, RunStore

SHOWN = 200
"""Runs in the list, the newest first; how many there are beyond is said."""
SCRIPTS = ("elements.js", "runs.js")


@dataclass(frozen=True, slots=True)
class Mount:
    """A sub-application under `/<token>/<path>/`, with its line on the first page."""

    path: str
    title: str
    app: web.Application


@dataclass(slots=True)
class Viewer:
    """The handlers, and the folder in which pages of runs are made."""

    project: Project
    guard: Guard
    folder: Path
    mounts: Sequence[Mount] = ()
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    _made: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[self.guard.middleware()])
        base = f"/{self.guard.token}"
        app.router.add_get(f"{base}/", self.index)
        app.router.add_get(f"{base}/runs/{{run}}", self.report)
        for mount in self.mounts:
            app.add_subapp(f"{base}/{mount.path}/", mount.app)
        return app

    async def index(self, _: web.Request) -> web.Response:
        """The runs."""
        rows, more = await asyncio.to_thread(run_rows, self.project)
        return self._page("runs.html.j2", rows=rows, more=more, mounts=self.mounts)

    async def report(self, request: web.Request) -> web.StreamResponse:
        """One run's page, made anew when its files changed."""
        try:
            run = RunStore(self.project.runs).get(request.match_info["run"])
            async with self._locks.setdefault(run.id, asyncio.Lock()):
                path = await asyncio.to_thread(self._written, run)
        except HarnessError as exc:
            status = 404 if isinstance(exc, UnknownName) else 409
            return self._page("problem.html.j2", status=status, message=str(exc), hint=exc.hint)
        return web.FileResponse(path, headers={"Content-Type": "text/html; charset=utf-8"})

    def _written(self, run: RunFolder) -> Path:
        path = self.folder / f"{run.id}.html"
        now = tuple(_state(p) for p in (run.journal, run.report_file, self.project.manifests))
        if self._made.get(run.id) != (*now, run.status()) or not path.exists():
            write_page(path, subject_of(self.project, run))
            self._made[run.id] = (*now, run.status())
        return path

    def _page(self, name: str, *, status: int = 200, **context: Any) -> web.Response:
        clean = Redactor.from_environment().text
        made = environment(clean).get_template(name)
        base = f"/{self.guard.token}/"
        text = made.render(**shell(scripts=SCRIPTS), base=Markup(base), **context)
        return web.Response(status=status, text=text, content_type="text/html")


def run_rows(project: Project) -> tuple[list[dict[str, Any]], int]:
    """The newest runs as rows of a table, and how many are older; a damaged one says so."""
    runs = RunStore(project.runs).list()
    return [_row(run) for run in runs[:SHOWN]], max(len(runs) - SHOWN, 0)


def _row(run: RunFolder) -> dict[str, Any]:
    try:
        config, status = run.config(), run.status()
        report = run.report() if run.report_file.exists() else None
    except HarnessError as exc:
        return {"id": run.id, "problem": str(exc)}
    split = f"/{config.evalset.split}" if config.evalset.split else ""
    return {
        "id": run.id,
        "evalset": config.evalset.name + split,
        "policy": config.policy_id,
        "harness": config.harness_id[:12] + (" dirty" if config.dirty else ""),
        "judge": config.judge_id,
        "status": status,
        "passed": f"{report.counts['passed']} of {report.planned}" if report else "–",
    }


def _state(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def page_folder() -> "tempfile.TemporaryDirectory[str]":
    """Where a server keeps the pages it made, until it ends."""
    return tempfile.TemporaryDirectory(prefix="harness-view-")
