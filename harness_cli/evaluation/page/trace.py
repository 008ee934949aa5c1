"""A trajectory as the page shows it: every text once, and nothing that only repeats another part.

A step's new messages repeat the answer and the tool results of the step before it; they are left
out where they are equal. Long texts (prompts, skill bodies, tool results that come again) are kept
apart and referred to as `{"$": [piece, index]}`.
"""

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from harness_cli.evaluation.page.chunks import Pieces, Place
from harness_cli.records.chat import ChatReply
from harness_cli.records.trajectory import HookEvent, Step, ToolCall, Trajectory
from harness_cli.records.verdict import ItemResult, Verdict
from harness_cli.store.runs import REF

LONG = 160
"""Characters from which a text is kept apart."""
LIMIT = 20_000
"""Characters of one text that a page shows; the number of those left out is said in its place."""
CUT = "\n… {n} more characters stand in the journal (harness show trajectory)"

Ref = dict[str, Place]


class Texts:
    """Long texts by content, each in the page once."""

    def __init__(self, pieces: Pieces, clean: Callable[[str], str]) -> None:
        self.cut = 0
        """Texts that were longer than `LIMIT`."""
        self._pieces = pieces
        self._clean = clean
        self._known: dict[bytes, Ref] = {}

    def shown(self, text: str) -> str | Ref:
        """The text, or a reference to it."""
        if len(text) < LONG:
            return text
        name = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if name not in self._known:
            self._known[name] = {"$": self._pieces.add(msgspec.json.encode(self._kept(text)))}
        return self._known[name]

    def _kept(self, text: str) -> str:
        if len(text) > LIMIT:
            self.cut += 1
            text = text[:LIMIT] + CUT.format(n=len(text) - LIMIT)
        return self._clean(text)


class Shower:
    """Turns records into what the page shows. `journal_text` finds a text a message refers to."""

    def __init__(self, texts: Texts, journal_text: Callable[[str], str]) -> None:
        self._texts = texts
        self._journal_text = journal_text
        self._of_journal: dict[str, str | Ref] = {}

    def trajectory(self, found: Trajectory) -> dict[str, Any]:
        """One rollout."""
        before: Step | None = None
        steps = []
        for step in found.steps:
            steps.append(self._step(step, before))
            before = step
        return _filled(
            agent=found.agent,
            policy=found.policy_id,
            harness=found.harness_id,
            skills=found.skills_loaded,
            offered=self._texts.shown(" ".join(found.tools_offered)),
            stop=str(found.stop),
            route=str(found.route),
            error=found.error,
            wall_s=found.wall_s,
            channel=found.channel,
            reply=self._texts.shown(found.reply),
            actions=[json.dumps(a, ensure_ascii=False) for a in found.actions],
            hooks=[_hook(h) for h in found.hooks],
            steps=steps,
        )

    def verdict(self, verdict: Verdict | None, result: ItemResult) -> dict[str, Any]:
        """What was found, by whom; the findings and assertions of the report's line count."""
        return _filled(
            judge=verdict.judge if verdict else "",
            cached=verdict.cached if verdict else False,
            unscored=verdict.unscored_reason if verdict else None,
            error=result.error,
            scores=result.scores,
            findings=[msgspec.to_builtins(f) for f in result.findings],
            assertions=[msgspec.to_builtins(a) for a in result.assertions],
            votes=[
                self._texts.shown(json.dumps(msgspec.to_builtins(v), ensure_ascii=False, indent=1))
                for v in (verdict.votes if verdict else ())
            ],
        )

    def question(self, found: Trajectory) -> str:
        """The last user message of the first step: what was asked, as far as a table shows it."""
        for message in reversed(found.steps[0].messages if found.steps else ()):
            if message.get("role") == "user":
                content = message.get("content")
                if isinstance(content, dict) and REF in content:
                    return self._journal_text(str(content[REF]))
                return _text_of(content)
        return ""

    def _step(self, step: Step, before: Step | None) -> dict[str, Any]:
        messages = [m for m in step.messages if not _repeats(m, before)]
        reply = step.reply
        return _filled(
            messages=[self._message(m) for m in messages],
            content=self._texts.shown(reply.content or ""),
            reasoning=self._texts.shown(reply.reasoning or ""),
            asked=_unanswered(step),
            calls=[self._call(c) for c in step.calls],
            hooks=[_hook(h) for h in step.hooks],
            fallback=step.fallback,
            error=step.error,
            model=_model(reply),
        )

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        rest = {k: v for k, v in message.items() if k not in ("role", "content")}
        return _filled(
            role=str(message.get("role", "")),
            text=self._content(message.get("content")),
            more=json.dumps(rest, ensure_ascii=False) if rest else "",
        )

    def _content(self, content: Any) -> str | Ref:
        if isinstance(content, dict) and REF in content:
            name = str(content[REF])
            if name not in self._of_journal:
                self._of_journal[name] = self._texts.shown(self._journal_text(name))
            return self._of_journal[name]
        return self._texts.shown(_text_of(content))

    def _call(self, call: ToolCall) -> dict[str, Any]:
        result = call.result
        return _filled(
            name=call.name,
            arguments=self._texts.shown(call.arguments_raw),
            ok=result.ok,
            error=result.error and str(result.error),
            content=self._texts.shown(result.content),
            structured=self._texts.shown(_beyond(result.content, result.structured)),
            latency_s=call.latency_s,
            cached=call.cached,
        )


def _filled(**fields: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {k: v for k, v in fields.items() if v not in (None, "", [], (), {}, False)}


def _hook(event: HookEvent) -> dict[str, Any]:
    return _filled(
        hook=event.hook,
        event=event.event,
        outcome=event.outcome,
        check=event.check,
        reason=event.reason,
    )


def _model(reply: ChatReply) -> dict[str, Any]:
    usage = reply.usage
    return _filled(
        name=reply.model or reply.policy,
        finish=reply.finish_reason and str(reply.finish_reason),
        input=usage.input_tokens,
        output=usage.output_tokens,
        latency_s=reply.latency_s,
        attempts=reply.attempts if reply.attempts > 1 else None,
        cached=reply.cached,
    )


def _unanswered(step: Step) -> list[str]:
    """Tool calls of the answer that no call of the step stands for."""
    made = {call.id for call in step.calls}
    return [f"{c.name}({c.arguments})" for c in step.reply.tool_calls if c.id not in made]


def _repeats(message: dict[str, Any], before: Step | None) -> bool:
    """The message says again what the step before it shows."""
    if before is None:
        return False
    content = message.get("content") or ""
    if message.get("role") == "assistant":
        return content == (before.reply.content or "") and _same_calls(message, before.reply)
    if message.get("role") == "tool":
        named = message.get("tool_call_id")
        return any(c.id == named and c.result.content == content for c in before.calls)
    return False


def _same_calls(message: dict[str, Any], reply: ChatReply) -> bool:
    asked: Sequence[Any] = message.get("tool_calls") or ()
    names = [call.get("function", {}).get("name") for call in asked if isinstance(call, dict)]
    return names == [call.name for call in reply.tool_calls]


def _beyond(content: str, structured: Any) -> str:
    """The structured form of a tool result where it says more than its text."""
    if structured is None:
        return ""
    try:
        if json.loads(content) == structured:
            return ""
    except ValueError:
        pass
    return json.dumps(structured, ensure_ascii=False)


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
