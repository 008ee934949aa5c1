"""Review of proposals as a page: forms alone, no script; the same decisions as at a terminal.

A decision is in the proposal's file before the next page is shown. The page applies nothing: it
names the command that does.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from harness_cli.errors import BadFile, HarnessError, UnknownName, UsageError
from harness_cli.evaluation.page.template import environment, shell
from harness_cli.evolution.apply import is_stale
from harness_cli.evolution.modifying import modified
from harness_cli.evolution.proposal_file import HEAD, hunks, now, read_proposal, write_proposal
from harness_cli.evolution.propose.memory import remember
from harness_cli.evolution.review import decide, deciding, pending, replace_op, second_eyes
from harness_cli.loop.view.hunk_cards import Background, background, cards, earlier_ops
from harness_cli.records.diagnosis import Decision, Proposal
from harness_cli.store.project import Project
from harness_cli.store.redact import Redactor
from harness_cli.store.state import user_name

BODY_LIMIT = 2 * 1024 * 1024
MARK = HEAD.splitlines()[0]
STATES = ("accept", "reject", "modify")


def application(project: Project) -> web.Application:
    """The list of waiting proposals and a page for each; the parent guards it."""
    page = _Review(project)
    app = web.Application(client_max_size=BODY_LIMIT)
    app.router.add_get("/", page.index)
    app.router.add_get("/{file}/", page.show)
    app.router.add_post("/{file}/", page.decide)
    return app


def proposal_files(project: Project) -> list[Path]:
    """Files in the project's folder that begin as a proposal does, newest first."""
    found = []
    for path in project.root.glob("*.yaml"):
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            if file.read(len(MARK)) == MARK.encode():
                found.append(path)
    return sorted(found, key=lambda p: p.stat().st_mtime_ns, reverse=True)


@dataclass(slots=True)
class _Review:
    project: Project
    _background: dict[str, Background] = field(default_factory=dict)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def index(self, _: web.Request) -> web.Response:
        rows = await asyncio.to_thread(self._rows)
        return _page("proposals.html.j2", rows=rows)

    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for path in proposal_files(self.project):
            try:
                proposal = read_proposal(path)
            except BadFile as exc:
                rows.append({"file": path.name, "problem": str(exc)})
                continue
            rows.append(
                {"file": path.name, "id": proposal.id, "hunks": len(hunks(proposal)),
                 "open": len(pending(proposal)), "by": proposal.proposer}
            )  # fmt: skip
        return rows

    async def show(self, request: web.Request) -> web.Response:
        return await self._answered(request, self._shown)

    async def decide(self, request: web.Request) -> web.Response:
        form = {k: v for k, v in (await request.post()).items() if isinstance(v, str)}
        async with self._writing:
            answer = await self._answered(request, lambda path: self._decided(path, form))
        if answer.status != 200:
            return answer
        raise web.HTTPSeeOther(location=f"#{form.get('next', '')}")

    async def _answered(
        self, request: web.Request, work: Callable[[Path], dict[str, Any]]
    ) -> web.Response:
        try:
            path = self._file(request.match_info["file"])
            shown = await asyncio.to_thread(work, path)
        except HarnessError as exc:
            status = 404 if isinstance(exc, UnknownName) else 409
            return _page("review_problem.html.j2", status=status, message=str(exc), hint=exc.hint)
        return _page("review.html.j2", **shown)

    def _file(self, name: str) -> Path:
        files = {p.name: p for p in proposal_files(self.project)}
        if name not in files:
            raise UnknownName.of("proposal", name, files)
        return files[name]

    def _shown(self, path: Path) -> dict[str, Any]:
        proposal = read_proposal(path)
        behind = self._behind(proposal)
        return {
            "file": path.name,
            "proposal": proposal,
            "open": len(pending(proposal)),
            "stale": is_stale(self.project, proposal) if proposal.edits else None,
            "by": "rules of this program, without a model"
            if proposal.proposer == "deterministic"
            else proposal.proposer,
            "behind": behind,
            "reviewer": user_name(),
            "eyes": second_eyes(self.project),
            "cards": cards(proposal, behind),
        }

    def _behind(self, proposal: Proposal) -> Background:
        if proposal.id not in self._background:
            self._background[proposal.id] = background(self.project, proposal)
        return self._background[proposal.id]

    def _decided(self, path: Path, form: dict[str, str]) -> dict[str, Any]:
        """Put one decision into the file; what the file holds by now is read first."""
        with deciding(self.project, path) as proposal:
            made = self._made(proposal, form)
            write_proposal(path, made)
        remember(self.project.root, made)
        return self._shown(path)

    def _made(self, proposal: Proposal, form: dict[str, str]) -> Proposal:
        known = {name: op for name, _, op in hunks(proposal)}
        name, state, by = (form.get(k, "").strip() for k in ("hunk", "state", "by"))
        reason = form.get("reason", "").strip()
        if name not in known:
            raise UnknownName.of("hunk of this proposal", name, known)
        if state not in STATES:
            raise UsageError(f"`{state}` is no decision", hint=", ".join(STATES))
        if not by:
            raise UsageError("the decision has no name", hint="write yours beside it")
        if state == "reject" and not reason:
            raise UsageError("a rejection needs a reason", hint="it is remembered with the edit")
        if state != "modify":
            decision = Decision(state=state, by=by, at=now(), reason=reason)  # type: ignore[arg-type]
            return decide(proposal, name, decision)
        behind = self._behind(proposal)
        if behind.files is None:
            raise UsageError("the base of this proposal is not in this repository")
        # A browser sends line ends as CRLF whatever the file has; the applier keeps the file's own.
        text = form.get("text", "").replace("\r\n", "\n")
        op = modified(behind.files, earlier_ops(proposal, name), known[name], text, by=by)
        return replace_op(proposal, name, op)


def _page(name: str, *, status: int = 200, **context: Any) -> web.Response:
    clean = Redactor.from_environment().text
    frame = shell(scripts=())
    frame["policy"] = frame["policy"].replace("form-action 'none'", "form-action 'self'")
    text = environment(clean).get_template(name).render(**frame, **context)
    return web.Response(status=status, text=text, content_type="text/html")
