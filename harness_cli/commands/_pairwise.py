"""What `harness judge pairwise` does: two runs before a panel, shown as shares and flips."""

import asyncio
from typing import TYPE_CHECKING

from harness_cli.commands._show import line, table
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

if TYPE_CHECKING:
    from harness_cli.evaluation.preferring import PairReport


def compare_runs(
    project: Project,
    a: str,
    b: str,
    *,
    judge: str,
    limit: int | None,
    concurrency: int,
    fresh: bool,
) -> "PairReport":
    """The panel's preferences over the items that two runs share."""
    from harness_cli.errors import UnknownName
    from harness_cli.evaluation.preferring import compare_pairs, pair_report, pairs_of
    from harness_cli.judges.panel.opening import open_pairwise
    from harness_cli.records.config import JudgeConfig

    config = project.config.judges.get(judge)
    if config is None and judge == "grounded":
        config = JudgeConfig(kind="grounded")
    if config is None:
        raise UnknownName.of("judge", judge, project.config.judges)
    opened = open_pairwise(judge, config, project, fresh=fresh, concurrency=concurrency)
    store = RunStore(project.runs)
    one, other = store.get(a), store.get(b)
    pairs, world = pairs_of(project, one, other, limit=limit)

    async def run() -> "PairReport":
        try:
            verdicts = await compare_pairs(opened, pairs, world, concurrency=concurrency)
        finally:
            await opened.close()
        return pair_report(opened.id, one.id, other.id, verdicts)

    return asyncio.run(run())


def show(report: "PairReport", *, cases: int, quiet: bool) -> None:
    """Shares, the exact test, flips; then pairs with their reasons."""
    found = report.preference
    line(f"{report.judge} on {report.pairs} pairs: A {report.a} against B {report.b}")
    line(f"A {found.wins} / tie {found.ties} / B {found.losses} / unscored {report.unscored}")
    if found.win_rate is not None and found.interval is not None:
        low, high = 100 * found.interval.low, 100 * found.interval.high
        rate = f"A wins {100 * found.win_rate:.1f} % of the pairs without tie"
        line(f"{rate} [{low:.1f}, {high:.1f}], exact p {found.p:.3g}")
    if report.flip_rate is not None:
        flips = f"{report.flips} of {report.votes} votes flip when the replies are swapped"
        first = report.first_rate
        place = "" if first is None else f"; {100 * first:.1f} % of clear answers are for the first"
        line(f"{flips} ({100 * report.flip_rate:.1f} %), they count as ties{place}")
    line(f"{report.calls} model calls, {report.cached} answers from the cache")
    if quiet:
        return
    if len(report.categories) > 1:
        rows = [(c, str(p.wins), str(p.ties), str(p.losses)) for c, p in report.categories.items()]
        table(("category", "A", "tie", "B"), rows)
    clear = [v for v in report.verdicts if v.preferred in ("a", "b", None)]
    for verdict in clear[:cases]:
        side = "unscored" if verdict.preferred is None else verdict.preferred.upper()
        line(f"{verdict.item_id}  {side}: {verdict.reason}")
    if len(clear) > cases:
        line(f"… {len(clear) - cases} more, --cases N shows them")
