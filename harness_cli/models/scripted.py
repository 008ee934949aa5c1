"""A policy that says what it was told to say: for tests, demos and served examples.

Two forms. A *sequence* is consumed reply by reply, whoever asks. *Rules* are chosen by what the
last user message says and by how many answers followed it, so they hold no state: they answer the
same under any concurrency, and again after a resume.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile, ProviderError
from harness_cli.models.base import Deadline
from harness_cli.models.identity import policy_id
from harness_cli.records.canonical import canonical_json, digest
from harness_cli.records.chat import ChatReply, ChatRequest, Message, RawToolCall
from harness_cli.records.config import PolicyConfig
from harness_cli.records.counting import counted
from harness_cli.records.reader import read_yaml

Said = ChatReply | str | Exception
Scripted = Said | Callable[[ChatRequest], Said | Awaitable[Said]]
"""One entry of a script: a reply, its text, an error to raise, or a function of the request."""

RETRYABLE = {"rate_limit", "server", "transport", "malformed", "timeout", "stalled"}


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call of a scripted reply; arguments given as text are sent as they stand."""

    name: str
    arguments: dict[str, Any] | str = {}


class ScriptedReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply of a script file. `error` names a provider error kind and wins over the rest."""

    text: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    error: str | None = None
    delay_s: float = 0.0


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replies for user messages in which the pattern `when` is found.

    The first is given at once, the next after one answer of this policy, and so on.
    """

    when: str = ""
    replies: tuple[ScriptedReply, ...]


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A script file: `replies` in order, or `rules`."""

    schema: int = 1
    replies: tuple[ScriptedReply, ...] = ()
    rules: tuple[Rule, ...] = ()
    repeat: bool = False
    """Start `replies` again when they are used up."""


class ScriptedPolicy:
    """Gives the next reply of a sequence at every call, and keeps the requests it was asked.

    Used up, it raises a `ProviderError` that is not retryable, unless `repeat` starts it again.
    """

    def __init__(
        self,
        replies: Iterable[Scripted],
        *,
        name: str = "scripted",
        policy_id: str | None = None,
        repeat: bool = False,
    ) -> None:
        self._replies: Sequence[Scripted] = tuple(replies)
        self._repeat = repeat
        self._next = 0
        self.name = name
        self.id = policy_id or f"{name}@{digest([_stable(r) for r in self._replies])[:12]}"
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """The next entry of the script, within the deadline."""
        self.requests.append(request)
        count = len(self._replies)
        if self._next >= count and not (self._repeat and count):
            raise ProviderError.of(
                "bad_request",
                f"the script has only {counted(count, 'reply', 'replies')}",
                retryable=False,
            )
        entry = self._replies[self._next % count]
        self._next += 1
        return await say(entry, request, deadline, name=self.name)

    async def close(self) -> None:
        """Nothing is held."""


class RulePolicy:
    """Answers by rules, without state."""

    def __init__(self, rules: Sequence[Rule], *, name: str, policy_id: str) -> None:
        self._rules = [(re.compile(r.when, re.IGNORECASE), r.replies) for r in rules]
        self.name = name
        self.id = policy_id

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """The reply of the first rule found in the last user message."""
        asked, answered = last_question(request.messages)
        for pattern, replies in self._rules:
            if pattern.search(asked):
                entry = replies[min(answered, len(replies) - 1)]
                return await say(_function(entry, answered), request, deadline, name=self.name)
        raise ProviderError.of(
            "bad_request", f"no rule of the script fits `{asked[:80]}`", retryable=False
        )

    async def close(self) -> None:
        """Nothing is held."""


def open_scripted(name: str, config: PolicyConfig, root: Path) -> ScriptedPolicy | RulePolicy:
    """The policy of a script file; its path is relative to the project."""
    if not config.script:
        raise BadFile(f"policy `{name}` has no `script`", hint="name a file of replies or rules")
    script = read_script(root / config.script, name=config.script)
    made = policy_id(name, config, script=digest(script))
    if script.rules:
        return RulePolicy(script.rules, name=name, policy_id=made)
    replies = [_function(r, n) for n, r in enumerate(script.replies)]
    return ScriptedPolicy(replies, name=name, policy_id=made, repeat=script.repeat)


def read_script(path: Path, *, name: str | None = None) -> Script:
    """A script file; raises `BadFile` for what cannot be meant."""
    name = name or str(path)
    script = read_yaml(path, Script, name=name)
    if script.schema != 1:
        raise BadFile(f"{name}: schema {script.schema} is not known", hint="this is 1")
    if bool(script.rules) == bool(script.replies):
        raise BadFile(f"{name}: a script has either `replies` or `rules`")
    for number, rule in enumerate(script.rules):
        if not rule.replies:
            raise BadFile(f"{name}: rules[{number}] has no replies")
        try:
            re.compile(rule.when)
        except (re.error, RecursionError, OverflowError) as exc:
            raise BadFile(f"{name}: rules[{number}].when `{rule.when}`: {exc}") from exc
    return script


async def say(entry: Scripted, request: ChatRequest, deadline: Deadline, *, name: str) -> ChatReply:
    """What an entry of a script comes to; raises it when it is an error."""
    said = entry
    if callable(said):
        made = said(request)
        if inspect.isawaitable(made):
            try:
                async with asyncio.timeout(deadline.left()):
                    made = await made
            except TimeoutError as exc:
                raise ProviderError.of("timeout", "no answer in time", retryable=True) from exc
        said = made
    if isinstance(said, Exception):
        raise said
    if isinstance(said, str):
        said = ChatReply(content=said, finish_reason="stop")
    if not said.policy:
        said = msgspec.structs.replace(said, policy=name, model=said.model or name)
    return said


def tool_reply(*calls: tuple[str, dict[str, Any] | str], content: str | None = None) -> ChatReply:
    """A reply that calls tools: `tool_reply(("get_faq", {"question": "…"}))`."""
    made = tuple(
        RawToolCall(id=f"call_{n}", name=tool, arguments=_text(arguments))
        for n, (tool, arguments) in enumerate(calls)
    )
    return ChatReply(content=content, tool_calls=made, finish_reason="tool_calls")


def last_question(messages: Sequence[Message]) -> tuple[str, int]:
    """The text of the last user message, and how many assistant turns followed it."""
    answered = 0
    for message in reversed(messages):
        if message.get("role") == "user":
            return _plain(message.get("content")), answered
        answered += message.get("role") == "assistant"
    return "", answered


def _function(entry: ScriptedReply, turn: int) -> Callable[[ChatRequest], Awaitable[Said]]:
    async def give(_: ChatRequest) -> Said:
        await asyncio.sleep(entry.delay_s)
        if entry.error:
            return ProviderError.of(
                entry.error, "as the script says", retryable=entry.error in RETRYABLE
            )
        calls = tuple(
            RawToolCall(id=f"call_{turn}_{n}", name=c.name, arguments=_text(c.arguments))
            for n, c in enumerate(entry.calls)
        )
        return ChatReply(
            content=entry.text,
            reasoning=entry.reasoning,
            tool_calls=calls,
            finish_reason=entry.finish_reason or ("tool_calls" if calls else "stop"),
        )

    return give


def _text(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else canonical_json(arguments).decode()


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def _stable(entry: Scripted) -> Any:
    """What of an entry can be digested: functions count by name, errors by message."""
    if isinstance(entry, ChatReply | str):
        return entry
    return str(entry) if isinstance(entry, Exception) else getattr(entry, "__qualname__", "")
