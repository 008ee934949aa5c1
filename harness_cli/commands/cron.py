"""`harness cron -- VERB …`: a verb with a lock, a maximum runtime and a last-success file."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

app = typer.Typer(rich_markup_mode=None)
AS_IT_STANDS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""What comes behind the verb is the verb's."""


@app.command(context_settings=AS_IT_STANDS)
def cron(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- VERB [ARGUMENT]…", help="A command of this program."),
    ] = None,
    if_locked: Annotated[
        Literal["skip", "wait", "fail"],
        typer.Option(help="Where the same job still runs: exit 0, wait, or exit 12."),
    ] = "fail",
    lock: Annotated[
        str | None, typer.Option(metavar="NAME", help="Jobs of one name exclude each other.")
    ] = None,
    max_runtime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="90s, 15m, 3h: then TERM, later KILL, and exit 13."),
    ] = None,
    last_success: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Written after exit 0, and only then: when and what."),
    ] = None,
    younger_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Run nothing; exit 12 where that success is older."),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A verb as a job: locked, bounded, without a terminal, its last success on record.

    Exits with the verb's own code; 13 when the time ran out, 12 when it is locked.
    """
    from datetime import UTC, datetime

    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.errors import UsageError
    from harness_cli.loop.cron import (
        Job,
        check_success,
        lock_path,
        refuse_words,
        run_job,
        words_of,
    )
    from harness_cli.store.project import Project

    path = within(directory, last_success)
    asked = [word for n, word in enumerate(words or ()) if n or word != "--"]
    if younger_than is not None:
        if path is None or asked:
            raise UsageError(
                "--younger-than looks at a --last-success FILE, and runs no verb",
                hint="harness cron --last-success FILE --younger-than 26h",
            )
        age = check_success(path, _seconds("--younger-than", younger_than), datetime.now(UTC))
        if as_json:
            emit_json({"last_success": str(path), "age_s": round(age.total_seconds())})
        elif not quiet:
            line(f"the last success was {words_of(age)} ago")
        return
    refuse_words(asked)
    root = Project.find(directory).root
    job = Job(
        words=tuple(asked),
        folder=directory.resolve(),
        lock=lock_path(root, lock or asked[0]),
        if_locked=if_locked,
        max_s=_seconds("--max-runtime", max_runtime) if max_runtime else None,
        last_success=path,
        quiet_stdout=as_json,
    )
    done = run_job(job)
    if as_json:
        emit_json(done)
    elif done.state in ("skipped", "max_runtime") and not quiet:
        note(f"{done.command}: {done.state} after {done.seconds:.0f} s")
    if done.exit_code:
        raise typer.Exit(done.exit_code)


def _seconds(option: str, text: str) -> float:
    from harness_cli.errors import UsageError
    from harness_cli.records.durations import seconds_of

    found = seconds_of(text)
    if not found:
        raise UsageError(f"{option} takes no `{text}`", hint="90s, 15m, 3h, 7d")
    return float(found)
