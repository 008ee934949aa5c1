"""A blind report in rows and words."""

from harness_cli.evaluation.comparison_text import chance, percent
from harness_cli.records.blind import TAGS, BlindReport, Tally
from harness_cli.records.counting import counted
from harness_cli.records.run import Interval

COLUMNS = ("preference", "count", "share %")
STRATA = ("stratum", "candidate", "tie", "baseline", "win rate %", "p (Holm)", "reading")
ATTRIBUTION = ("reason", "candidate", "share %", "baseline")
PEOPLE = ("annotator", "annotated", "candidate", "tie", "baseline")


def title(report: BlindReport) -> str:
    """Which systems were compared."""
    sides = [f"{s.run} ({s.policy_id}, {s.agent})" for s in (report.candidate, report.baseline)]
    return f"blind test {report.id}: {sides[0]} against {sides[1]}"


def preference_rows(report: BlindReport) -> list[tuple[str, ...]]:
    """TR Table 9."""
    whole, n = report.whole, report.annotated
    return [
        (name, str(count), percent(count / n) if n else "–")
        for name, count in (
            ("candidate better", whole.candidate),
            ("tie", whole.tie),
            ("baseline better", whole.baseline),
        )
    ]


def attribution_rows(report: BlindReport) -> list[tuple[str, ...]]:
    """TR Table 10."""
    return [
        (TAGS.get(a.tag, a.tag), str(a.candidate), percent(a.share), str(a.baseline))
        for a in report.attribution
    ]


def strata_rows(report: BlindReport) -> list[tuple[str, ...]]:
    """One row a stratum."""
    return [
        (
            t.name, str(t.candidate), str(t.tie), str(t.baseline), percent(t.win_rate),
            chance(t.p_holm), t.reading,
        )
        for t in report.strata
    ]  # fmt: skip


def people_rows(report: BlindReport) -> list[tuple[str, ...]]:
    """One row an annotator."""
    return [
        (a.name, str(a.annotated), str(a.candidate), str(a.tie), str(a.baseline))
        for a in report.annotators
    ]


def headline(whole: Tally) -> str:
    """The non-tie win rate, its interval and the exact p."""
    clear = whole.candidate + whole.baseline
    if whole.win_rate is None or whole.p is None:
        return "nobody preferred anything: there is nothing to test"
    p = "p < 0.001" if whole.p < 0.001 else f"p = {whole.p:.3f}"
    return (
        f"of {clear} with a preference the candidate wins {whole.candidate}: "
        f"{percent(whole.win_rate)} %{_ends(whole.interval)}; two-sided exact binomial {p} "
        f"({whole.p:.3g})"
    )


def remarks(report: BlindReport) -> list[str]:
    """What the tables do not say."""
    found = [f"{report.annotated} of {report.drawn} pairs annotated"]
    found += [f"left out of the draw, {why}: {n}" for why, n in report.left_out.items()]
    if report.identical:
        found.append(f"{report.identical} pairs with equal replies are ties by construction")
    if report.split:
        found.append(f"{report.split} pairs without a majority of annotators count as ties")
    found += _consistency(report)
    if report.alpha is not None:
        found.append(f"annotators: Krippendorff's α {report.alpha:.3f}")
    late = sum(a.after_opening for a in report.annotators)
    if report.openings:
        found.append(
            f"the key was opened {counted(report.openings, 'time')} before the end; "
            f"{late} annotations were made after that"
        )
    return found


def _consistency(report: BlindReport) -> list[str]:
    c = report.consistency
    found = []
    if c.rate is not None:
        found.append(
            f"consistency: {c.agreed} of {c.asked} pairs shown again with sides swapped were "
            f"decided alike, {percent(c.rate)} %{_ends(c.interval)}"
        )
        found += [
            f"  decided in two ways: {first} and {again}" for first, again in c.contradictions
        ]
    if c.position_p is not None:
        found.append(
            f"A was preferred {counted(c.a_preferred, 'time')}, "
            f"B {counted(c.b_preferred, 'time')}, p {chance(c.position_p)} of an even hand"
        )
    return found


def _ends(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" [{percent(interval.low)}, {percent(interval.high)}]"


def case_lines(report: BlindReport, most: int) -> list[str]:
    """The items with a preference and why, the baseline's wins first."""
    lines = [
        f"{case.preferred} preferred  {case.item_id}  ({case.pair}, {case.stratum}): "
        f"{' / '.join(case.reasons)}"
        for case in report.cases[:most]
    ]
    more = len(report.cases) - most
    return [*lines, f"… {more} more, --cases N shows them"] if more > 0 and most else lines
