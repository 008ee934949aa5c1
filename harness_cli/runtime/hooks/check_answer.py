"""Checks on one answer of the model: its form, its calls, and whether it goes in circles."""

from collections import Counter

from harness_cli.records.counting import counted
from harness_cli.runtime.arguments import same_call
from harness_cli.runtime.hooks.check_text import Found
from harness_cli.runtime.hooks.moment import Asked, Moment, Objection
from harness_cli.runtime.hooks.patterns import compiled, find

_LEFTOVER = compiled(
    r"</?(?:tool_calls?|function_calls?|invoke|tool_response|think|function=)[^<>\n]{0,80}>?"
    r"|<\|[a-z_▁]{2,40}\|>|<｜[^｜<>]{2,40}｜>"
)


def malformed_output(allow_empty_after: tuple[str, ...] = ("refuse",)) -> Found:
    """The answer is a text or calls: not empty, not cut off, no call or tag left in the text.

    An empty text is an answer only after one of `allow_empty_after` was called.
    """

    def check(moment: Moment) -> Objection | None:
        answer = moment.answer
        if answer is None or answer.tool_calls:
            return None
        text = answer.content or ""
        if not text.strip():
            if any(c.name in allow_empty_after for c in moment.calls):
                return None
            return Objection(reason="the answer has neither text nor tool calls")
        if answer.finish_reason == "length":
            return Objection(reason="the answer was cut off; say it shorter")
        found = find(_LEFTOVER, text)
        if found is not None:
            return Objection(reason=f"the text contains `{found[:40]}`; call tools as tool calls")
        return None

    return check


def parallel_mutations(limit: int = 1) -> Found:
    """At most `limit` calls of one answer change anything: their order would be undefined."""

    def check(moment: Moment) -> Objection | None:
        changing = [
            i for i, a in enumerate(moment.asked_calls()) if a.tool is not None and _changes(a)
        ]
        if len(changing) <= limit:
            return None
        return Objection(
            reason="calls that change something go one at a time",
            calls=tuple(changing[limit:]),
        )

    return check


def repeat_call(limit: int = 2) -> Found:
    """The same call with the same arguments is not made more than `limit` times."""

    def check(moment: Moment) -> Objection | None:
        if not moment.asked_calls():
            return None
        seen = _counted(moment)
        again: list[int] = []
        for index, asked in enumerate(moment.asked_calls()):
            key = _key(asked)
            seen[key] += 1
            if seen[key] > limit:
                again.append(index)
        if not again:
            return None
        return Objection(
            reason="this call was made before with the same arguments; use its result",
            calls=tuple(again),
        )

    return check


def loop_stop(limit: int = 3) -> Found:
    """The rollout does not repeat itself: one call, or one refused text, `limit` times over."""

    def check(moment: Moment) -> Objection | None:
        asked, seen = moment.asked_calls(), _counted(moment)
        seen.update(_key(a) for a in asked)
        if asked and max(seen[_key(a)] for a in asked) >= limit:
            return Objection(reason=f"the same call was made {counted(limit, 'time')}")
        text = (moment.answer.content or "").strip() if moment.answer else ""
        if text and not asked and moment.said.count(text) + 1 >= limit:
            return Objection(reason=f"the same refused text was proposed {counted(limit, 'time')}")
        return None

    return check


def _changes(asked: Asked) -> bool:
    return asked.tool is not None and asked.tool.executor != "builtin" and asked.tool.mutates


def _counted(moment: Moment) -> Counter[str]:
    return Counter(same_call(c.name, c.arguments, c.arguments_raw) for c in moment.calls)


def _key(asked: Asked) -> str:
    return same_call(asked.name, asked.arguments, asked.arguments_raw)
