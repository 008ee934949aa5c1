"""The local MTP engine: a checkpoint that samples with its own draft head, one row a pass.

The same interface as `CheckpointModel`, so policies, servers and trainers use it alike. Rows of a
batch take turns, a verification each; nothing is batched, as the decoder is the reference.
"""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.checkpoint_drafting import DraftCounts, Sampling, Speculator
from harness_cli.models.checkpoint_head import load_head
from harness_cli.models.checkpoint_model import CheckpointModel, Row
from harness_cli.models.drafting_rule import Thresholds
from harness_cli.records.config import DraftSettings


class DraftedModel(CheckpointModel):
    """A checkpoint with its head. `counts` is how drafting went since the start."""

    head: Any
    settings: DraftSettings
    counts: DraftCounts

    @classmethod
    def with_head(
        cls,
        folder: Path,
        template: ChatTemplate,
        settings: DraftSettings,
        *,
        context: int | None = None,
        dtype: str = "auto",
    ) -> "DraftedModel":
        """The checkpoint in a folder and the head in it. Raises `BadFile` where there is none."""
        made = cls.open(folder, template, context=context, dtype=dtype)
        assert isinstance(made, DraftedModel)
        made.head = load_head(folder, made.model.config, dtype=made.model.dtype)
        made.head.to(made.model.device).eval().requires_grad_(False)
        made.settings, made.counts = settings, DraftCounts()
        return made

    def _sample(self, rows: Sequence[Row], done: Callable[[Row], None]) -> list[Row]:
        under_way = [(row, self._speculator(row)) for row in rows]
        while True:
            for row, one in under_way:
                self._step(row, one)
            ended = [(row, one) for row, one in under_way if row.finish]
            for _, one in ended:
                self.counts.add(one.counts)
            under_way = [pair for pair in under_way if not pair[0].finish]
            if not under_way:
                return [row for row, _ in ended]
            for row, _ in ended:
                done(row)

    def _speculator(self, row: Row) -> Speculator:
        settings = self.settings
        sampling = Sampling(
            temperature=row.temperature,
            top_p=row.top_p,
            thresholds=Thresholds(settings.accept_threshold_single, settings.accept_threshold_acc),
            steps=settings.num_steps,
        )
        return Speculator(self.model, self.head, row.prompt, sampling, random.Random(row.seed))

    def _step(self, row: Row, one: Speculator) -> None:
        """Take over what a pass decided, up to the token that ends the row."""
        before = len(one.logprobs)
        for number, token in enumerate(one.step()):
            row.ids.append(token)
            row.logprobs.append(one.logprobs[before + number])
            if row.first_s is None:
                row.first_s = time.perf_counter()
                row.began()
            self._ended(row, token)
            if row.finish:
                return
