"""The one door of pandas: results and comparisons as tables, CSV and Parquet in and out."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.comparison import CategoryDelta, Comparison, MetricDelta
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.intervals import mean_interval

_PLAIN = (
    "item_id", "repeat", "category", "state", "route", "stop", "rounds", "input_tokens",
    "output_tokens", "cost", "wall_s", "ttft_s", "reply",
)  # fmt: skip
FORMATS = (".csv", ".parquet")


def results_frame(results: Iterable[ItemResult]) -> pd.DataFrame:
    """One row a rollout: its plain fields, `tags` and `findings` joined by blanks, one
    `score.<metric>` column a metric (NaN where unscored)."""
    rows = []
    for result in results:
        row = {name: getattr(result, name) for name in _PLAIN}
        row["tags"] = " ".join(result.tags)
        row["findings"] = " ".join(f.kind for f in result.findings)
        row |= {f"score.{m}": v for m, v in result.scores.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def category_table(frame: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Mean, 95 % interval and number scored, a row a category and metric.

    Repeats of an item are averaged first: the item is what was drawn.
    """
    rows = []
    for metric in metrics:
        column = f"score.{metric}"
        if column not in frame:
            continue
        per_item = frame.groupby(["category", "item_id"], sort=True)[column].mean()
        for category, values in per_item.groupby(level="category"):
            scored = values.dropna()
            interval = mean_interval([float(v) for v in scored])
            rows.append(
                {
                    "category": category,
                    "metric": metric,
                    "mean": scored.mean() if len(scored) else None,
                    "low": interval.low if interval else None,
                    "high": interval.high if interval else None,
                    "scored": len(scored),
                    "of": len(values),
                }
            )
    return pd.DataFrame(rows)


def paired_table(comparison: Comparison) -> pd.DataFrame:
    """The metrics of a comparison, then its categories: one row each."""
    whole = [
        {"category": "all", "metric": m.metric, "p": m.p, "reading": "", **_numbers(m)}
        for m in comparison.metrics
    ]
    parts = [
        {"category": c.category, "metric": c.metric, "p": c.p_holm, "reading": c.reading}
        | _numbers(c)
        for c in comparison.categories
    ]
    return pd.DataFrame([*whole, *parts])


def _numbers(delta: MetricDelta | CategoryDelta) -> dict[str, object]:
    found = delta.paired
    return {
        "a": delta.mean_a,
        "b": delta.mean_b,
        "delta": found.mean,
        "low": found.low,
        "high": found.high,
        "n": found.n,
    }


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """A table as CSV or Parquet, by the file's ending."""
    _known(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def read_table(path: Path) -> pd.DataFrame:
    """A table from CSV or Parquet, by the file's ending. Raises `BadFile` for what is none."""
    _known(path)
    if not path.is_file():
        raise BadFile(f"no file `{path}`")
    try:
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (ValueError, OSError) as exc:
        # pandas' parser errors and pyarrow's invalid-file errors are both ValueErrors.
        raise BadFile(f"{path}: no table: {str(exc).splitlines()[0]}") from exc


def _known(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise UsageError(
            f"`{path.name}`: a table is {' or '.join(FORMATS)}", hint="name it by what it is"
        )
