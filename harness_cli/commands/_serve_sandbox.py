"""`harness serve sandbox`: the simulator's rooms for rollout workers elsewhere on this machine."""

from typing import Annotated

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.records.counting import counted


def sandbox(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    harness: Annotated[
        str | None, typer.Option(metavar="REV", help="A revision; default: the working files.")
    ] = None,
    sessions: Annotated[int, typer.Option(min=1, help="The most that are open at a time.")] = 1000,
    idle: Annotated[
        float, typer.Option(metavar="SECONDS", help="A session not used for so long is closed.")
    ] = 600.0,
    life: Annotated[
        float, typer.Option(metavar="SECONDS", help="The longest that a session lives.")
    ] = 3600.0,
    step: Annotated[
        float, typer.Option(metavar="SECONDS", help="The longest that one action takes.")
    ] = 60.0,
    rewards: Annotated[
        bool, typer.Option("--rewards/--no-rewards", help="Score what is answered.")
    ] = True,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The simulator over HTTP on loopback, until ^C or SIGTERM; every session is closed then.

    The bearer token is HARNESS_SANDBOX_TOKEN; a fresh one is made and told where that is not set.
    """
    import asyncio
    import json
    import os

    from harness_cli.commands._show import line, note
    from harness_cli.simulator.rooms import open_rooms
    from harness_cli.simulator.server import TOKEN, Sandbox, serve, token_of
    from harness_cli.simulator.sessions import bounds_of

    bounds = bounds_of(sessions=sessions, idle_s=idle, whole_s=life, step_s=step)
    rooms = open_rooms(directory, rev=harness, rewards=rewards)
    token, own = token_of(), bool(os.environ.get(TOKEN))

    def ready(url: str) -> None:
        if as_json:
            # One line, for whoever reads it while the process goes on.
            said = {"url": url, "token": None if own else token, "pid": os.getpid()}
            line(json.dumps(said))
            return
        line(url)
        if not own:
            note(f"export {TOKEN}={token}")
        if not quiet:
            note(f"at most {sessions} sessions; ^C ends it")

    hosted = Sandbox(rooms, token, bounds)
    closed = asyncio.run(serve(hosted, port, ready=ready))
    if not (quiet or as_json):
        were = "was" if closed == 1 else "were"
        note(f"ended: {counted(closed, 'open session')} {were} closed")
