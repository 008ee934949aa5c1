"""A rollout as the rows that a distributed engine trains: one for each segment and context.

Tool and reply share their tokens, each with its own mask, so that the engine's sequence ratio and
clip are those of the segment. A row ends behind the last token it trains: what follows would be
computed for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness_cli.training.rollouts import Rollout, Row
from harness_cli.training.tokens import KINDS


@dataclass(frozen=True, slots=True)
class EngineRow:
    """Prompt and response as token ids, the response's mask and log-probabilities."""

    segment: str
    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    """1 for tokens of the segment that the policy sampled."""
    logprobs: list[float]
    """Of the behaviour policy; 0 where the mask is 0."""
    share: float
    """Tokens trained here over all tokens of the segment."""


def segment_rows(rollout: Rollout) -> list[EngineRow]:
    """The rows of a rollout, tool before reply; a segment without a token has none."""
    found: list[EngineRow] = []
    for name, number in KINDS.items():
        total = rollout.tokens[name]
        for row in rollout.rows:
            made = _row(row, name, [int(s == number) for s in row.segment_ids], total)
            if made is not None:
                found.append(made)
    return found


def whole_rows(rollout: Rollout) -> list[EngineRow]:
    """One row a context, both segments trained: for distillation, which knows no advantage."""
    total = sum(rollout.tokens.values())
    rows = (
        _row(row, "whole", [int(s > 0) for s in row.segment_ids], total) for row in rollout.rows
    )
    return [row for row in rows if row is not None]


def _row(row: Row, segment: str, mask: Sequence[int], total: int) -> EngineRow | None:
    trained = [at for at, on in enumerate(mask) if on]
    if not trained:
        return None
    # All rows of a context share one prompt: the tokens before the first that the policy sampled.
    begin = next(at for at, s in enumerate(row.segment_ids) if s)
    end = trained[-1] + 1
    on = list(mask[begin:end])
    return EngineRow(
        segment=segment,
        prompt_ids=row.input_ids[:begin],
        response_ids=row.input_ids[begin:end],
        response_mask=on,
        logprobs=[p if m else 0.0 for p, m in zip(row.logprobs[begin:end], on, strict=True)],
        share=len(trained) / total,
    )
