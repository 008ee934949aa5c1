"""A policy over an engine's own sampler: tokens in, tokens out, nothing encoded twice.

The runtime asks as it asks any policy. The request is rendered by the checkpoint's own template;
turns that were sampled in this conversation keep the tokens that were sampled. One value serves one
rollout.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import msgspec

from harness_cli.errors import ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.checkpoint_model import CheckpointModel, Row
from harness_cli.models.wire import ReplyBuilder, sound_messages
from harness_cli.records.chat import ChatReply, ChatRequest

NAME: Final = "trained"
"""Name of the policy in trajectories: whose answers are trained."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the sampler gave for one prompt."""

    ids: list[int]
    logprobs: list[float] | None
    first: int = 0
    """Updates behind the weights that sampled its first token, and its last."""
    last: int = 0


Generate = Callable[[list[int], int], Awaitable[Sampled]]
"""Prompt and most tokens → what was sampled."""


class ServerPolicy:
    """The policy of one rollout."""

    def __init__(
        self, reader: CheckpointModel, generate: Generate, *, one_version: bool = True
    ) -> None:
        self.name = NAME
        self._reader, self._generate, self._one_version = reader, generate, one_version
        self.versions: list[tuple[int, int]] = []
        """First and last update of every answer."""
        self.id = NAME

    @property
    def span(self) -> tuple[int, int]:
        """Oldest and newest weights of the rollout, in updates; (0, 0) where nothing was said."""
        firsts, lasts = [v[0] for v in self.versions], [v[1] for v in self.versions]
        return min(firsts, default=0), max(lasts, default=0)

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """One answer. How it is sampled the engine's configuration says, not the request."""
        messages = sound_messages(request.messages, reasoning=False)
        prompt = self._reader.prompt(msgspec.structs.replace(request, messages=tuple(messages)))
        most = min(request.max_tokens, self._reader.context - len(prompt))
        try:
            async with asyncio.timeout(deadline.left()):
                sampled = await self._generate(prompt, most)
        except TimeoutError as exc:
            raise ProviderError.of(
                "timeout", "the sampler gave no answer within the deadline", retryable=False
            ) from exc
        row = self._row(prompt, most, sampled)
        self._reader.remember(prompt, row.ids)
        self.versions.append((sampled.first, sampled.last))
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(row.ids)}
        message = {"content": self._reader.answer(row)}
        builder = ReplyBuilder(request)
        choice = {"message": message, "finish_reason": row.finish}
        model = f"{NAME}@{sampled.last}" if self._one_version else NAME
        builder.add({"model": model, "choices": [choice], "usage": usage})
        return msgspec.structs.replace(
            builder.finish(),
            policy=NAME,
            cost=0.0,
            prompt_ids=tuple(prompt),
            token_ids=tuple(row.ids),
            logprobs=tuple(row.logprobs),
        )

    async def close(self) -> None:
        """The sampler is the engine's."""

    def decode(self, ids: Any) -> str:
        """The text of tokens, special ones included."""
        return self._reader.text(ids)

    def _row(self, prompt: list[int], most: int, sampled: Sampled) -> Row:
        ids, logprobs = sampled.ids, sampled.logprobs
        if logprobs is None or len(logprobs) != len(ids):
            raise ProviderError.of(
                "server",
                f"{len(ids)} tokens came with {len(logprobs or ())} log-probabilities",
                retryable=False,
            )
        if not ids:
            raise ProviderError.of("server", "the sampler gave no token", retryable=False)
        ended = ids[-1] in self._reader.ends
        row = Row(prompt, most, finish="stop" if ended else "length")
        row.ids, row.logprobs = list(ids), [float(p) for p in logprobs]
        return row


def reader_of(tokenizer: Any, *, context: int, config: Any = None) -> CheckpointModel:
    """Template and tokenizer of an engine's model as a reader of requests, without weights.

    Raises `UsageError` for a tokenizer without a chat template.
    """
    source = getattr(tokenizer, "chat_template", None)
    if not isinstance(source, str):
        raise UsageError("the model's tokenizer has no chat template of its own")
    special: Mapping[str, Any] = getattr(tokenizer, "special_tokens_map", {})
    words = {name: word for name, word in special.items() if isinstance(word, str)}
    template = ChatTemplate(source, name="the model's template", variables=words)
    bare = SimpleNamespace(
        config=config or SimpleNamespace(max_position_embeddings=context),
        generation_config=SimpleNamespace(eos_token_id=getattr(tokenizer, "eos_token_id", None)),
    )
    return CheckpointModel(bare, tokenizer, template, context=context)
