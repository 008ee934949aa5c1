"""Assertions on the reply and on how it was made (promptfoo's names and meanings)."""

import json
import re
from typing import Any

from harness_cli.errors import JudgeError
from harness_cli.judges.bounded import search
from harness_cli.judges.grounded.acts import declines
from harness_cli.judges.outcome import Outcome, number, within
from harness_cli.records.canonical import whole_numbers
from harness_cli.records.counting import counted
from harness_cli.records.item import Assertion
from harness_cli.records.trajectory import StopReason, Trajectory

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


def contains(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """`contains`, `icontains` and their `-all` and `-any` forms."""
    kind = assertion.type.removeprefix("not-")
    fold = kind.startswith("i")
    text = trajectory.reply.lower() if fold else trajectory.reply
    parts = listed(assertion.value, kind) if kind.endswith(("-all", "-any")) else [assertion.value]
    wanted = [_plain(p, kind) for p in parts]
    missing = [w for w in wanted if (w.lower() if fold else w) not in text]
    passed = len(missing) < len(wanted) if kind.endswith("-any") else not missing
    return Outcome(passed, f"missing: {', '.join(missing)}" if missing else "contained")


def regex(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The pattern occurs in the reply."""
    if not isinstance(assertion.value, str):
        raise JudgeError("regex needs a pattern")
    found = search(assertion.value, trajectory.reply)
    return Outcome(found, "matched" if found else f"`{assertion.value}` does not occur")


def equals(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The reply is this text; for an object or list, this JSON value."""
    if isinstance(assertion.value, dict | list):
        value = parsed(trajectory.reply)
        same = value is not _NOTHING and whole_numbers(value) == whole_numbers(assertion.value)
    else:
        same = trajectory.reply == _plain(assertion.value, "equals")
    return Outcome(same, "equal" if same else "the reply is another")


def is_json(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The reply is one JSON value; with a schema as value, one that it admits."""
    value = parsed(trajectory.reply)
    if value is _NOTHING:
        return Outcome(False, "the reply is no JSON")
    schema = assertion.value
    if schema is None:
        return Outcome(True, "JSON")
    if isinstance(schema, str):
        schema = parsed(schema)
    if not isinstance(schema, dict):
        raise JudgeError("is-json takes a JSON Schema as its value")
    return _admitted(value, schema)


def _admitted(value: Any, schema: dict[str, Any]) -> Outcome:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
        error = best_match(Draft202012Validator(schema).iter_errors(value))
    except (SchemaError, Unresolvable) as exc:
        raise JudgeError(f"is-json: the schema is none: {str(exc).splitlines()[0]}") from exc
    return Outcome(error is None, "admitted" if error is None else str(error.message))


def levenshtein(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The edit distance to the value is at most the threshold (5)."""
    most = 5.0 if assertion.threshold is None else assertion.threshold
    distance = edit_distance(trajectory.reply, _plain(assertion.value, "levenshtein"))
    return Outcome(distance <= most, f"distance {distance}, at most {most:g}")


def edit_distance(a: str, b: str) -> int:
    """Insertions, deletions and substitutions between two texts (Levenshtein 1966)."""
    if len(a) < len(b):
        a, b = b, a
    if len(a) * len(b) > 25_000_000:
        raise JudgeError("levenshtein: the texts are too long to compare")
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            change = previous + (left != right)
            previous = row[j]
            row[j] = min(change, row[j] + 1, row[j - 1] + 1)
    return row[-1]


def word_count(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """So many words, or `{min, max}`; every Chinese character counts as a word."""
    count = count_words(trajectory.reply)
    value = assertion.value
    if isinstance(value, dict):
        passed = within(count, value.get("min"), value.get("max"), "word-count")
    else:
        passed = count == number(value, "word-count")
    return Outcome(passed, f"{counted(count, 'word')}")


def count_words(text: str) -> int:
    """Blank-separated words, as promptfoo counts, and each CJK character as one of its own."""
    return len(_CJK.findall(text)) + len(_CJK.sub(" ", text).split())


def latency(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The whole rollout took at most so many milliseconds; undecided for replayed answers."""
    if assertion.threshold is None:
        raise JudgeError("latency needs a threshold in milliseconds")
    if any(s.reply.cached or any(c.cached for c in s.calls) for s in trajectory.steps):
        raise JudgeError("latency is decided by fresh answers only, these were replayed")
    spent = trajectory.wall_s * 1000
    return Outcome(spent <= assertion.threshold, f"{spent:.0f} ms of {assertion.threshold:g}")


def cost(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The rollout cost at most so many dollars; undecided when a price or usage is unknown."""
    if assertion.threshold is None:
        raise JudgeError("cost needs a threshold in dollars")
    spent = [s.reply.cost for s in trajectory.steps]
    known = [c for c in spent if c is not None]
    if len(known) < len(spent):
        raise JudgeError("the cost is unknown")
    total = sum(known)
    return Outcome(total <= assertion.threshold, f"{total:.6f} of {assertion.threshold:g} dollars")


def finish_reason(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The last model call ended for this reason (stop, tool_calls, length, content_filter)."""
    wanted = _plain(assertion.value, "finish-reason").lower()
    if not trajectory.steps:
        return Outcome(False, "no model call was made")
    ended = trajectory.steps[-1].reply.finish_reason.lower()
    return Outcome(ended == wanted, f"ended by {ended}")


def is_refusal(assertion: Assertion, trajectory: Trajectory) -> Outcome:  # noqa: ARG001
    """The reply declines, or nothing is said (an empty reply is a refusal, as in promptfoo)."""
    if trajectory.stop is StopReason.REFUSED:
        return Outcome(True, "the policy refused")
    if not trajectory.reply.strip():
        return Outcome(True, "nothing was said")
    found = declines(trajectory.reply)
    return Outcome(found, "declines" if found else "does not decline")


def listed(value: Any, kind: str) -> list[Any]:
    """A list, or text with commas between its parts (promptfoo; `\"a, b\"` in quotes stays one)."""
    if isinstance(value, list) and value:
        return value
    if isinstance(value, str) and value.strip():
        parts = re.findall(r'\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)', value)
        found = [(quoted.replace('""', '"') if quoted else bare.strip()) for quoted, bare in parts]
        return [f for f in found if f]
    raise JudgeError(f"{kind} needs a list of texts")


class _Nothing:
    pass


_NOTHING = _Nothing()


def parsed(text: str) -> Any:
    """The JSON value of a text, or `_NOTHING` when it is none (NaN is none)."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NOTHING


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _plain(value: Any, kind: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise JudgeError(f"{kind} needs a text as its value")
    return str(whole_numbers(value))
