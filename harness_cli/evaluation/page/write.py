"""One run as one file: a frame with the numbers, the table of items, the trajectories.

The page is streamed: the table and the trajectories are spooled to disk first, and what is kept in
memory is a few numbers an item.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import msgspec

from harness_cli.evaluation import comparison_text as compared
from harness_cli.evaluation import repeats
from harness_cli.evaluation import report as shown
from harness_cli.evaluation.judging_tally import judging_lines
from harness_cli.evaluation.metrics import ATTAINMENT_S
from harness_cli.evaluation.page import charts
from harness_cli.evaluation.page.chunks import embedded
from harness_cli.evaluation.page.located import JournalReader, Places
from harness_cli.evaluation.page.panel import panel, remarks
from harness_cli.evaluation.page.rows import Spooled, spool
from harness_cli.evaluation.page.subject import Subject
from harness_cli.evaluation.page.template import environment, shell
from harness_cli.evaluation.role_table import ROLE_COLUMNS, role_rows
from harness_cli.evaluation.summary import STATES
from harness_cli.records.canonical import atomic_file
from harness_cli.store.redact import Redactor

ROOM = 10_000_000
"""Bytes of a page, unless told otherwise."""
BLOCK = 1 << 20

Clean = Callable[[str], str]


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What `harness report` says of the file it made."""

    schema: int = 1
    file: str
    bytes: int
    run: str
    incumbent: str | None
    status: str
    items: int
    """Finished rollouts, each a row."""
    planned: int
    trajectories_left_out: int
    texts_shortened: int


def write_page(target: Path, subject: Subject, *, room: int = ROOM) -> Written:
    """Write the page whole or not at all.

    Raises `BadFile` for a damaged journal and `OSError`, under the name that was asked for, where
    the file cannot be written.
    """
    try:
        with atomic_file(target) as file:
            spooled = _stream(file, subject, room)
            size = file.tell()
    except OSError as exc:
        exc.filename, exc.filename2 = str(target), None  # not the temporary one's
        raise
    return Written(
        file=str(target),
        bytes=size,
        run=subject.run.id,
        incumbent=subject.incumbent.id if subject.incumbent else None,
        status=subject.status,
        items=spooled.items,
        planned=subject.report.planned,
        trajectories_left_out=spooled.left_out,
        texts_shortened=spooled.cut,
    )


def _stream(file: IO[bytes], subject: Subject, room: int) -> Spooled:
    clean = Redactor.from_environment().text
    with ExitStack() as stack:
        places = Places.of(subject.run)
        spooled = Spooled.empty(stack)
        if places.items:
            reader = stack.enter_context(JournalReader(subject.run, places))
            before = dict(subject.before)
            spooled = spool(reader, before=before, clean=clean, room=room, stack=stack)
        head, tail = _frame(subject, spooled, clean)
        file.write(head.encode())
        for part in _data(subject, spooled, clean):
            file.write(part)
        spooled.pieces.seek(0)
        shutil.copyfileobj(spooled.pieces, file, BLOCK)
        file.write(tail.encode())
        return spooled


def _data(subject: Subject, spooled: Spooled, clean: Clean) -> Iterator[bytes]:
    """`{"run": …, "items": […]}` in one script element."""
    about = {
        "run": subject.run.id,
        "repeats": subject.config.repeat,
        "metrics": shown.headline_metrics(subject.report),
        "planned": subject.report.planned,
        "left_out": spooled.left_out,
        "incumbent": subject.incumbent.id if subject.incumbent else None,
    }
    text = clean(msgspec.json.encode(about).decode())
    yield b'<script type="application/json" id="data">'
    yield embedded(text.encode())[:-1] + b',"items":['
    spooled.rows.seek(0)
    while block := spooled.rows.read(BLOCK):
        yield block
    yield b"\n]}</script>\n"


MARK = "\0data\0"


def _frame(subject: Subject, spooled: Spooled, clean: Clean) -> tuple[str, str]:
    """The page before and after its data."""
    page = (
        environment(clean)
        .get_template("report.html.j2")
        .render(**shell(), **_context(subject, spooled), data=MARK)
    )
    head, _, tail = page.partition(MARK)
    return head, tail


def _context(subject: Subject, spooled: Spooled) -> dict[str, Any]:
    from markupsafe import Markup

    report, found = subject.report, subject.comparison
    timing = report.timing if report.timing.get("fresh") else {}
    drawn = {
        "evolution": charts.evolution(subject.stages),
        "latency": charts.latency(
            spooled.walls if subject.config.fresh else (), bound_s=ATTAINMENT_S
        ),
        "differences": charts.differences(found.categories if found else ()),
    }
    return {
        "subject": subject,
        "report": report,
        "title": shown.title(report),
        "panel": panel(subject),
        "remarks": remarks(subject, spooled),
        "counts": {s: report.counts[s] for s in (*STATES, "missing") if s in report.counts},
        "metric_columns": shown.COLUMNS,
        "metric_rows": shown.metric_rows(report),
        "category_columns": shown.CATEGORY_COLUMNS,
        "category_rows": shown.category_rows(report, shown.headline_metrics(report)),
        "role_columns": ROLE_COLUMNS,
        "role_rows": role_rows(report),
        "repeat_lines": repeats.lines(report.repeats, shown.headline_metrics(report)),
        "judge_lines": judging_lines(report),
        "usage": shown.usage_line(report),
        "pass_line": shown.pass_line(report),
        "timing": timing,
        "incidents": {name: n for name, n in report.incidents.items() if n},
        "comparison": found,
        "delta_columns": compared.METRIC_COLUMNS,
        "delta_rows": compared.metric_rows(found) if found else (),
        "change_columns": compared.CATEGORY_COLUMNS,
        "change_rows": compared.category_rows(found) if found else (),
        "change_remarks": compared.remarks(found) if found else (),
        # Our own markup: `charts` escapes every text it is given.
        "charts": {name: Markup(svg) for name, svg in drawn.items()},
        "agreement": [
            (each, Markup(charts.confusion(each)))
            for each in (subject.agreement.metrics if subject.agreement else ())
        ],
        "spooled": spooled,
        "percent": charts.percent,
    }
