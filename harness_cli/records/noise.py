"""`noise.json` of a run: the A/A noise floor of one policy in one harness on one evalset."""

import msgspec

from harness_cli.records.run import EvalsetRef, Interval


class MetricNoise(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over runs of the same policy in the same harness."""

    metric: str
    items: int
    """Items scored in at least two of the runs."""
    runs: int
    """Runs, or repeats of one run, that were set against each other."""
    mean: float
    within: float
    """Variance of one run's score of an item around the item's mean."""
    between: float | None
    tie_rate: float
    """Chance that two runs score an item alike."""
    sd: float
    """Deviation of an item's difference between two runs: √(2 · within)."""
    interval: Interval
    """Where 95 of 100 differences of two such runs lie: nothing inside of it is an effect."""
    detectable: float | None
    """The smallest true difference that this many items see with 80 % power."""
    attainable_p: float
    """The least p that the expected number of changed items can give."""


class GateOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """What the noise leaves of one non-inferiority gate, before anything is spent on it."""

    gate: str
    metric: str
    margin: float
    n: int
    can_pass: bool
    """Whether a candidate exactly as good as the incumbent passes when it shows no difference."""
    power: float
    """Chance that it passes."""
    needed: int | None
    """Items at which that chance is 80 %."""
    minimum_n: int = 0
    """The gate's own least number of items: with fewer it decides nothing."""


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """`noise.json`: what to hold a difference of two runs against."""

    schema: int = 1
    runs: tuple[str, ...]
    evalset: EvalsetRef
    limit: int | None = None
    policy_id: str
    harness_id: str
    judge_id: str
    agent: str = "harness"
    profile: str = "offline"
    repeat: int = 1
    """Rollouts an item that each of the compared scores is the mean of."""
    same_rollouts: float | None = None
    """Share of items whose rollouts were the same, clocks aside: 1 is a policy that repeats
    itself."""
    metrics: tuple[MetricNoise, ...] = ()
    gates: tuple[GateOutlook, ...] = ()
