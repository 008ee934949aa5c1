"""What a page is about: one run, what it is compared with, and the records that stand around it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from harness_cli.errors import BadFile
from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.comparison import Comparison
from harness_cli.evaluation.item_tally import Tally
from harness_cli.evaluation.page.agreed import Agreed
from harness_cli.evaluation.page.charts import Stage
from harness_cli.evaluation.page.rows import Before, unique
from harness_cli.evaluation.summary import STATES
from harness_cli.records.item import EvalsetHeader
from harness_cli.records.run import Report, RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.store.runs import RunFolder

SCHEMA = 1
UNFINISHED = ("running", "killed")


@dataclass(frozen=True, slots=True)
class Subject:
    """Everything a page says, but for the items themselves."""

    run: RunFolder
    config: RunConfig
    report: Report
    status: str
    incumbent: RunConfig | None = None
    why_incumbent: str = ""
    """Why this run is the incumbent, or why there is none."""
    comparison: Comparison | None = None
    before: Mapping[str, Before] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    advice: str = ""
    agreement: Agreed | None = None


def read_config(run: RunFolder) -> RunConfig:
    """`run.json`. Raises `BadFile` for a schema this version does not know."""
    config = run.config()
    if config.schema != SCHEMA:
        raise BadFile(
            f"{run.id}/run.json: schema {config.schema} is not known, this version reads {SCHEMA}",
            hint="`harness migrate` moves older files; a newer run needs a newer harness",
        )
    return config


def read_report(run: RunFolder, config: RunConfig) -> Report:
    """The run's report, or what its journal comes to so far while it has none."""
    if run.status() in UNFINISHED:
        return partial(run, config)
    report = run.report()
    if report.schema != SCHEMA:
        raise BadFile(
            f"{run.id}/report.json: schema {report.schema} is not known, "
            f"this version reads {SCHEMA}",
            hint="`harness migrate` moves older files; a newer run needs a newer harness",
        )
    return report


def partial(run: RunFolder, config: RunConfig) -> Report:
    """Counts and metrics of the items that are finished; nothing is written."""
    categories = dict[str, Tally]()
    for results in by_item(run):
        part = categories.setdefault(results[0].category, Tally())
        part.add(results, repeats=config.repeat)
    whole = Tally.merged(categories.values())
    n = config.evalset.n if config.limit is None else min(config.evalset.n, config.limit)
    planned = n * config.repeat
    order = EvalsetHeader(name="").metrics
    return Report(
        run=config,
        status="unfinished",
        counts={**{s: whole.counts[s] for s in STATES}, "missing": planned - whole.finished},
        planned=planned,
        metrics=whole.summaries(order, planned),
        categories={
            name: part.summaries(order, part.finished) for name, part in sorted(categories.items())
        },
        usage=whole.usage(),
        incidents=dict(sorted(whole.incidents.items())),
    )


def compared(
    run: RunFolder, config: RunConfig, incumbent: RunFolder, other: RunConfig
) -> tuple[Comparison, dict[str, Before]]:
    """`run` against its incumbent, and what that one did with the items that changed."""
    found = compare(incumbent.results(), run.results(), config_a=other, config_b=config)
    changes = {case.item_id: "fixed" for case in found.fixed}
    changes |= {case.item_id: "broken" for case in found.broken}
    before: dict[str, Before] = {}
    for results in by_item(incumbent):
        first = results[0]
        if first.item_id in changes:
            before[first.item_id] = Before(
                change=changes[first.item_id],
                run=incumbent.id,
                states=tuple(r.state for r in results),
                reply=first.reply,
                scores=first.scores,
                findings=unique(f"{f.kind}: {f.detail}" for r in results for f in r.findings),
            )
    return found, before


def by_item(run: RunFolder) -> Iterator[list[ItemResult]]:
    """The results of a run, all repeats of an item together."""
    for _, group in groupby(run.results(), key=lambda result: result.item_id):
        yield list(group)
