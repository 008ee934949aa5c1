"""`harness log`: the evolution record of the project."""

from typing import Annotated

import typer

from harness_cli.commands._completing import evalset_names, policy_names, split_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def log(
    evalset: Annotated[
        str,
        typer.Option(help="The evalset the stages are measured on.", autocompletion=evalset_names),
    ] = ("live_stream_qa"),
    split: Annotated[
        str | None, typer.Option(help="Its split.", autocompletion=split_names)
    ] = "dev",
    policy: Annotated[
        str | None, typer.Option(help="The policy that is held fixed.", autocompletion=policy_names)
    ] = None,
    chart: Annotated[bool, typer.Option("--chart", help="Draw the trajectory.")] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Stage, changes, Acc., Eff., diagnosis, selected."""
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.loop.record import evolution_record
    from harness_cli.store.project import Project

    project = Project.find(directory)
    rows, advice = evolution_record(project, evalset=evalset, split=split, policy=policy)
    if as_json:
        emit_json({"stages": rows, "advice": advice})
        return
    if not rows:
        line(f"no complete run of {evalset} yet")
        return
    table(
        ["stage", "Acc.", "Eff.", "n", "promised", "changes", "diagnosis", "selected"],
        [
            [
                r.stage,
                percent(r.scores.get("accuracy")),
                percent(r.scores.get("effectiveness")),
                r.n,
                None if r.promised is None else f"{r.came} of {r.promised}",
                "; ".join(r.changes)[:160],
                r.diagnosis,
                " ".join(
                    word
                    for word, holds in (
                        ("selected", r.stage == advice.selected),
                        ("served", r.served),
                    )
                    if holds
                ),
            ]
            for r in rows
        ],
    )
    if chart:
        from harness_cli.loop.chart import draw

        line(
            draw([(r.stage, r.scores.get("accuracy"), r.scores.get("effectiveness")) for r in rows])
        )
    if not quiet:
        note(f"advice: {advice.action}: {'; '.join(advice.reasons)}")


def percent(value: float | None) -> str:
    """A share as the report's tables show it."""
    return "–" if value is None else f"{100 * value:.2f}"
