"""The chat-completions wire format: a request's body, and the reply in whatever a server sends.

Both transports share this module, so what one tolerates the other does. What cannot be a whole
answer raises a retryable `ProviderError`: it is never taken for a short reply.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from harness_cli.models.provider_errors import error_in_body, malformed, shown
from harness_cli.models.thinking import split_thinking
from harness_cli.models.toolcalls import CallAssembler, calls_in_text, is_object
from harness_cli.records.chat import ChatReply, ChatRequest, Message, Usage
from harness_cli.records.config import PolicyConfig

FINISH = {
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "safety": "content_filter",
    "recitation": "content_filter",
}
"""Finish reasons of other dialects → the OpenAI word."""


def request_body(request: ChatRequest, config: PolicyConfig) -> dict[str, Any]:
    """The JSON object to post. Settings of the policy win over those of the request."""
    cap = config.max_tokens
    body: dict[str, Any] = {
        "model": config.model,
        "messages": sound_messages(request.messages, reasoning=config.send_back_reasoning),
        "temperature": request.temperature if config.temperature is None else config.temperature,
        "top_p": request.top_p if config.top_p is None else config.top_p,
        "max_tokens": request.max_tokens if cap is None else min(cap, request.max_tokens),
    }
    if request.tools:
        body["tools"] = request.tools
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = request.stop
    if config.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body


def sound_messages(messages: Iterable[Message], *, reasoning: bool) -> list[Message]:
    """Messages that no server refuses for what stands in an earlier turn.

    Arguments that are no JSON object, which many chat templates fail on in every later request,
    go out wrapped in one. `reasoning_content` goes only to servers that demand it, and then with
    every tool turn.
    """
    return [_sound(m, reasoning) if m.get("role") == "assistant" else m for m in messages]


def _sound(message: Message, reasoning: bool) -> Message:
    calls = message.get("tool_calls")
    if "reasoning_content" in message and not reasoning:
        message = {k: v for k, v in message.items() if k != "reasoning_content"}
    elif reasoning and calls and "reasoning_content" not in message:
        message = {**message, "reasoning_content": ""}
    if not calls or all(_valid(c) for c in calls):
        return message
    return {**message, "tool_calls": [c if _valid(c) else _wrapped(c) for c in calls]}


def _valid(call: Any) -> bool:
    arguments = call["function"].get("arguments")
    return isinstance(arguments, str) and is_object(arguments)


def _wrapped(call: Any) -> dict[str, Any]:
    function = dict(call["function"])
    given = function.get("arguments") or {}
    plain = given if isinstance(given, dict) else {"malformed_arguments": given}
    function["arguments"] = msgspec.json.encode(plain).decode()
    return {**call, "function": function}


class ReplyBuilder:
    """Gathers one reply from whole messages or streamed deltas."""

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls = CallAssembler()
        self._usage = Usage()
        self._finish: str | None = None
        self._choices = 0
        self._logprobs: list[float] = []
        self._token_ids: list[int] = []
        self.model = ""
        self.fingerprint: str | None = None
        self.ended = False
        """`[DONE]` was seen."""

    @property
    def said_something(self) -> bool:
        """Content, reasoning, a refusal or a tool call has begun: more than a role."""
        texts = (self._content, self._reasoning, self._refusal)
        return bool(self._calls) or any(any(text) for text in texts)

    def add(self, payload: Any) -> None:
        """One chunk of a stream, or a whole answer."""
        if not isinstance(payload, dict):
            raise malformed(f"the answer is no JSON object: {shown(str(payload))}")
        get = payload.get
        if get("error") or get("object") == "error":
            error = error_in_body(payload)
            if error is not None:
                raise error
        self.model = get("model") or self.model
        self.fingerprint = get("system_fingerprint") or self.fingerprint
        if usage := get("usage"):
            self._usage = usage_of(usage)
        choices = get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> None:
        self._choices += 1
        part = choice.get("delta") or choice.get("message")
        if isinstance(part, dict):
            self._part(part)
        elif isinstance(choice.get("text"), str):
            self._content.append(choice["text"])
        self._finish = choice.get("finish_reason") or self._finish
        if "logprobs" in choice or "token_ids" in choice:
            self._tokens(choice)

    def _part(self, part: dict[str, Any]) -> None:
        get = part.get
        if (content := get("content")) is not None:
            _texts(content, self._content, self._reasoning)
        thought = get("reasoning_content")
        thought = thought if isinstance(thought, str) else get("reasoning")
        if isinstance(thought, str):
            self._reasoning.append(thought)
        refusal = get("refusal")
        if isinstance(refusal, str):
            self._refusal.append(refusal)
        calls = get("tool_calls")
        if calls is None and isinstance(get("function_call"), dict):
            calls = [{"index": 0, "function": part["function_call"]}]
        for call in calls if isinstance(calls, list) else ():
            self._calls.add(call)

    def _tokens(self, choice: dict[str, Any]) -> None:
        """Log-probabilities and token ids, where a server gives them: a trainer needs both."""
        logprobs = choice.get("logprobs")
        entries = logprobs.get("content") if isinstance(logprobs, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("logprob"), int | float):
                self._logprobs.append(float(entry["logprob"]))
        ids = choice.get("token_ids")
        if isinstance(ids, list):
            self._token_ids.extend(i for i in ids if isinstance(i, int))

    def finish(self) -> ChatReply:
        """The reply. Raises a retryable `ProviderError` when it did not come to an end."""
        if not self._choices:
            raise malformed("the answer has no choices")
        if self._finish is None and not self.ended:
            raise malformed("the answer ended without a finish reason")
        finish = str(self._finish or "stop").lower()
        finish = FINISH.get(finish, finish)
        if finish in ("error", "abort", "aborted", "cancelled"):
            raise malformed(f"the server broke the answer off: finish reason `{finish}`")
        said, thoughts = split_thinking(_joined(self._content))
        reasoning = _joined([*self._reasoning, thoughts or ""]).strip() or None
        said = self._recover_calls(said)
        calls = self._calls.finish(len(self._request.messages))
        if self._refusal and not said and not calls:
            said, finish = _joined(self._refusal), "content_filter"
        if finish in ("stop", "tool_calls") or finish not in ("length", "content_filter"):
            finish = "tool_calls" if calls else "stop"
        return ChatReply(
            content=said or None,
            reasoning=reasoning,
            tool_calls=calls,
            finish_reason=finish,
            usage=self._usage,
            model=str(self.model),
            fingerprint=self.fingerprint,
            logprobs=tuple(self._logprobs) or None,
            token_ids=tuple(self._token_ids) or None,
        )

    def _recover_calls(self, said: str) -> str:
        if self._calls or "<tool_call>" not in said or not self._request.text_calls:
            return said
        offered = {t.get("function", {}).get("name") for t in self._request.tools}
        found, rest = calls_in_text(said, offered)
        for call in found:
            self._calls.add({"id": "", "index": None, "function": call})
        return rest


def usage_of(found: Any) -> Usage:
    """Token counts under any of their names; what is not said stays unknown."""
    if not isinstance(found, dict):
        return Usage()
    details = found.get("prompt_tokens_details") or found.get("input_tokens_details")
    spent = found.get("completion_tokens_details") or found.get("output_tokens_details")
    cached = _count(details, "cached_tokens")
    if cached is None:
        cached = _count(found, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    return Usage(
        input_tokens=_count(found, "prompt_tokens", "input_tokens"),
        output_tokens=_count(found, "completion_tokens", "output_tokens"),
        cached_tokens=cached,
        reasoning_tokens=_count(spent, "reasoning_tokens"),
    )


def _count(found: Any, *names: str) -> int | None:
    if not isinstance(found, dict):
        return None
    for name in names:
        value = found.get(name)
        if isinstance(value, int) and value >= 0:
            return value
    return None


def _texts(content: Any, said: list[str], thoughts: list[str]) -> None:
    """Text of a message's content: plain, or a list of parts of which some are reasoning."""
    if isinstance(content, str):
        said.append(content)
        return
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            said.append(part)
        elif isinstance(part, dict):
            thinking = part.get("type") in ("thinking", "reasoning")
            inner = part.get("text", part.get("thinking", part.get("content")))
            _texts(inner, thoughts if thinking else said, thoughts)


def _joined(pieces: Iterable[str]) -> str:
    """Texts in one, with surrogate halves that were sent apart made whole."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
