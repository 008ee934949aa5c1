"""`harness incidents`: guardrail hits, retries, fallbacks, suppressed replies by version."""

from collections import Counter, defaultdict
from typing import Annotated, Any

import typer

from harness_cli.commands._completing import evalset_names, run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def incidents(
    run: Annotated[
        list[str] | None,
        typer.Option(help="Only these runs; may be repeated.", autocompletion=run_ids),
    ] = None,
    evalset: Annotated[
        str | None, typer.Option(help="Only runs of this evalset.", autocompletion=evalset_names)
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What guardrails caught and what had to be repaired, by harness and policy version."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    store = RunStore(Project.find(directory).runs)
    chosen = [store.get(name) for name in run] if run else store.list()
    counted: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    rollouts: Counter[tuple[str, str]] = Counter()
    for folder in chosen:
        config = folder.config()
        if evalset not in (None, config.evalset.name) or not folder.report_file.exists():
            continue
        report = folder.report()
        version = (config.harness_id[:12], config.policy_id)
        counted[version].update(report.incidents)
        rollouts[version] += report.planned - report.counts["missing"]
    rows = _rows(counted, rollouts)
    if as_json:
        emit_json({"incidents": rows})
    elif not rows:
        line("no incidents in these runs")
    elif not quiet:
        columns = ("harness", "policy", "incident", "count", "rollouts", "per_100")
        table(columns, [[row[c] for c in columns] for row in rows])


def _rows(
    counted: dict[tuple[str, str], Counter[str]], rollouts: Counter[tuple[str, str]]
) -> list[dict[str, Any]]:
    return [
        {
            "harness": harness,
            "policy": policy,
            "incident": incident,
            "count": count,
            "rollouts": rollouts[harness, policy],
            "per_100": round(100 * count / rollouts[harness, policy], 2),
        }
        for (harness, policy), incidents in sorted(counted.items())
        for incident, count in sorted(incidents.items())
        if count and rollouts[harness, policy]
    ]
