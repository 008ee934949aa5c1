"""A reference speculative decoder: the head drafts, the policy verifies, one row at a time.

Its greedy tokens are those of plain decoding, its sampled ones are distributed as plain sampling's
at exact thresholds. It is meant to be read and to measure accept length; servers batch.

Linear attention keeps a state that cannot be taken back by a token. So the policy's cache is marked
where all is decided, and put back there after a rejection: the tokens decided since go through once
more, in front of the next drafts, in the same pass.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from harness_cli.models.checkpoint_head import DraftHead
from harness_cli.models.drafting_rule import (
    EXACT,
    Thresholds,
    accepts,
    after_rejection,
    pick,
    shaped,
)

CHUNK: Final = 64
LONGEST: Final = 24
"""Decided tokens that go through again at most; beyond, the mark moves up in a pass of its own."""


@dataclass(slots=True)
class DraftCounts:
    """How drafting went. Accept length counts the policy's own token of each pass."""

    passes: int = 0
    """Verifications: forward passes of the policy but for prompts."""
    drafted: int = 0
    accepted: int = 0
    at: list[int] = field(default_factory=list)
    """Accepted drafts of each pass."""

    @property
    def accept_length(self) -> float:
        """(accepted + 1 a pass) / passes; 1.0 without a pass."""
        return 1.0 + self.accepted / self.passes if self.passes else 1.0

    @property
    def accept_rate(self) -> float | None:
        """accepted / drafted, SGLang's meaning from 0.5.11 on; None without drafts."""
        return self.accepted / self.drafted if self.drafted else None

    def add(self, other: "DraftCounts") -> None:
        """Count another's passes in."""
        self.passes += other.passes
        self.drafted += other.drafted
        self.accepted += other.accepted
        self.at += other.at


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the policy samples; temperature 0 takes the likeliest token."""

    temperature: float = 0.0
    top_p: float = 1.0
    thresholds: Thresholds = EXACT
    steps: int = 3
    """Tokens drafted before each verification; 0 is plain decoding."""


class Speculator:
    """One sequence being decoded. `head` None decodes plainly, one token a pass."""

    def __init__(
        self,
        model: Any,
        head: DraftHead | None,
        prompt: Sequence[int],
        sampling: Sampling,
        draws: random.Random,
    ) -> None:
        self.model, self.head = model, head
        self.sampling, self.draws = sampling, draws
        self.counts = DraftCounts()
        self.ids = list(prompt)
        self.logprobs: list[float] = []
        self._embed = model.get_input_embeddings()
        self._cache = MarkedCache(model)
        self._head_cache = head.new_cache() if head is not None else None
        self._hidden = torch.empty(0)
        """(1, n, H): hidden states of the last n tokens that were decided and seen."""
        self._first = True
        self._ahead: list[int] = []
        """Drafts that were made already."""

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def step(self) -> list[int]:
        """The tokens that one pass of the policy decides: at least one."""
        if self._first:
            return self._prefill()
        drafts, self._ahead = self._ahead or self._draft(), []
        hidden, logits = self._verified(drafts)
        taken, last = self._accepted(drafts, logits)
        if taken == len(drafts):
            self._cache.mark(kept=self.head is not None)
        else:
            self._cache.back()
        self.counts.passes += 1
        self.counts.drafted += len(drafts)
        self.counts.accepted += taken
        self.counts.at.append(taken)
        told = [*drafts[:taken], last]
        # Rows that the head has not seen: from the last decided token to the last accepted draft.
        self._hidden = hidden[:, : taken + 1]
        self.ids += told
        return told

    def _prefill(self) -> list[int]:
        self._first = False
        hidden, logits = self._passed(self.ids, 1)
        self._cache.mark()
        self._hidden = hidden
        token = self._sampled(logits[-1])
        self.ids.append(token)
        # The head reads the prompt here, as servers have it: before the first token is out.
        self._ahead = self._draft()
        return [token]

    def _passed(self, tokens: Sequence[int], last: int) -> tuple[Tensor, Tensor]:
        """Hidden states (1, n, H) after the final norm of new tokens, logits of the `last`."""
        out = self.model.model(
            input_ids=torch.tensor([list(tokens)], device=self.model.device),
            cache=self._cache.cache,
            use_cache=True,
            **self._chunked(len(tokens)),
        )
        hidden = out.last_hidden_state
        return hidden, self.model.lm_head(hidden[:, -last:])[0].float()

    def _chunked(self, count: int) -> dict[str, int]:
        """The reference kernel of linear attention pads to chunks of 64 and loops over each."""
        if self.model.device.type != "cpu" or count >= CHUNK:
            return {}
        return {"chunk_size": max(4, 1 << (count - 1).bit_length())}

    def _verified(self, drafts: list[int]) -> tuple[Tensor, Tensor]:
        """States and logits of the last decided token and of every draft."""
        pending = self.ids[self._cache.seen :]
        if len(pending) > LONGEST:
            self._passed(pending[:-1], 1)
            self._cache.mark()
            pending = pending[-1:]
        hidden, logits = self._passed([*pending, *drafts], len(drafts) + 1)
        return hidden[:, len(pending) - 1 :], logits

    def _draft(self) -> list[int]:
        if self.head is None or self._head_cache is None or not self.sampling.steps:
            return []
        head, device = self.head, self.model.device
        end = len(self.ids) - 1  # the row of the newest token has no hidden state yet
        new = self._hidden.shape[1]
        positions = torch.arange(end - new, end, device=device)[None]
        tokens = torch.tensor([self.ids[-new:]], device=device)
        hidden = self._hidden.to(head.fc.weight.dtype)
        embedded = self._embed(tokens).to(hidden.dtype)
        state = head(embedded, hidden, positions, cache=self._head_cache)[:, -1:]
        drafts = [self._likeliest(state)]
        while len(drafts) < self.sampling.steps:
            positions = positions[:, -1:] + 1
            embedded = self._embed(torch.tensor([drafts[-1:]], device=device)).to(hidden.dtype)
            state = head(embedded, state, positions, cache=self._head_cache)
            drafts.append(self._likeliest(state))
        self._head_cache.crop(1 - self.sampling.steps)
        return drafts

    def _likeliest(self, state: Tensor) -> int:
        weight = self.model.lm_head.weight.dtype
        return int(self.model.lm_head(state.to(weight))[0, -1].argmax())

    def _accepted(self, drafts: list[int], logits: Tensor) -> tuple[int, int]:
        """How many drafts stand, and the policy's own token behind them."""
        for n, draft in enumerate(drafts):
            token = self._decided(logits[n], draft)
            if token != draft:
                return n, token
        return len(drafts), self._sampled(logits[len(drafts)])

    def _decided(self, logits: Tensor, draft: int) -> int:
        """The draft where the policy accepts it, else its own token."""
        if self.sampling.temperature <= 0:
            return self._sampled(logits)
        p = self._p(logits)
        if accepts(p, draft, self.draws.random(), self.sampling.thresholds):
            token = draft
        else:
            token = pick(after_rejection(p, draft), self.draws.random())
        self._note(logits, token)
        return token

    def _sampled(self, logits: Tensor) -> int:
        if self.sampling.temperature <= 0:
            token = int(logits.argmax())
        else:
            token = pick(self._p(logits), self.draws.random())
        self._note(logits, token)
        return token

    def _p(self, logits: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
        values = logits.double().cpu().numpy()
        return shaped(values, self.sampling.temperature, self.sampling.top_p)

    def _note(self, logits: Tensor, token: int) -> None:
        """The token's log-probability under the policy at the sampling temperature, top-p aside."""
        logp = (logits / (self.sampling.temperature or 1.0)).log_softmax(-1)
        self.logprobs.append(float(logp[token]))


class MarkedCache:
    """The policy's cache with one point it can be put back to."""

    def __init__(self, model: Any) -> None:
        self.cache = DynamicCache(config=model.config)
        self.seen = 0
        """Tokens in the cache at the mark."""
        self._kept: dict[tuple[int, str, int], Tensor] = {}

    def mark(self, *, kept: bool = True) -> None:
        """Here all is decided; nothing is ever put back here where `kept` is false."""
        self.seen = int(self.cache.get_seq_length())
        if not kept:
            return
        self._kept = {
            (number, kind, key): state.clone()
            for number, layer in enumerate(self.cache.layers)
            for kind in ("conv_states", "recurrent_states")
            for key, state in (getattr(layer, kind, None) or {}).items()
            if state is not None
        }

    def back(self) -> None:
        """Forget what came since the mark."""
        for layer in self.cache.layers:
            if hasattr(layer, "conv_states"):
                continue
            layer.crop(self.seen - int(layer.get_seq_length()))
        for (number, kind, key), state in self._kept.items():
            getattr(self.cache.layers[number], kind)[key].copy_(state)
