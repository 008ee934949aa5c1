"""What a comparison of two runs says: differences by metric and category, and the cases behind."""

import msgspec

from harness_cli.stats.paired import McNemar, Paired
from harness_cli.stats.power import Detectable
from harness_cli.stats.trials import Spread


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    run: str = ""
    harness: str = ""
    policy: str = ""
    judge: str = ""
    evalset: str = ""
    counts: dict[str, int] = {}
    """Rollouts by state."""
    items: int = 0
    verdicts: dict[str, int] = {}
    """Items by their verdict of k of n; empty in a run without repeats."""


class MetricDelta(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the items of both runs."""

    metric: str
    mean_a: float | None
    mean_b: float | None
    paired: Paired
    of: int
    """Items in both runs; `paired.n` of them are scored on both sides."""
    p: float | None
    """Exact two-sided p of no difference (sign flips)."""
    mcnemar: McNemar | None = None
    """Beside the bootstrap where all scores are 0 or 1."""
    with_missing_as_zero: float | None = None
    """The difference when an unscored or errored side counts 0: how much they could hide."""
    detectable: Detectable | None = None
    needed: int | None = None
    """Items at which the observed difference would be seen with 80 % power."""
    noise: float | None = None
    """±: what two runs of the same thing differ by, from an A/A run; None where none was made."""
    spread: Spread | None = None
    """In percent, each repeat as a run of its own (T2); None in a run without repeats."""


class CategoryDelta(msgspec.Struct, frozen=True, kw_only=True):
    """One metric in one category."""

    category: str
    metric: str
    mean_a: float | None
    mean_b: float | None
    paired: Paired
    p: float | None
    p_holm: float | None
    """Holm-adjusted over every category and metric with enough items."""
    reading: str
    """regression, gain, no difference seen, too few."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An item that one run passes and the other does not."""

    item_id: str
    category: str
    a: dict[str, float | None]
    b: dict[str, float | None]
    findings: tuple[str, ...] = ()
    """Kinds the judge found on the failing side."""
    flaky: bool = False
    """Its repeats contradict each other on one side at least: the change may be chance."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """b against a."""

    schema: int = 1
    a: Side
    b: Side
    items: int
    """In both runs."""
    metrics: tuple[MetricDelta, ...]
    categories: tuple[CategoryDelta, ...]
    fixed: tuple[Case, ...]
    broken: tuple[Case, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    flaky_a: tuple[str, ...] = ()
    """Items that some repeats pass and others fail."""
    flaky_b: tuple[str, ...] = ()
    noise_runs: tuple[str, ...] = ()
    """The A/A runs that `noise` comes from."""
    warnings: tuple[str, ...] = ()
