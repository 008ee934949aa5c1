"""`harness export otel`: trajectories as OpenTelemetry traces."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness_cli.commands._completing import run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within
from harness_cli.records.counting import counted


def otel(
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="ID", help="Default: the newest complete run.", autocompletion=run_ids
        ),
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(metavar="LOG", help="Serving logs, or folders of them, instead of a run."),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="OTEL_EXPORTER_OTLP_ENDPOINT",
            help="A collector's HTTP port; headers are in OTEL_EXPORTER_OTLP_HEADERS.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="OTLP JSON, a request a line."),
    ] = None,
    protocol: Annotated[
        Literal["http/protobuf", "http/json"],
        typer.Option(envvar="OTEL_EXPORTER_OTLP_PROTOCOL", help="How it is encoded on the wire."),
    ] = "http/protobuf",
    content: Annotated[
        bool, typer.Option("--content", help="What was said, called and answered as well.")
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """OpenTelemetry traces in the names of the GenAI conventions, to a collector or a file."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.errors import UsageError
    from harness_cli.evaluation.exports.otel import of_logs, of_run, send, write_file
    from harness_cli.evaluation.exports.otlp import Collector
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore
    from harness_cli.store.served import BadLine, served_logs

    if output is None and endpoint is None:
        raise UsageError("where to: --endpoint URL or -o FILE", hint="http://127.0.0.1:4318")
    if run and log:
        raise UsageError("a run or serving logs, not both")
    bad: list[BadLine] = []
    if log:
        named = [path for one in log if (path := within(directory, one))]
        rollouts = of_logs(served_logs(Project.find(directory).root, named), bad)
    else:
        store = RunStore(Project.find(directory).runs)
        rollouts = of_run(store.get(run) if run else store.newest())
    path = within(directory, output)
    if path is not None:
        sent, where = write_file(rollouts, path, content=content), str(path)
    else:
        collector = Collector(str(endpoint), protocol)
        sent, where = send(rollouts, collector, content=content), collector.url
    for place, problem in bad:
        note(f"warning: {place}: {problem}")
    if as_json:
        emit_json({"format": "otel", "to": where, "sent": sent, "bad_lines": len(bad)})
    elif not quiet:
        line(f"{where}: {counted(sent.rollouts, 'rollout')}, {counted(sent.spans, 'span')}")
    if sent.rejected:
        note(f"error: the collector rejected {counted(sent.rejected, 'span')}")
        raise typer.Exit(1)
