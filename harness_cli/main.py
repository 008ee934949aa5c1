"""The program: parse, call one function, turn errors into exit codes. Nothing else does that."""

import os
import sys
import time
import traceback
from typing import NoReturn

import typer

from harness_cli.commands._lazy import COMPLETING, EPILOG, LazyGroup, listen
from harness_cli.commands._surroundings import reader_left, stand_in_streams, system_failure
from harness_cli.errors import HarnessError

BUG = 70

app = typer.Typer(
    cls=LazyGroup,
    help="Run, evaluate, diagnose, edit, gate and promote the harness of an LLM agent.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def version(show: bool) -> None:
    """Print the version and end (`--version --json` prints an object)."""
    if show:
        from harness_cli.commands.version import show_version

        show_version(as_json="--json" in sys.argv)
        raise typer.Exit


@app.callback()
def root(
    show_version: bool = typer.Option(
        False, "--version", help="Show the version and end.", callback=version, is_eager=True
    ),
    as_json: bool = typer.Option(False, "--json", hidden=True, help="With --version: as JSON."),
    verbosity: int = typer.Option(
        0, "-v", "--verbose", count=True, callback=listen, help="Events as JSON lines on stderr."
    ),
) -> None:
    """Run, evaluate, diagnose, edit, gate and promote the harness of an LLM agent."""


def main() -> None:
    """The console script `harness`."""
    if sys.platform == "win32":
        sys.stderr.write("error: harness runs on Linux and macOS\n\nhint: use WSL\n")
        raise SystemExit(2)
    stand_in_streams()
    began = time.monotonic()
    try:
        run()
    except SystemExit as end:
        log_end(end.code, time.monotonic() - began)
        raise


def run() -> None:
    """The program, its errors as messages and exit codes. Always ends in `SystemExit`."""
    try:
        prepare()
        app()
    except SystemExit:
        if reader_left():
            raise SystemExit(0) from None
        raise
    except HarnessError as exc:
        refuse(exc)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader of our output went away (`harness … | head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as exc:
        failure = system_failure(exc)
        if failure is None:
            report_bug(exc)
            raise SystemExit(BUG) from None
        refuse(failure)
    except Exception as exc:  # noqa: BLE001  the one place where a bug becomes an exit code
        report_bug(exc)
        raise SystemExit(BUG) from None


def prepare() -> None:
    """What the environment asks for before a verb runs."""
    if COMPLETING in os.environ:
        from harness_cli.commands._completing import plain_descriptions

        plain_descriptions()
    elif os.environ.get("HARNESS_LOG"):
        from harness_cli.store.logs import start_logs

        start_logs()


def refuse(error: HarnessError) -> NoReturn:
    """What went wrong, what to do, and the exit code."""
    from harness_cli.commands._show import plain

    sys.stderr.write(f"error: {plain(str(error))}\n")
    if error.hint:
        sys.stderr.write(f"\nhint: {plain(error.hint)}\n")
    raise SystemExit(error.exit_code) from error


def log_end(code: object, seconds: float) -> None:
    """The last line of the log, when there is one: what was asked, how it ended, why."""
    logs = sys.modules.get("harness_cli.store.logs")
    if logs is None:
        return
    error = sys.exc_info()[1]
    logs.ended(sys.argv[1:], code, seconds, error.__cause__ if error else None)


def report_bug(exc: Exception) -> None:
    """Traceback to stderr and to a report file under the state folder."""
    from harness_cli.store.state import write_bug_report

    text = "".join(traceback.format_exception(exc))
    sys.stderr.write(text)
    try:
        kept = f"the file {write_bug_report(text)}"
    except (OSError, HarnessError):
        kept = "the lines above"
    sys.stderr.write(f"\nerror: a bug in harness: {type(exc).__name__}\n")
    sys.stderr.write(f"\nhint: please report it with {kept}\n")


if __name__ == "__main__":
    main()
