"""`harness serve`: policies behind OpenAI-compatible endpoints, outliving the command."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness_cli.commands._completing import policy_names
from harness_cli.commands._groups import DEFAULT, DefaultGroup
from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.commands._serve_sandbox import sandbox

app = typer.Typer(cls=DefaultGroup, rich_markup_mode=None)
Named = Annotated[
    str | None,
    typer.Argument(
        metavar="[POLICY]", help="As in harness.yaml; the default one.", autocompletion=policy_names
    ),
]


@app.callback()
def group() -> None:
    """Policies behind OpenAI-compatible endpoints: engines, replicas, a router; alone: status."""


@app.command(name="up")
def up(
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="[POLICY|JOB.yaml]",
            help="A policy of harness.yaml, or a job file; the default policy.",
            autocompletion=policy_names,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="In place of the job's; 0, a policy's default, takes a free one."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check a job and print its exact command lines.")
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Start serving, in the background; prints the base URL once everything is ready."""
    from harness_cli.commands._serving import is_job_file, serve_job
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.errors import UsageError
    from harness_cli.serving.jobs import start
    from harness_cli.store.project import Project

    project = Project.find(directory)
    if policy is not None and is_job_file(policy, directory):
        path = directory / policy
        serve_job(project, path, port, dry_run=dry_run, as_json=as_json, quiet=quiet)
        return
    if dry_run:
        raise UsageError("--dry-run prints the commands of a job", hint="name a JOB.yaml")
    name, _ = project.policy(policy)
    job, fresh = start(project, name, port or 0)
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
            metavar="[POLICY|JOB]",
            help="Which one; all when not named.",
            autocompletion=policy_names,
        ),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """End serving; requests in flight are finished."""
    from harness_cli.commands._show import emit_json, note
    from harness_cli.serving.control import down as job_down
    from harness_cli.serving.job_folder import job_names
    from harness_cli.serving.jobs import job_named, jobs, stop
    from harness_cli.store.project import Project

    root = Project.find(directory).root
    asked = job_names(root)
    names = [policy] if policy in asked else []
    if policy is None:
        names = [*asked, *(job.name for job, _ in jobs(root))]
    elif policy not in asked:
        names = [job_named(root, policy).name]
    ended = [
        name
        for name in names
        if (job_down(root, name) if name in asked else stop(root, name) is not None)
    ]
    if as_json:
        emit_json({"ended": ended, "stale": [n for n in names if n not in ended]})
    elif not quiet:
        for name in names:
            note(f"`{name}` ended" if name in ended else f"`{name}` had ended already")
        if not names:
            note("no policy is served")


@app.command(name="status")
def status(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """What is served, where, since when; of jobs, what is desired against what runs."""
    from harness_cli.commands._serving import show_standings
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.serving.jobs import jobs
    from harness_cli.serving.standing import standings
    from harness_cli.store.project import Project

    root = Project.find(directory).root
    found, served = jobs(root), standings(root)
    if as_json:
        policies = [{"job": job, "state": state} for job, state in found]
        emit_json({"jobs": policies, "served": served})
        return
    if not found and not served:
        note("no policy is served · harness serve up")
        return
    if served:
        show_standings(served, quiet=quiet)
    if not found:
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
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[POLICY|JOB|FILE]…",
            help="What is served, the only one by default; with --stats also files, `-` for stdin.",
            autocompletion=policy_names,
        ),
    ] = None,
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Until ^C.")] = False,
    of: Annotated[
        str | None, typer.Option(help="Of a job: replica-N, router or supervisor.")
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Running, queue, accept length, rate, throughput.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(metavar="URL|FILE", help="A /metrics page, beside --stats.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="FILE|SECONDS", help="An earlier page, or how long to wait."),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The last lines a served policy wrote, or with --stats what all of a log says."""
    from harness_cli.commands._serving import (
        follow_log,
        has_job,
        job_log,
        only_served,
        policy_log,
    )
    from harness_cli.commands._show import emit_json, line
    from harness_cli.errors import UsageError
    from harness_cli.serving.jobs import tail
    from harness_cli.store.project import Project

    if stats or metrics:
        from harness_cli.commands._log_stats import show_stats

        show_stats(directory, names or [], metrics, before, as_json=as_json, quiet=quiet)
        return
    if names and len(names) > 1:
        raise UsageError("the lines of one log are shown", hint="--stats reads several")
    if follow and as_json:
        raise UsageError("--follow has no end, so it is no JSON document")
    root = Project.find(directory).root
    policy = names[0] if names else only_served(root)
    path = job_log(root, policy, of) if has_job(root, policy) else policy_log(root, policy)
    if as_json:
        emit_json({"log": str(path), "lines": list(tail(path, lines))})
        return
    for text in tail(path, lines):
        line(text)
    if follow and path.exists():
        follow_log(path)


@app.command(name="switch")
def switch(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A running job, by its name.")],
    model: Annotated[
        str | None,
        typer.Argument(metavar="[WEIGHTS]", help="Checkpoint folder to serve from now on."),
    ] = None,
    sha256: Annotated[
        str | None, typer.Option(help="Digest those weights must have; refused otherwise.")
    ] = None,
    how: Annotated[
        str | None,
        typer.Option(help="weights: each replica reads them; replicas: new ones beside the old."),
    ] = None,
    replicas: Annotated[int | None, typer.Option(min=1, help="How many from now on.")] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Move a running job to other weights or another number of replicas, without a gap.

    Another harness needs no switch here: it runs at the client.
    """
    from harness_cli.commands._evaluating import one_of
    from harness_cli.commands._serving import show_switched
    from harness_cli.serving.control import switch as switch_job
    from harness_cli.store.project import Project

    live = switch_job(
        Project.find(directory),
        job,
        model=model,
        sha256=sha256,
        replicas=replicas,
        how=one_of("--how", how, ("weights", "replicas")),
    )
    show_switched(live, as_json=as_json, quiet=quiet)


app.command(name="sandbox")(sandbox)


@app.command(name="render")
def render(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="A job with a `deploy` section.")],
    target: Annotated[
        Literal["kubernetes", "skypilot"], typer.Option("--as", help="Which files.")
    ] = "kubernetes",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; stdout when not named.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A job's files for more than one machine: Kubernetes objects or a SkyPilot service."""
    from harness_cli.commands._serving import warn
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.records.canonical import write_atomic
    from harness_cli.serving.control import read_job
    from harness_cli.serving.deploy.render import render as rendered
    from harness_cli.store.project import Project

    project = Project.find(directory)
    made, found = read_job(directory / job, project)
    text = rendered(made, target)
    if not quiet:
        warn(found)
    if output is not None:
        write_atomic(directory / output, text.encode())
        note(f"wrote {output}")
    if as_json:
        emit_json({"as": target, "file": None if output is None else str(output), "text": text})
    elif output is None:
        line(text.rstrip("\n"))
