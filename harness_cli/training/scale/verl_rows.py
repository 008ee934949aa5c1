"""A data set for verl's supervised trainer that brings tokens and masks of its own.

verl's own multi-turn set trains every assistant turn and tokenises by itself; ours are the rows of
`harness export sft`, masked and checked (docs/training_data.md). Named in a job by
`data.custom_cls`; needs nothing of verl.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from harness_cli.errors import BadFile
from harness_cli.training.scale.parquet import read_rows
from harness_cli.training.tokens import IGNORED


class MaskedRows(Dataset[dict[str, torch.Tensor]]):  # type: ignore[misc]
    """Rows of `input_ids` and `labels`."""

    def __init__(
        self,
        parquet_files: str | Sequence[str],
        tokenizer: Any = None,
        config: Any = None,
        processor: Any = None,
        max_samples: int = -1,
    ) -> None:
        """As verl makes every data set. Raises `BadFile` for a row over `max_length`."""
        _ = tokenizer, processor
        names = [parquet_files] if isinstance(parquet_files, str) else list(parquet_files)
        rows = [row for name in names for row in read_rows(Path(name))]
        self._rows = rows[:max_samples] if max_samples > 0 else rows
        most = int(config.get("max_length", 0)) if config is not None else 0
        longest = max((len(row["input_ids"]) for row in self._rows), default=0)
        if not self._rows or (most and longest > most):
            raise BadFile(
                f"{len(self._rows)} rows, the longest of {longest} tokens: `max_length` is {most}"
            )

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = self._rows[index]
        ids = torch.tensor(row["input_ids"], dtype=torch.long)
        mask = torch.tensor([int(label != IGNORED) for label in row["labels"]], dtype=torch.long)
        return {"input_ids": ids, "position_ids": torch.arange(len(ids)), "loss_mask": mask}
