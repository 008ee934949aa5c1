"""The one door of pandas: results and comparisons as tables, CSV and Parquet in and out."""

import csv
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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


class TextTable:
    """A table whose key columns are text as the file has it: `007` is not `7`, `NA` is a name."""

    def __init__(self, frame: pd.DataFrame, *, first_row: int) -> None:
        self._frame = frame
        self._first = first_row
        self.names: list[str] = [str(name) for name in frame.columns]
        self.rows = len(frame)

    def row(self, at: int) -> int:
        """The number of a row as a person counts it: in a CSV the header is row 1."""
        return int(at) + self._first

    def texts(self, name: str) -> list[str]:
        """A column as texts."""
        return [str(value) for value in self._frame[name].tolist()]

    def text(self, name: str, at: int) -> str:
        """One cell."""
        return str(self._frame[name].iloc[int(at)])

    def empty(self, name: str) -> NDArray[np.bool_]:
        """Cells that hold nothing."""
        column = self._frame[name]
        return np.asarray(column.isna() | (column.astype(str).str.strip() == ""), dtype=np.bool_)

    def duplicated(self, name: str) -> NDArray[np.bool_]:
        """Rows whose cell stood in an earlier row."""
        return np.asarray(self._frame[name].duplicated(), dtype=np.bool_)

    def codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Each row's place among the distinct cells, and these."""
        codes, labels = pd.factorize(self._frame[name])
        return np.asarray(codes, dtype=np.int64), [str(label) for label in labels]

    def is_numeric(self, name: str) -> bool:
        """The column is meant as numbers: at least half of its cells are some.

        A few that are none do not make it text: they are faults to be told.
        """
        return bool(np.isfinite(self.numbers(name)).mean() >= 0.5)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as numbers; NaN for what is none."""
        found = pd.to_numeric(self._frame[name], errors="coerce")
        return np.asarray(found.to_numpy(dtype=np.float64, na_value=np.nan))


def read_text_table(path: Path, *, text: Sequence[str]) -> TextTable:
    """A CSV or Parquet file, the columns of `text` as text. Raises `BadFile` for what is none."""
    _known(path)
    if not path.is_file():
        raise BadFile(f"no file `{path}`")
    try:
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path)
            for name in set(text) & set(frame.columns):
                gaps = frame[name].isna()
                frame[name] = frame[name].astype(str).where(~gaps, "")
            return TextTable(frame, first_row=1)
        with warnings.catch_warnings():
            # Rows longer than the header would move every cell by one, or lose the last.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                dtype=dict.fromkeys(text, str),
                index_col=False,
                keep_default_na=False,
                na_values=_gaps(path, text),
            )
    except pd.errors.ParserWarning as exc:
        raise BadFile(
            f"{path.name}: no table: rows have more cells than the header",
            hint="quote cells that hold a comma",
        ) from exc
    except (ValueError, OSError) as exc:
        raise BadFile(f"{path.name}: no table: {str(exc).splitlines()[0]}") from exc
    return TextTable(frame, first_row=2)


def _gaps(path: Path, text: Sequence[str]) -> dict[str, list[str]]:
    """What counts as missing: nothing in the text columns, blanks and NaN elsewhere.

    Raises `BadFile` for a column that stands twice: pandas would rename the second one.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise BadFile(f"{path.name}: the column `{twice[0]}` stands twice", hint="rename one")
    return {name: ["", "NaN", "nan", "NULL", "null", "NA"] for name in header if name not in text}
