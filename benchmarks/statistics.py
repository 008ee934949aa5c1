"""The exact paired bootstrap over `scipy.stats.bootstrap`, and an A/B report of a million users."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.floor import result
from benchmarks.process import run
from harness_cli.stats.bootstrap import exact_mean
from harness_cli.stats.online import ratio_uplift

HARNESS = [sys.executable, "-m", "harness_cli.main"]
ASKED = [word for m in ("gmv", "orders", "turns>1", "gmv/orders") for word in ("--metric", m)]
ITEMS = 978
RESAMPLES = 10_000


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal; the two ways alternate on the same scores."""
    rounds = 3 if quick else 9
    first, second = binary_runs(ITEMS)
    ratios = [cpu(exact, first, second) / cpu(scipys, first, second) for _ in range(rounds)]
    value = median(ratios)
    how = f"n = {ITEMS}, one 0/1 metric, {RESAMPLES:,} resamples, median of {rounds} alternations"
    name = "CPU of the exact paired interval / `scipy.stats.bootstrap(paired=True)`"
    yield result(name, value, "<= 0.01", value <= 0.01, how)
    users = 100_000 if quick else 1_000_000
    took = median(cpu(uplift, *synthetic_arms(users)) for _ in range(1 if quick else 3))
    how = f"CPU seconds, {users:,} synthetic users at 9 : 1, amounts, {RESAMPLES:,} resamples"
    yield result("uplift of GMV per user with its interval", took, "<= 5", took <= 5, how)
    path = folder / "users.parquet"
    table(users).to_parquet(path, index=False)
    took = run([*HARNESS, "ab", "report", path, "--control", "react", *ASKED]).cpu_s
    how = f"whole process on a Parquet of {users:,} synthetic users, four metrics"
    yield result("CPU seconds of `harness ab report`", took, "<= 15", took <= 15, how)


def binary_runs(n: int) -> tuple[Any, Any]:
    """Two runs of 0/1 scores that differ on a seventh of the items."""
    rng = np.random.default_rng(0)
    a = (rng.random(n) < 0.8).astype(float)
    return a, np.where(rng.random(n) < 0.15, 1 - a, a)


def exact(a: Any, b: Any) -> None:
    found = exact_mean(b - a)
    assert found is not None
    found.quantile(0.025), found.quantile(0.975), found.at_most(0.0)


def scipys(a: Any, b: Any) -> None:
    from scipy.stats import bootstrap

    def difference(x: Any, y: Any, axis: int = -1) -> Any:
        return np.mean(y, axis=axis) - np.mean(x, axis=axis)

    bootstrap((a, b), difference, paired=True, n_resamples=RESAMPLES, method="percentile", rng=0)


def synthetic_arms(users: int) -> tuple[Any, Any]:
    """Generated users, no data of anyone: a twelfth buys, amounts are log-normal."""
    rng = np.random.default_rng(1)

    def arm(n: int, lift: float) -> Any:
        spent = np.where(rng.random(n) < 0.08, rng.lognormal(4, 1.2, n) * lift, 0.0)
        return np.column_stack([spent, np.ones(n)])

    return arm(users * 9 // 10, 1.0), arm(users // 10, 1.05)


def table(users: int) -> Any:
    """The same users as a file has them."""
    import pandas as pd

    control, treatment = synthetic_arms(users)
    rng = np.random.default_rng(2)
    gmv = np.round(np.concatenate([control[:, 0], treatment[:, 0]]), 2)
    return pd.DataFrame(
        {
            "user_id": [f"u{n:08d}" for n in range(len(gmv))],
            "arm": np.repeat(["react", "harness"], [len(control), len(treatment)]),
            "gmv": gmv,
            "orders": np.where(gmv > 0, 1 + rng.poisson(0.3, len(gmv)), 0),
            "turns": 1 + rng.poisson(0.6, len(gmv)),
        }
    )


def uplift(control: Any, treatment: Any) -> None:
    ratio_uplift(control, treatment, resamples=RESAMPLES)


def cpu(call: Callable[[Any, Any], None], a: Any, b: Any) -> float:
    began = time.process_time()
    call(a, b)
    return time.process_time() - began
