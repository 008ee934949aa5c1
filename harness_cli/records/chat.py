"""What goes to a model and what comes back, in the OpenAI wire format.

Messages and tool definitions stay plain dictionaries, exactly as they travel: a record of them
would have to be loosened for every server. What we add around them is typed.
"""

from typing import Any

import msgspec

Message = dict[str, Any]
"""One OpenAI chat message: `role`, `content`, and `tool_calls` or `tool_call_id`."""


class RawToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model wrote it; `arguments` is its text, valid JSON or not."""

    id: str
    name: str
    arguments: str


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts of one call. None means the server did not say; it never means 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling settings of one rollout. Source: TR App. F (T 1.0, top-p 0.95, 16,384 to 65,536)."""

    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 16_384
    max_tokens_ceiling: int = 65_536
    """Doubled up to here on finish reason `length`, where the budget allows."""
    seed: int | None = None


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call to a policy: what any model sees, and nothing else."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    """OpenAI form: `{"type": "function", "function": {name, description, parameters}}`."""
    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 16_384
    seed: int | None = None
    tool_choice: str | dict[str, Any] | None = None
    stop: tuple[str, ...] = ()
    text_calls: bool = True
    """Take tool calls that a server left in the text for calls. A judge's answer may quote what it
    judges, so its requests say no: only what travels as a call is one."""


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """One finished answer of a policy."""

    content: str | None = None
    """Visible text, without reasoning."""
    reasoning: str | None = None
    """`reasoning_content` or think tags: kept in the trajectory, never in the reply."""
    tool_calls: tuple[RawToolCall, ...] = ()
    finish_reason: str = "stop"
    """Normalised: stop, tool_calls, length, content_filter."""
    usage: Usage = Usage()
    model: str = ""
    """What the server says it served."""
    fingerprint: str | None = None
    ttft_s: float | None = None
    """Dispatch → first streamed chunk; None when not streamed."""
    first_delta_s: float | None = None
    """Dispatch → first chunk that says something: content, reasoning or a tool call. Later than
    `ttft_s` where a server, or a gateway before it, sends the role at once."""
    latency_s: float = 0.0
    """Of all attempts."""
    attempt_s: float | None = None
    """Of the attempt that gave the answer, from its dispatch to the end of its stream."""
    attempts: int = 1
    """1 + retries of the client."""
    retry_reasons: tuple[str, ...] = ()
    policy: str = ""
    """Name of the policy that answered (the fallback's own name after a per-call fallback)."""
    cached: bool = False
    """A replayed answer: marked everywhere, never timed."""
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    """Of the sampled tokens under the untruncated distribution at the sampling temperature, where
    the policy is a checkpoint of ours; a server's own elsewhere."""
    prompt_ids: tuple[int, ...] | None = None
    """What the policy read, as tokens: with `token_ids` a trainer needs no text."""
    cost: float | None = None
    """US dollars; None when the price or the usage is unknown."""
