"""`harness run`: one request through the agent, step by step; an item; or a live room."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness_cli.commands._completing import channel_names, item_ids, policy_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within
from harness_cli.records.counting import counted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness_cli.records.catalogue import Catalogue
    from harness_cli.records.item import Item
    from harness_cli.records.request import Request
    from harness_cli.records.trajectory import Trajectory
    from harness_cli.release.serves import Serves
    from harness_cli.runtime.agent import Agent
    from harness_cli.store.project import Project

CHAT_WINDOW_S = 1.5
"""Shorter than a room's window: who types at a terminal waits for the answer."""
app = typer.Typer(rich_markup_mode=None)


@app.command()
def run(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="A viewer's comment.")] = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="ID", help="An item of an evalset instead.", autocompletion=item_ids),
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="A live room: comments line by line.")] = (
        False
    ),
    agent: Annotated[
        Literal["harness", "react", "bare"], typer.Option(help="What answers.")
    ] = "harness",
    policy: Annotated[
        str | None, typer.Option(help="Policy of harness.yaml.", autocompletion=policy_names)
    ] = None,
    room: Annotated[str | None, typer.Option(help="Live room; default: the first.")] = None,
    private: Annotated[bool, typer.Option("--private", help="A private message.")] = False,
    channel: Annotated[
        str | None,
        typer.Option(
            help="What this channel serves, not the working files.", autocompletion=channel_names
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append each answered request to a serving log."),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One request through the agent: the steps as they happen, then the reply."""
    import asyncio

    from harness_cli.errors import UsageError
    from harness_cli.store.project import Project

    if sum((text is not None, item is not None, chat)) != 1:
        raise UsageError("one of TEXT, --item ID and --chat is needed")
    project = Project.find(directory)
    asked = _asked(project, text, item, room, private=private)
    write = _writer(within(directory, log))
    serves = _serves(project, channel, policy)
    done = asyncio.run(_run(project, asked, agent, serves, chat=chat, show=not quiet, write=write))
    if done is None:
        return
    _show(done, as_json=as_json, quiet=quiet)
    if done.errored:
        raise typer.Exit(1)


def _asked(
    project: "Project", text: str | None, item_id: str | None, room: str | None, *, private: bool
) -> "tuple[Request, Catalogue, Item | None]":
    """The request, the world it is about, and the item it comes from."""
    from harness_cli.errors import UnknownName
    from harness_cli.evaluation.finding import find_item
    from harness_cli.records.request import Comment, Request, Room
    from harness_cli.store.catalogue import read_catalogue

    if item_id is not None:
        found, evalset = find_item(project, item_id)
        return found.request, evalset.world, found
    world = read_catalogue(project.evalsets / "catalogue")
    known = world.room(room) if room else next(iter(world.rooms), None)
    if room and known is None:
        raise UnknownName.of("room", room, [r.id for r in world.rooms])
    place = Room(id=known.id, products=known.products, current_link=1) if known else Room()
    comments = () if text is None else (Comment(viewer="viewer", text=text, at=0.0),)
    channel: Literal["private", "public"] = "private" if private else "public"
    return Request(channel=channel, comments=comments, room=place), world, None


async def _run(
    project: "Project",
    asked: "tuple[Request, Catalogue, Item | None]",
    kind: Literal["harness", "react", "bare"],
    serves: "Serves",
    *,
    chat: bool,
    show: bool,
    write: "Callable[[Trajectory], Awaitable[None]]",
) -> "Trajectory | None":
    """Open the agent under the production bounds and play the request, or the room."""
    from harness_cli.commands._steps import show_seen
    from harness_cli.evaluation.agents import for_item, open_agent
    from harness_cli.harness.load import load_state
    from harness_cli.runtime.loop import rollout
    from harness_cli.serving.rooms import open_room

    request, world, item = asked
    state = load_state(project, serves.commit)
    observe = show_seen if show else None
    opened = open_agent(project, state, serves.policy, world=world, profile="production", kind=kind)
    async with opened as agent:
        serves.check(agent.policy.id, agent.state.id)
        await _warm_up(agent)
        if chat:
            about = {"policy_id": agent.policy.id, "harness_id": agent.state.id}
            name = request.room.id or "room"
            with open_room(project.root, name=name, channel=serves.channel, **about):
                await _chat(agent, request, world, observe, write)
            return None
        if item is not None:
            agent = for_item(agent, item)
        done = await rollout(
            request,
            agent,
            request_id=item.id if item else "run",
            item_id=item.id if item else None,
            observe=observe,
        )
        await write(done)
        return done


def _serves(project: "Project", channel: str | None, policy: str | None) -> "Serves":
    """What is run: the working files, or what both switches of a channel select."""
    from harness_cli.errors import UsageError
    from harness_cli.release.serves import Serves, served_by

    if channel is None:
        return Serves(policy=policy)
    if policy is not None:
        raise UsageError("a channel names its policy: --policy is for the working files")
    return served_by(project, channel)


def _writer(log: Path | None) -> "Callable[[Trajectory], Awaitable[None]]":
    """What keeps a rollout: nothing, or a line of a serving log, written beside the loop."""
    import asyncio

    from harness_cli.store.served import append_served

    async def write(done: "Trajectory") -> None:
        if log is not None:
            await asyncio.to_thread(append_served, log, done)

    return write


async def _warm_up(agent: "Agent") -> None:
    """Start what a service has running before it takes requests: it is no part of their time."""
    import asyncio

    from harness_cli.commands._show import note
    from harness_cli.errors import RolloutError

    starts = [
        getattr(agent.executors.get("mcp"), "start", None),
        getattr(agent.policy, "warm", None),
    ]
    done = await asyncio.gather(*(s() for s in starts if s is not None), return_exceptions=True)
    for outcome in done:
        if isinstance(outcome, BaseException) and not isinstance(outcome, RolloutError):
            raise outcome
        for error in outcome if isinstance(outcome, list) else filter(None, [outcome]):
            note(f"warning: {error}")


async def _chat(
    agent: "Agent",
    base: "Request",
    world: "Catalogue",
    observe: Any,
    write: "Callable[[Trajectory], Awaitable[None]]",
) -> None:
    """A live room at the terminal, or on a pipe."""
    from harness_cli.commands._show import interactive, line, note, plain
    from harness_cli.runtime.aggregate import Group
    from harness_cli.runtime.live_room import LiveRoom
    from harness_cli.runtime.loop import rollout

    count = 0

    async def answer(request: "Request", group: Group) -> "Trajectory":
        nonlocal count
        count += 1
        said = " / ".join(c.text for c in group.comments)
        note(f"[{group.topic}{f' {group.product}' if group.product else ''}] {said}")
        done = await rollout(request, agent, request_id=f"chat-{count}", observe=observe)
        private = " (private)" if done.channel == "private" else ""
        line(f"host{private}: {plain(done.reply) or '(silent)'}")
        await write(done)
        return done

    if interactive():
        note("comments, one a line; `name: text` names a viewer; /link N, /host TEXT, /quit")
    await LiveRoom(base, world, window_s=CHAT_WINDOW_S).play(_lines(), answer)


async def _lines() -> AsyncIterator[str]:
    """Lines of stdin as they come, without holding up the room."""
    import asyncio
    import sys

    while text := await asyncio.to_thread(sys.stdin.readline):
        yield text


def _show(done: "Trajectory", *, as_json: bool, quiet: bool) -> None:
    import msgspec

    from harness_cli.commands._show import emit_json, line, note, plain
    from harness_cli.store.redact import redact_value

    if as_json:
        emit_json(redact_value(msgspec.to_builtins(done)))
        return
    line(plain(done.reply))
    if not quiet:
        note(
            f"{done.stop} by the {done.route} route, {counted(len(done.steps), 'model call')}, "
            f"{len(done.calls)} tool calls, {done.wall_s:.2f} s"
            + (f": {plain(done.error)}" if done.error else "")
        )
