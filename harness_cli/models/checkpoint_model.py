"""A checkpoint as a sampler: rows of tokens in, sampled tokens with their log-probabilities out.

Rows go through the model side by side, padded on the left; a row that has ended leaves the batch. A
row's draws come from its own seed, so who else is in the batch changes no token but by the rounding
of a sum in another order. Log-probabilities are those of the whole distribution at the sampling
temperature, before top-p takes its tail off: what a trainer computes for the same tokens.
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, Final, Literal

import torch

from harness_cli.errors import MaskError, ProviderError
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.checkpoint_load import load_model as load_model
from harness_cli.models.checkpoint_load import load_tokenizer as load_tokenizer
from harness_cli.models.checkpoint_load import quiet as quiet
from harness_cli.models.checkpoint_load import with_adapter
from harness_cli.records.chat import ChatRequest

NO_CONTEXT: Final = 1_000_000
KEPT: Final = 256
"""Conversations whose tokens are remembered, so that what was sampled is never encoded anew."""


@dataclass(slots=True)
class Row:
    """One answer being sampled."""

    prompt: list[int]
    most: int
    """Tokens at most."""
    temperature: float = 1.0
    """0 takes the likeliest token."""
    top_p: float = 1.0
    seed: str | None = None
    """Equal seeds and prompts give equal tokens; None: other ones each time."""
    stop: tuple[str, ...] = ()
    stopped: Callable[[], bool] = lambda: False
    began: Callable[[], None] = lambda: None
    """Called once, with the first token."""
    first_s: float | None = None
    """When the first token was sampled, by `time.perf_counter`."""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: Literal["", "stop", "length", "given up"] = ""


def _ignore(_: Row) -> None:
    """Nobody waits for single rows."""


class CheckpointModel:
    """A model, its tokenizer and its template. Not thread-safe: its one caller takes turns."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        template: ChatTemplate,
        *,
        context: int | None = None,
    ) -> None:
        self.model = model
        self.tokenizer, self.template = tokenizer, template
        own = getattr(model.config, "max_position_embeddings", None) or NO_CONTEXT
        self.context = min(context or own, own)
        self.ends = frozenset(_end_tokens(model, tokenizer, template))
        self._said: dict[str, list[int]] = {}

    @classmethod
    def open(
        cls,
        folder: Path,
        template: ChatTemplate,
        *,
        adapter: Path | None = None,
        context: int | None = None,
        dtype: str = "auto",
    ) -> "CheckpointModel":
        """The checkpoint in a folder, or an adapter's over its base. Raises `BadFile`."""
        tokenizer = load_tokenizer(folder)
        model = load_model(folder, dtype=dtype)
        if adapter is not None:
            model = with_adapter(model, adapter)
        return cls(model.eval(), tokenizer, template, context=context)

    def prompt(self, request: ChatRequest) -> list[int]:
        """The tokens of a request up to the policy's turn.

        Turns that this model sampled keep the tokens that were sampled. Raises `ProviderError` for
        a conversation that the template refuses or loses, and for one that fills the context.
        """
        if request.tools and self.template.arguments is None:
            raise ProviderError.of(
                "bad_request",
                f"the chat template `{self.template.name}` knows no tools; name one that does with "
                "`template:` (SmolLM2: trl:qwen2_5_training)",
                retryable=False,
            )
        try:
            text = self.template.render(request.messages, list(request.tools) or None, prompt=True)
        except MaskError as exc:
            raise ProviderError.of("bad_request", str(exc), retryable=False) from exc
        ids = self._encoded(text)
        if len(ids) >= self.context:
            raise ProviderError.of(
                "bad_request",
                f"the prompt has {len(ids)} tokens, the context of this checkpoint {self.context}",
                retryable=False,
            )
        return ids

    def remember(self, prompt: Sequence[int], ids: Sequence[int]) -> None:
        """Keep the tokens of a conversation with what was sampled after it."""
        whole = [*prompt, *ids]
        self._said[self.text(whole)] = whole
        while len(self._said) > KEPT:
            del self._said[next(iter(self._said))]

    def text(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        return str(
            self.tokenizer.decode(
                list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    def answer(self, row: Row) -> str:
        """What a row says: its text without the end token and what follows a stop word."""
        ids = row.ids[:-1] if row.ids and row.ids[-1] in self.ends else row.ids
        text = self.text(ids)
        cuts = [at for word in row.stop if (at := text.find(word)) >= 0]
        return text[: min(cuts)] if cuts else text

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def sample(self, rows: Sequence[Row], done: Callable[[Row], None] = _ignore) -> None:
        """Fill every row; `done` hears of each the moment it has ended.

        Of the last ones it hears when the model is as it was found: whoever waits for them may be
        a trainer that goes on with it.
        """
        training = self.model.training
        self.model.eval()
        try:
            last = self._sample(rows, done)
        finally:
            self.model.train(training)
        for row in last:
            done(row)

    def _sample(self, rows: Sequence[Row], done: Callable[[Row], None]) -> list[Row]:
        draws = [random.Random(row.seed) for row in rows]
        step, mask, positions = self._padded(rows)
        alive, cache = list(range(len(rows))), None
        while alive:
            out = self._forward(step, mask, positions, cache)
            cache = out.cache
            tokens = self._draw(out.logits[:, -1], [rows[i] for i in alive], draws, alive)
            for i, token in zip(alive, tokens, strict=True):
                self._ended(rows[i], token)
            kept = [at for at, i in enumerate(alive) if not rows[i].finish]
            ended = [rows[i] for i in alive if rows[i].finish]
            if not kept:
                return ended
            for row in ended:
                done(row)
            if len(kept) < len(alive):
                chosen = torch.tensor(kept, device=self.model.device)
                cache.reorder_cache(chosen)  # layers of linear attention know no other selection
                mask, positions = mask[chosen], positions[chosen]
                alive = [alive[at] for at in kept]
            last = [[rows[i].ids[-1]] for i in alive]
            step = torch.tensor(last, device=self.model.device)
            mask = torch.cat((mask, mask.new_ones(len(alive), 1)), 1)
            positions = positions[:, -1:] + 1
        return []

    def _padded(self, rows: Sequence[Row]) -> tuple[Any, Any, Any]:
        """(tokens, mask, positions), each (B, T), padded on the left; T of the longest."""
        width = max(len(row.prompt) for row in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, width - len(row.prompt) :] = torch.tensor(row.prompt)
            mask[i, width - len(row.prompt) :] = 1
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        return tuple(t.to(self.model.device) for t in (ids, mask, positions))

    def _forward(self, step: Any, mask: Any, positions: Any, cache: Any) -> Any:
        given = {"logits_to_keep": 1} if "logits_to_keep" in self._parameters() else {}
        return self.model(
            input_ids=step,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            **given,
        )

    def _parameters(self) -> Iterable[str]:
        inner = getattr(self.model, "get_base_model", lambda: self.model)()
        return signature(inner.forward).parameters

    def _draw(
        self, logits: Any, rows: Sequence[Row], draws: Sequence[random.Random], alive: Sequence[int]
    ) -> list[int]:
        """One token a row; logits (B, V). Ids and log-probabilities are added to the rows."""
        temperatures = torch.tensor([row.temperature or 1.0 for row in rows])
        logp = (logits.float() / temperatures.to(logits.device)[:, None]).log_softmax(-1).cpu()
        chosen = logp.argmax(-1).tolist()
        for at, (i, row) in enumerate(zip(alive, rows, strict=True)):
            if row.temperature > 0:
                chosen[at] = draw(logp[at], row.top_p, draws[i].random())
        for at, row in enumerate(rows):
            row.ids.append(chosen[at])
            if row.first_s is None:
                row.first_s = time.perf_counter()
                row.began()
            row.logprobs.append(float(logp[at, chosen[at]]))
        return [int(token) for token in chosen]

    def _ended(self, row: Row, token: int) -> None:
        stops = row.stop and any(word in self.text(row.ids) for word in row.stop)
        if token in self.ends or stops:
            row.finish = "stop"
        elif len(row.ids) >= row.most or len(row.prompt) + len(row.ids) >= self.context:
            row.finish = "length"
        elif row.stopped():
            row.finish = "given up"

    def _encoded(self, text: str) -> list[int]:
        known = max((t for t in self._said if text.startswith(t)), key=len, default="")
        rest = self.tokenizer(text[len(known) :], add_special_tokens=False)["input_ids"]
        return [*self._said.get(known, ()), *rest]


def draw(logp: Any, top_p: float, uniform: float) -> int:
    """The token at `uniform` of the distribution `logp` (V), its tail beyond `top_p` cut off.

    Kept are the likeliest tokens that together reach `top_p`; they are laid side by side from the
    likeliest on, and `uniform` in [0, 1) points at one of them.
    """
    p, order = logp.double().exp().sort(descending=True, stable=True)
    sums = p.cumsum(0)
    last = len(p) - 1
    if top_p < 1:
        last = min(int(torch.searchsorted(sums, torch.tensor(top_p, dtype=sums.dtype))), last)
    at = int(torch.searchsorted(sums, uniform * sums[last], right=True))
    return int(order[min(at, last)])


def _end_tokens(model: Any, tokenizer: Any, template: ChatTemplate) -> set[int]:
    """Every token that ends an answer: the model's, the tokenizer's, the template's own."""
    config = getattr(model, "generation_config", None)
    found: set[int] = set()
    for given in (getattr(config, "eos_token_id", None), tokenizer.eos_token_id):
        found |= set(
            given if isinstance(given, list | tuple) else () if given is None else (given,)
        )
    try:
        text = template.render(
            [{"role": "user", "content": "?"}, {"role": "assistant", "content": "ok."}], None
        )
    except MaskError:
        return found
    behind = text.rpartition("ok.")[2]
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"] if behind else []
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return found | {ids[0]} if ids and ids[0] in special else found
