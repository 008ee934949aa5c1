"""From a journal to the two reports, in one pass over the items and in memory that hardly grows.

`report.canonical.json` has a line an item, sorted, then everything that follows from the items; no
clock, pid, run id or latency is in it, so two runs that did the same have the same bytes.
`report.json` has the numbers with timing; the items stay in the journal (`RunFolder.results`).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import IO, Any

import msgspec

from harness_cli.evaluation.item_tally import Tally
from harness_cli.evaluation.part_sums import Whole
from harness_cli.evaluation.repeats import RepeatTally
from harness_cli.evaluation.timing import CallTimes, item_timing
from harness_cli.records.canonical import atomic_file, canonical_json, write_json
from harness_cli.records.journal import ItemRecord
from harness_cli.records.run import Report, RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.trials import pass_hat_k
from harness_cli.store.journal import scan
from harness_cli.store.runs import Place, RunFolder

STATES = ("passed", "failed", "unscored", "errored")
UNBOUND = ("id", "started", "command", "harness_ref", "rescored_of")
"""Fields of `run.json` that name this run rather than what was asked."""

_sorted = msgspec.json.Encoder(order="sorted").encode


def write_reports(
    folder: RunFolder,
    *,
    planned: int,
    status: str,
    metrics: Sequence[str],
    timing: dict[str, Any] | None = None,
    places: Sequence[Place] | None = None,
    whole: Whole | None = None,
) -> Report:
    """Read the journal, write both reports, return the second.

    `places` are those of a journal without model calls that was just written: it is not scanned.
    `whole` is what its items add up to, where that is known: then they are not read again.
    """
    config = folder.config()
    repeats = RepeatTally.of_run(config)
    walls: list[float | None] = []
    with atomic_file(folder.canonical) as file:
        file.write(b'{"items":[')
        if whole is None:
            records = _by_item(folder.item_records(places))
            categories = _read(records, file, config, repeats, walls)
        else:
            categories = whole.categories()
            _write(file, whole.lines())
        report = _report(config, categories, planned=planned, status=status, order=metrics)
        report = msgspec.structs.replace(report, repeats=repeats.summary(planned))
        file.write(b"\n],\n" + _rest(report))
    calls = CallTimes.of(scan(folder.journal) if places is None else ())
    report = msgspec.structs.replace(
        report,
        timing={**(timing or {}), **calls.timing(walls, fresh=config.fresh)},
        incidents={**report.incidents, **calls.incidents()},
    )
    write_json(folder.report_file, report)
    return report


def _read(
    items: Iterator[list[ItemRecord]],
    file: IO[bytes],
    config: RunConfig,
    repeats: RepeatTally,
    walls: list[float | None],
) -> dict[str, Tally]:
    """Write the line of every result, add each item up; the tallies of the categories."""
    categories: dict[str, Tally] = {}

    def lines() -> Iterator[bytes]:
        for records in items:
            results = [record.result for record in records]
            repeats.add(results)
            part = categories.setdefault(results[0].category, Tally())
            part.add(results, repeats=config.repeat)
            walls.extend(item_timing(records))
            yield from map(canonical_line, results)

    _write(file, lines())
    return categories


def _write(file: IO[bytes], lines: Iterator[bytes]) -> None:
    mark = b"\n"
    for line in lines:
        file.write(mark + line)
        mark = b",\n"


def canonical_line(result: ItemResult) -> bytes:
    """An item's line of `report.canonical.json`."""
    return _sorted(_without_clocks(result))


def _without_clocks(result: ItemResult) -> ItemResult:
    """The result without times, and without the words of an assertion about one."""
    timely = any(a.type.endswith("latency") for a in result.assertions)
    if result.wall_s is None and result.ttft_s is None and not timely:
        return result
    assertions = tuple(
        msgspec.structs.replace(a, reason="", score=None) if a.type.endswith("latency") else a
        for a in result.assertions
    )
    return msgspec.structs.replace(result, wall_s=None, ttft_s=None, assertions=assertions)


def _by_item(records: Iterator[ItemRecord]) -> Iterator[list[ItemRecord]]:
    for _, group in groupby(records, key=lambda record: record.item):
        yield list(group)


def _report(
    config: RunConfig,
    categories: dict[str, Tally],
    *,
    planned: int,
    status: str,
    order: Sequence[str],
) -> Report:
    whole = Tally.merged(categories.values())
    counts = {state: whole.counts[state] for state in STATES}
    ks = range(1, config.repeat + 1) if config.repeat > 1 else ()
    return Report(
        run=config,
        status=status,
        counts={**counts, "missing": planned - whole.finished},
        planned=planned,
        metrics=whole.summaries(order, planned),
        categories={
            name: part.summaries(order, part.finished) for name, part in sorted(categories.items())
        },
        usage=whole.usage(),
        incidents=dict(sorted(whole.incidents.items())),
        pass_hat={str(k): pass_hat_k(whole.trials, k) for k in ks},
    )


def _rest(report: Report) -> bytes:
    """Everything of the canonical report after its items."""
    plain = msgspec.to_builtins(report)
    del plain["items"], plain["timing"]
    for name in UNBOUND:
        del plain["run"][name]
    # What most runs have not is no part of their bytes: reports of older runs keep theirs.
    run = plain["run"]
    rare = [(run, name) for name in ("imported", "need", "excluded", "rejudged")]
    for part, name in (*rare, (plain, "repeats")):
        if part[name] is None:
            del part[name]
    return canonical_json(plain)[1:] + b"\n"
