"""The door of Parquet: rows that an engine reads. pyarrow is loaded when a file is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness_cli.records.canonical import write_atomic


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows of equal keys; nested values keep their form."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink, compression="zstd")
    write_atomic(path, sink.getvalue())


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a file."""
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found
