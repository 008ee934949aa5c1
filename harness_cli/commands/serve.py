"""`harness serve`: an embedded policy behind an OpenAI-compatible endpoint on this machine."""

import time
from typing import Annotated

import typer

from harness_cli.commands._completing import policy_names
from harness_cli.commands._groups import DEFAULT, DefaultGroup
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(cls=DefaultGroup, rich_markup_mode=None)
Named = Annotated[
    str | None,
    typer.Argument(
        metavar="[POLICY]", help="As in harness.yaml; the default one.", autocompletion=policy_names
    ),
]


@app.callback()
def group() -> None:
    """An embedded policy behind an OpenAI-compatible endpoint; alone: what is served."""


@app.command(name="up")
def up(
    policy: Named = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0 takes a free one.")
    ] = 0,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Start serving, in the background; prints the base URL."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.serving.jobs import start
    from harness_cli.store.project import Project

    project = Project.find(directory)
    name, _ = project.policy(policy)
    job, fresh = start(project, name, port)
    if as_json:
        emit_json({"job": job, "started": fresh})
        return
    line(job.url)
    if not quiet:
        note(f"`{name}` ({job.policy_id}) {'is served' if fresh else 'was served already'}")
        note(f"log: {job.log} · end it with: harness serve down {name}")


@app.command(name="down")
def down(
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="[POLICY]", help="Which one; all when not named.", autocompletion=policy_names
        ),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """End serving; requests in flight are finished."""
    from harness_cli.commands._show import emit_json, note
    from harness_cli.serving.jobs import job_named, jobs, stop
    from harness_cli.store.project import Project

    root = Project.find(directory).root
    names = [job_named(root, policy).name] if policy else [job.name for job, _ in jobs(root)]
    ended = [name for name in names if stop(root, name) is not None]
    if as_json:
        emit_json({"ended": ended, "stale": [n for n in names if n not in ended]})
    elif not quiet:
        for name in names:
            note(f"`{name}` ended" if name in ended else f"`{name}` had ended already")
        if not names:
            note("no policy is served")


@app.command(name="status")
def status(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """What is served, where, and since when."""
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.serving.jobs import jobs
    from harness_cli.store.project import Project

    found = jobs(Project.find(directory).root)
    if as_json:
        emit_json({"jobs": [{"job": job, "state": state} for job, state in found]})
        return
    if not found:
        note("no policy is served · harness serve up")
        return
    if quiet:
        for job, _ in found:
            line(job.url)
        return
    table(
        ("policy", "state", "url", "pid", "since", "id"),
        [(j.name, state, j.url, j.pid, j.started, j.policy_id) for j, state in found],
    )


@app.command(name=DEFAULT, hidden=True)
def default(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """What is served."""
    status(directory, as_json, quiet)


@app.command(name="logs")
def logs(
    policy: Named = None,
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Until ^C.")] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,  # noqa: ARG001  one spelling for every verb
) -> None:
    """The last lines a served policy wrote."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.errors import UsageError
    from harness_cli.serving.jobs import job_named, job_paths, tail
    from harness_cli.store.project import Project

    if follow and as_json:
        raise UsageError("--follow has no end, so it is no JSON document")
    root = Project.find(directory).root
    path = job_paths(root, policy or job_named(root, None).name).log
    if as_json:
        emit_json({"log": str(path), "lines": list(tail(path, lines))})
        return
    for text in tail(path, lines):
        line(text)
    if follow and path.exists():
        with path.open(encoding="utf-8", errors="replace") as file:
            file.seek(0, 2)
            while True:
                if text := file.readline():
                    line(text.rstrip("\n"))
                else:
                    time.sleep(0.2)
