"""A rendered prompt on the terminal, block by block."""

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.errors import UnknownName, UsageError
from harness_cli.evaluation.evalsets import load_header, load_world, names
from harness_cli.evaluation.finding import find_item
from harness_cli.harness.load import load_state
from harness_cli.harness.prompts import BlockPreview, preview, render
from harness_cli.harness.tokens import estimate
from harness_cli.harness.tools import offered
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.counting import counted
from harness_cli.records.item import Overlay
from harness_cli.records.request import Comment, Request, Room
from harness_cli.store.project import Project


@dataclass(frozen=True, slots=True)
class Asked:
    """Which prompt is wanted."""

    item: str | None
    comment: str | None
    evalset: str | None
    pipeline: str
    loaded: tuple[str, ...]
    rev: str | None


def show(asked: Asked, folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Blocks with their texts and ≈ tokens, then the messages' and tools' share."""
    project = Project.find(folder)
    state = load_state(project, asked.rev)
    for name in asked.loaded:
        if state.skill(name) is None:
            raise UnknownName.of("skill", name, [skill.name for skill in state.skills])
    request, world, overlay = _request(project, asked)
    settings = {
        "pipeline": asked.pipeline,
        "loaded": asked.loaded,
        "instructions": overlay.instructions,
    }
    blocks = preview(state, request, world, **settings)  # type: ignore[arg-type]
    messages = render(state, request, world, **settings)  # type: ignore[arg-type]
    tools = offered(state, overlay=overlay.tools)
    counts = {
        "messages": sum(estimate(m["content"]) for m in messages),
        "tools": estimate(json.dumps(tools, ensure_ascii=False)),
    }
    if as_json:
        emit_json(
            {
                "harness": state.id,
                "item": asked.item,
                "pipeline": asked.pipeline,
                "blocks": [msgspec.to_builtins(block) for block in blocks],
                "messages": messages,
                "tokens": {**counts, "total": sum(counts.values()), "exact": False},
            }
        )
        return
    if not quiet:
        for message in messages:
            line(f"── {message['role']} ──\n{message['content']}\n")
    table(["block", "role", "when", "shown", "tokens"], [_row(block) for block in blocks])
    line(f"messages ≈{counts['messages']} tokens, {counted(len(tools), 'tool')} ≈{counts['tools']}")
    note("≈ is an estimate: one token per CJK character, one per four others")


def _row(block: BlockPreview) -> list[str]:
    shown = "yes" if block.shown else "no"
    return [block.name, block.role, block.when or "always", shown, f"≈{block.tokens}"]


def _request(project: Project, asked: Asked) -> tuple[Request, Catalogue, Overlay]:
    if (asked.item is None) == (asked.comment is None):
        raise UsageError("name one of --item ID and --comment TEXT")
    if asked.item is not None:
        item, evalset = find_item(project, asked.item, asked.evalset)
        return item.request, evalset.world, item.overlay
    world = _any_world(project, asked.evalset)
    room = world.rooms[0] if world.rooms else None
    place = Room(id=room.id, current_link=1, products=room.products) if room else Room()
    return (
        Request(comments=(Comment(viewer="viewer", text=asked.comment or ""),), room=place),
        world,
        Overlay(),
    )


def _any_world(project: Project, evalset: str | None) -> Catalogue:
    for name in [evalset] if evalset else names(project):
        header = load_header(project, name)
        if header.catalogue is not None:
            return load_world(project, header)
    return Catalogue(snapshot="")
