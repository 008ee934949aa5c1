"""What `harness blind annotate` does with its options."""

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from harness_cli.commands._show import emit_json, interactive, line, note, plain
from harness_cli.errors import BadFile, NeedsPerson, UnknownName, UsageError
from harness_cli.evaluation.blind.annotations import (
    AnnotationLog,
    annotator_name,
    opened,
    read_annotations,
)
from harness_cli.evaluation.blind.make import SHEET, read_sheet
from harness_cli.evaluation.blind.spreadsheet import bring_in, export, tags_line
from harness_cli.evaluation.blind.terminal import Terminal
from harness_cli.evaluation.blind.terminal import annotate as ask_all
from harness_cli.records.blind import BlindSheet
from harness_cli.records.canonical import write_atomic
from harness_cli.store.project import Project


@dataclass(frozen=True, slots=True)
class Asked:
    """The options as they were given."""

    test: Path | None
    annotator: str | None
    page: bool
    port: int
    export_to: Path | None
    import_from: Path | None
    pairs: tuple[str, ...]


def find_test(project: Project, folder: Path | None) -> tuple[Path, BlindSheet]:
    """The test in a folder, else the newest of the project."""
    if folder is not None:
        return folder, read_sheet(folder)
    found = sorted((project.root / "blind").glob(f"*/{SHEET}"), key=lambda p: p.stat().st_mtime)
    if not found:
        raise BadFile(
            "there is no blind test in `blind/`",
            hint="`harness blind make BASELINE CANDIDATE` makes one",
        )
    return found[-1].parent, read_sheet(found[-1].parent)


def annotate_with(asked: Asked, directory: Path, *, as_json: bool, quiet: bool) -> None:
    """Export, import, serve or ask."""
    _check(asked)
    folder, sheet = find_test(Project.find(directory), asked.test)
    person = annotator_name(asked.annotator)
    for name in asked.pairs:
        if name not in {pair.id for pair in sheet.pairs}:
            raise UnknownName.of("pair", name, [pair.id for pair in sheet.pairs])
    if asked.export_to is not None:
        latest = read_annotations(folder).get(person, {})
        write_atomic(asked.export_to, export(sheet, latest).encode())
        if not quiet and not as_json:
            note(f"fill in `choice` (A, B, tie) and `reason`; `tag` is one of {tags_line()}")
    elif asked.page:
        _page(folder, person, asked.port, as_json=as_json, quiet=quiet)
        if as_json:  # the one document said where it is served
            return
    else:
        with opened(folder, sheet, person) as log:
            _decide(log, asked, folder, quiet=quiet or as_json)
    _tell(folder, sheet, person, as_json=as_json, quiet=quiet)


def _check(asked: Asked) -> None:
    ways = [
        name
        for name, given in (
            ("--export", asked.export_to is not None),
            ("--import", asked.import_from is not None),
            ("--page", asked.page),
            ("--pair", bool(asked.pairs)),
        )
        if given
    ]
    if len(ways) > 1:
        raise UsageError(f"{ways[0]} and {ways[1]} exclude each other")


def _decide(log: AnnotationLog, asked: Asked, folder: Path, *, quiet: bool) -> None:
    if asked.import_from is not None:
        new, empty = bring_in(log, asked.import_from)
        if not quiet:
            note(f"{new} decisions taken in, {empty} rows have none yet")
        return
    if not asked.pairs and not log.open_pairs():
        return
    if not interactive():
        raise NeedsPerson(
            f"{len(log.open_pairs())} pairs wait for a person",
            hint=f"at a terminal: harness blind annotate {folder}; or --page, or --export FILE",
        )
    ask_all(log, Terminal(say=lambda text: line(plain(text)), ask=_ask), asked.pairs)


def _ask(question: str) -> str:
    sys.stdout.write(question)
    sys.stdout.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError
    return answer


def _page(folder: Path, person: str, port: int, *, as_json: bool, quiet: bool) -> None:
    from harness_cli.evaluation.blind.page import serve

    def started(url: str) -> None:
        if as_json:
            emit_json({"url": url, "pid": os.getpid()})
        else:
            line(url)
            if not quiet:
                note("for this machine only; ^C ends it, every decision is kept")
        sys.stdout.flush()

    async def until_told() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, ended.set)
        await serve(folder, person, port, started, ended)

    asyncio.run(until_told())


def _tell(folder: Path, sheet: BlindSheet, person: str, *, as_json: bool, quiet: bool) -> None:
    """How far this person is."""
    latest = read_annotations(folder).get(person, {})
    waiting = sum(pair.id not in latest and not pair.identical for pair in sheet.pairs)
    if as_json:
        emit_json({"id": sheet.id, "annotator": person, "annotated": len(latest), "open": waiting})
    elif not quiet:
        note(f"{person}: {len(latest)} annotated, {waiting} open")
        if waiting == 0:
            note(f"next: harness blind report {folder}")
