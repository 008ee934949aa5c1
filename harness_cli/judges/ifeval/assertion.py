"""The assertion `ifeval`: one verifiable instruction, strictly and loosely."""

import inspect
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from harness_cli.errors import JudgeError
from harness_cli.judges.ifeval.checks import CHECKS, arguments_of
from harness_cli.judges.outcome import Outcome
from harness_cli.records.item import Assertion
from harness_cli.records.trajectory import Trajectory

LOOSELY = "loosely"
"""Arguments that hold for the loose pass alone."""


def ifeval(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """Followed strictly; `score` is 1 where it is followed loosely and 0 where not even that.

    The value is `{"instruction": id, **arguments}`. An instruction that is followed strictly is
    followed loosely, so the two results are two numbers of one assertion.
    """
    name, arguments, loose = instruction_of(assertion.value)
    strict = follows(name, arguments, trajectory.reply)
    loosely = any(follows(name, loose, text) for text in relaxed(trajectory.reply))
    said = "followed" if strict else "followed loosely" if loosely else "not followed"
    return Outcome(strict, f"{name}: {said}", score=float(loosely))


def follows(name: str, arguments: Mapping[str, Any], text: str) -> bool:
    """Whether one text follows one instruction; blank text follows none."""
    if not text.strip():
        return False
    try:
        return bool(CHECKS[name](text, **arguments))
    except (re.error, RecursionError, OverflowError) as exc:
        raise JudgeError(f"{name}: a word is no pattern: {exc}") from exc


def relaxed(text: str) -> Iterator[str]:
    """The text and its seven relaxations: without first line, last line, both, and asterisks."""
    lines = text.split("\n")
    cut = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    for version in (text, *cut):
        yield version
        yield version.replace("*", "")


def instruction_of(value: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Name, arguments, arguments of the loose pass. Raises `JudgeError` for what is none."""
    if not isinstance(value, dict) or not isinstance(value.get("instruction"), str):
        raise JudgeError("ifeval needs `{instruction: …}` with the instruction's arguments")
    name = value["instruction"]
    check = CHECKS.get(name)
    if check is None:
        near = get_close_matches(name, CHECKS, n=1)
        meant = f", did you mean `{near[0]}`?" if near else ""
        raise JudgeError(f"IFEval has no instruction `{name}`{meant}")
    given = arguments_of({k: v for k, v in value.items() if k not in ("instruction", LOOSELY)})
    wanted = {p.name for p in inspect.signature(check).parameters.values()} - {"text"}
    if given.keys() != wanted:
        raise JudgeError(f"{name} takes {', '.join(sorted(wanted)) or 'no arguments'}")
    return name, given, {**given, **value.get(LOOSELY, {})}
