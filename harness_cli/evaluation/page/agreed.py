"""How far a judge agrees with labels, as a page shows it, from either record that says so."""

import msgspec

from harness_cli.judges.agreeing import AgreementReport
from harness_cli.records.calibration import Calibration, MetricAgreement
from harness_cli.records.run import Interval
from harness_cli.stats.agreement import Agreement


class MetricTable(msgspec.Struct, frozen=True, kw_only=True):
    """One metric: the judge's grades against the labels."""

    name: str
    raw: float
    kappa: float | None
    kappa_interval: Interval | None
    labels: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Row: the label; column: what the judge gave."""

    @classmethod
    def of(cls, name: str, found: Agreement | MetricAgreement) -> "MetricTable":
        """The same numbers under the metric's name."""
        return cls(
            name=name,
            raw=found.raw,
            kappa=found.kappa,
            kappa_interval=found.kappa_interval,
            labels=found.labels,
            confusion=found.confusion,
        )


class Agreed(msgspec.Struct, frozen=True, kw_only=True):
    """One record of agreement."""

    judge: str
    n: int
    unscored: int
    source: str
    """Whose labels, from where, since when."""
    metrics: tuple[MetricTable, ...]


def of_report(found: AgreementReport, source: str) -> Agreed:
    """From what `harness judge agree --json` printed."""
    pairs = (("accuracy", found.accuracy), ("effectiveness", found.effectiveness))
    people = f", labels of {', '.join(found.annotators)}" if found.annotators else ""
    return Agreed(
        judge=found.judge,
        n=found.n,
        unscored=found.unscored,
        source=source + people,
        metrics=tuple(MetricTable.of(name, each) for name, each in pairs if each),
    )


def of_calibration(found: Calibration) -> Agreed:
    """From the committed calibration of a judge."""
    split = f"/{found.split}" if found.split else ""
    return Agreed(
        judge=found.judge.id,
        n=found.n,
        unscored=found.unscored,
        source=f"calibration on {found.evalset}{split}, labels by {found.labels}, {found.at}",
        metrics=(
            MetricTable.of("accuracy", found.accuracy),
            MetricTable.of("effectiveness", found.effectiveness),
        ),
    )
