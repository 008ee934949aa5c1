"""What `harness serve` shows of a job: its command lines, how it stands."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_cli.commands._show import emit_json, line, note, table

if TYPE_CHECKING:
    from harness_cli.harness.findings import Finding
    from harness_cli.records.serve_job import Live, ServeJob
    from harness_cli.serving.standing import Standing
    from harness_cli.store.project import Project


def is_job_file(name: str | None, directory: Path) -> bool:
    """The word names a job file and no policy."""
    return name is not None and (name.endswith((".yaml", ".yml")) or (directory / name).is_file())


def serve_job(
    project: "Project",
    path: Path,
    port: int | None,
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """`serve up JOB.yaml`: check, and start unless it is a dry run."""
    import msgspec

    from harness_cli.records.counting import counted
    from harness_cli.serving.control import read_job, up

    job, found = read_job(path, project)
    if port is not None:
        job = msgspec.structs.replace(job, port=port)
    if not quiet:
        warn(found)
    if dry_run:
        show_commands(job, project.root, found, as_json=as_json)
        return
    live, fresh = up(project, job)
    if as_json:
        emit_json({"live": live, "started": fresh})
        return
    line(live.url)
    if not quiet:
        said = "is served" if fresh else "was served already"
        note(f"`{job.name}` ({job.engine}, {counted(len(live.replicas), 'replica')}) {said}")
        note(f"end it with: harness serve down {job.name} · harness serve status shows it")


def warn(found: "list[Finding]") -> None:
    """The warnings of a job that serves all the same."""
    for finding in found:
        note(f"warning: {finding.message}" + (f": {finding.fix}" if finding.fix else ""))


def show_commands(job: "ServeJob", root: Path, found: "list[Finding]", *, as_json: bool) -> None:
    """The exact command lines; ports that are taken at the start stand as 0."""
    from harness_cli.serving.launch import replica_launch
    from harness_cli.serving.router import router_words

    sha256 = job.checkpoint.sha256 if job.checkpoint else None
    port = 0 if job.router.use else job.port
    launches = [
        replica_launch(job, root, number=n, model=job.model, sha256=sha256, port=port)
        for n in range(job.replicas)
    ]
    router = router_words(job, port=0, metrics_port=0) if job.router.use else None
    if as_json:
        replicas = [{"words": x.words, "env": x.env} for x in launches]
        emit_json({"job": job, "replicas": replicas, "router": router, "findings": found})
        return
    import shlex

    for launch in launches:
        line(launch.shell())
    if router is not None:
        line(shlex.join(router))


def show_standings(found: "list[Standing]", *, quiet: bool) -> None:
    """One row a job, then what is not as desired."""
    if quiet:
        for standing in found:
            if standing.live is not None:
                line(standing.live.url)
        return
    rows = []
    for standing in found:
        live, desired = standing.live, standing.desired
        ready = sum(r.state == "ready" for r in live.replicas) if live else 0
        rows.append(
            (
                standing.name,
                standing.state,
                live.url if live else "",
                f"{ready} of {desired.replicas}",
                desired.job.engine,
                (live.model if live else desired.model) or "",
                (desired.checkpoint_sha256 or "")[:12],
            )
        )
    table(("job", "state", "url", "ready", "engine", "weights", "digest"), rows)
    for standing in found:
        for text in _remarks(standing):
            note(f"{standing.name}: {text}")


def _remarks(standing: "Standing") -> list[str]:
    remarks = list(standing.differs)
    if standing.orphans:
        pids = ", ".join(map(str, standing.orphans))
        remarks.append(f"its supervisor is gone, processes {pids} are not: harness serve down")
    live = standing.live
    if live is not None:
        remarks += [f"replica {r.number}: {r.error}" for r in live.replicas if r.error]
        if live.error:
            remarks.append(live.error)
    return remarks


def job_log(root: Path, name: str, of: str | None) -> Path:
    """The log of one process of a job; the newest replica's where none is named, a running one's
    before those that earlier ones left."""
    from harness_cli.errors import UnknownName
    from harness_cli.serving.job_folder import JobFolder

    if of is None:
        return replica_logs(root, name)[-1]
    folder = JobFolder.of(root, name)
    known = sorted(path.stem for path in folder.path.glob("*.log"))
    if of not in known:
        raise UnknownName.of("log", of, known)
    return folder.log(of)


def replica_logs(root: Path, name: str) -> list[Path]:
    """The log of every replica of a job, in their order: of those that run where any does, else
    of those that earlier ones left. The supervisor's where there is none at all."""
    from harness_cli.errors import UnknownName
    from harness_cli.serving.job_folder import JobFolder

    folder = JobFolder.of(root, name)
    live = folder.live()
    running = {Path(r.log).stem for r in live.replicas} if live is not None else set()
    known = [path.stem for path in folder.path.glob("replica-*.log")]
    chosen = [stem for stem in known if stem in running] or known
    chosen.sort(key=lambda stem: int(stem.rpartition("-")[2]))
    if not chosen and not folder.log("supervisor").is_file():
        raise UnknownName.of("log", "supervisor", [])
    return [folder.log(stem) for stem in chosen or ["supervisor"]]


def only_served(root: Path) -> str:
    """The name of the one policy or job that is served. Raises `UsageError` for none or several."""
    from harness_cli.errors import UsageError
    from harness_cli.serving.job_folder import job_names
    from harness_cli.serving.jobs import jobs

    known = sorted({*job_names(root), *(job.name for job, _ in jobs(root))})
    if len(known) == 1:
        return known[0]
    raise UsageError(
        "no policy is served" if not known else "several policies are served",
        hint="harness serve up" if not known else f"name one: {', '.join(known)}",
    )


def policy_log(root: Path, name: str) -> Path:
    """The log of a served policy, or of one that was. Raises `UnknownName`."""
    from harness_cli.serving.jobs import job_named, job_paths

    if not (path := job_paths(root, name).log).is_file():
        return job_paths(root, job_named(root, name).name).log
    return path


def follow_log(path: Path) -> None:
    """Every further line of a log, until ^C."""
    import time

    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(0, 2)
        while True:
            if text := file.readline():
                line(text.rstrip("\n"))
                continue
            if path.stat().st_size < file.tell():
                file.seek(0)  # it was rotated: cut, and begun anew
            time.sleep(0.2)


def has_job(root: Path, name: str) -> bool:
    """A job of that name left logs here."""
    from harness_cli.serving.job_folder import shelf

    return (shelf(root) / name).is_dir()


def show_switched(live: "Live", *, as_json: bool, quiet: bool) -> None:
    """After `serve switch`."""
    if as_json:
        emit_json({"live": live})
    elif not quiet:
        rows: list[tuple[Any, ...]] = [(r.number, r.state, r.model, r.url) for r in live.replicas]
        table(("replica", "state", "weights", "url"), rows)
