"""`harness runs list|show|prune`."""

from typing import Annotated, Any

import typer

from harness_cli.commands._completing import evalset_names, run_ids
from harness_cli.commands._groups import DEFAULT, DefaultGroup
from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.records.counting import counted

app = typer.Typer(cls=DefaultGroup, rich_markup_mode=None, help="List, show, prune runs.")


@app.command(name=DEFAULT, hidden=True)
@app.command(name="list")
def list_runs(
    evalset: Annotated[
        str | None, typer.Option(help="Only runs of this evalset.", autocompletion=evalset_names)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The newest N.")] = 20,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The newest runs: what was asked and how far it came."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    store = RunStore(Project.find(directory).runs)
    rows = [row for run in store.list() if evalset in (None, (row := _row(run))["evalset"])][:limit]
    if as_json:
        emit_json({"runs": rows})
    elif quiet:
        for row in rows:
            line(row["id"])
    else:
        columns = ("id", "evalset", "split", "policy", "harness", "status", "passed", "of")
        table(columns, [[row[c] for c in columns] for row in rows])


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A run's id, its beginning, or `latest`.", autocompletion=run_ids)
    ] = "latest",
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What was asked and what came of it."""
    from harness_cli.commands._recorded import show_run

    show_run(name, directory, as_json=as_json, quiet=quiet)


@app.command()
def prune(
    keep: Annotated[int, typer.Option(min=0, help="Keep the newest N runs.")] = 20,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Drop old runs and their refs/harness/runs/*; never the evidence of a live manifest."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.evaluation import prune as pruning
    from harness_cli.store.project import Project

    project = Project.find(directory)
    pruned = pruning.prunable(project, keep=keep, protected=_evidence(project))
    if not dry_run:
        pruning.prune(project, pruned)
    if as_json:
        emit_json(
            {
                "dry_run": dry_run,
                "runs": [run.id for run in pruned.runs],
                "refs": pruned.refs,
                "kept": [{"run": run, "reason": reason} for run, reason in pruned.kept],
            }
        )
        return
    if not quiet:
        for run, reason in pruned.kept:
            line(f"kept {run}: {reason}")
    word = "would drop" if dry_run else "dropped"
    line(f"{word} {counted(len(pruned.runs), 'run')} and {counted(len(pruned.refs), 'ref')}")


def _row(run: Any) -> dict[str, Any]:
    config = run.config()
    report = run.report() if run.report_file.exists() else None
    return {
        "id": run.id,
        "evalset": config.evalset.name,
        "split": config.evalset.split,
        "policy": config.policy_id,
        "harness": config.harness_id[:12] + (" dirty" if config.dirty else ""),
        "status": run.status(),
        "passed": report.counts["passed"] if report else None,
        "of": report.planned if report else _planned(config),
    }


def _planned(config: Any) -> int:
    n: int = config.evalset.n
    return (n if config.limit is None else min(n, config.limit)) * int(config.repeat)


def _evidence(project: Any) -> set[str]:
    """Runs that a manifest rests on which a channel serves now."""
    from harness_cli.release.channels import list_channels, read_manifest

    served = {
        name
        for channel in list_channels(project.manifests)
        for name in (channel.policy, channel.harness)
        if name
    }
    manifests = (read_manifest(project.manifests, name) for name in served)
    return {evidence.run for m in manifests for evidence in m.predicate.evidence}
