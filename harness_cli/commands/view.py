"""`harness view`: runs and their reports in a browser, on this machine only."""

from typing import Annotated

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command(name="view")
def view(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0 takes a free one.")
    ] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page.")] = False,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Serve the runs, their reports and blind annotation to your own browser; ^C ends it.

    Prints the address, which holds a key: whoever has it on this machine can look.
    """
    import asyncio
    import os

    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.loop.view.serve import serve
    from harness_cli.store.project import Project

    project = Project.find(directory)

    def started(url: str, number: int) -> None:
        if as_json:
            emit_json({"url": url, "port": number, "pid": os.getpid()})
        else:
            line(url)
        if not quiet and not as_json:
            note("for this machine only; ^C ends it")
        if open_browser:
            import webbrowser

            webbrowser.open(url)

    asyncio.run(serve(project, port, started))
