"""How a head drafts for a policy: accept length by the reference decoder, on held-out prompts."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness_cli.models.checkpoint_drafting import DraftCounts, Sampling, Speculator
from harness_cli.models.checkpoint_head import DraftHead
from harness_cli.models.drafting_rule import EXACT, Thresholds
from harness_cli.records.mtp import Drafting

TABLE_19: Final = Thresholds(single=0.5, acc=0.7)
Way = Literal["greedy", "exact", "lossy"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is decoded, and how far."""

    prompts: Sequence[Sequence[int]]
    new_tokens: int
    ends: frozenset[int]
    temperature: float
    top_p: float
    drafts: int
    seed: int


def drafting(policy: Any, head: DraftHead | None, trial: Trial) -> tuple[Drafting, ...]:
    """Greedy, sampled exactly, sampled at TR Table 19's thresholds; the policy is in eval mode."""
    return tuple(_one(policy, head, trial, way) for way in ("greedy", "exact", "lossy"))


def _one(policy: Any, head: DraftHead | None, trial: Trial, way: Way) -> Drafting:
    counts, tokens, same = DraftCounts(), 0, True
    for number, prompt in enumerate(trial.prompts):
        said, found = decoded(policy, head, prompt, trial, way, f"{trial.seed}:{number}")
        counts.add(found)
        tokens += len(said)
        if way == "greedy" and head is not None:
            plain, _ = decoded(policy, None, prompt, trial, way, "")
            same = same and plain == said
    drafts = trial.drafts if head is not None else 0
    return Drafting(
        way=way,
        accept_length=counts.accept_length,
        accept_rate=counts.accept_rate,
        old_accept_rate=counts.accept_length / (drafts + 1) if drafts else None,
        passes=counts.passes,
        tokens=tokens,
        same_as_plain=same if way == "greedy" else None,
    )


def decoded(
    policy: Any,
    head: DraftHead | None,
    prompt: Sequence[int],
    trial: Trial,
    way: Way,
    seed: str,
) -> tuple[list[int], DraftCounts]:
    """The tokens behind a prompt up to the end token or `new_tokens`, and how drafting went."""
    sampling = Sampling(
        temperature=0.0 if way == "greedy" else trial.temperature,
        top_p=trial.top_p,
        thresholds=TABLE_19 if way == "lossy" else EXACT,
        steps=trial.drafts if head is not None else 0,
    )
    one = Speculator(policy, head, prompt, sampling, random.Random(seed))
    said = list(_tokens(one, trial))
    return said, one.counts


def _tokens(one: Speculator, trial: Trial) -> Iterator[int]:
    made = 0
    while True:
        for token in one.step():
            yield token
            made += 1
            if token in trial.ends or made >= trial.new_tokens:
                return
