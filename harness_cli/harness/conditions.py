"""Conditions on a request: when a prompt block is shown, when a hook runs.

condition := term (" or " term)*        term := factor (" and " factor)*
factor    := "not " factor | "(" condition ")" | atom
atom      := faq | history | events | anchor | channel == private | …
"""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import lru_cache

from harness_cli.errors import UsageError
from harness_cli.records.request import Request

Test = Callable[[Request], bool]

FLAGS: dict[str, Test] = {
    "faq": lambda request: bool(request.faq),
    "history": lambda request: bool(request.history),
    "events": lambda request: bool(request.events),
    "anchor": lambda request: bool(request.anchor),
}
VALUES: dict[str, tuple[Callable[[Request], str], tuple[str, ...]]] = {
    "channel": (lambda request: request.channel, ("public", "private")),
    "mode": (lambda request: request.mode, ("single", "multi")),
    "room.status": (lambda request: request.room.status, ("live", "preview", "ended")),
}
CONDITIONS = (
    *FLAGS,
    *(f"{name} == {value}" for name, (_, values) in VALUES.items() for value in values),
)
"""Every atom; combined by `and`, `or`, `not` and parentheses (`!=` reads as `not … ==`)."""
_TOKEN = re.compile(r"\s*(==|!=|[()]|[\w.]+|\S)")


def holds(when: str | None, request: Request) -> bool:
    """Whether a condition holds for a request; none always does.

    Raises `UsageError` for one that cannot be read.
    """
    return when is None or compiled(when)(request)


@lru_cache(maxsize=256)
def compiled(when: str) -> Test:
    """A condition as a function of a request. Raises `UsageError` with the nearest known word."""
    return _Parser(when).parse()


class _Parser:
    """Recursive descent over the few tokens of one condition."""

    def __init__(self, when: str) -> None:
        self.when = when
        self.tokens: Iterator[str] = iter(_TOKEN.findall(when))
        self.token = next(self.tokens, "")

    def parse(self) -> Test:
        test = self.either()
        if self.token:
            raise self.error(f"`{self.token}` is not expected here")
        return test

    def next(self) -> str:
        token, self.token = self.token, next(self.tokens, "")
        return token

    def either(self) -> Test:
        tests = [self.both()]
        while self.token == "or":
            self.next()
            tests.append(self.both())
        return tests[0] if len(tests) == 1 else lambda request: any(t(request) for t in tests)

    def both(self) -> Test:
        tests = [self.factor()]
        while self.token == "and":
            self.next()
            tests.append(self.factor())
        return tests[0] if len(tests) == 1 else lambda request: all(t(request) for t in tests)

    def factor(self) -> Test:
        word = self.next()
        if word == "not":
            inner = self.factor()
            return lambda request: not inner(request)
        if word == "(":
            inner = self.either()
            if self.next() != ")":
                raise self.error("a `)` is missing")
            return inner
        if word in FLAGS:
            return FLAGS[word]
        if word in VALUES:
            return self.comparison(word)
        raise self.error(f"`{word}` is no condition" if word else "a condition is missing", word)

    def comparison(self, word: str) -> Test:
        read, values = VALUES[word]
        sign, value = self.next(), self.next()
        if sign not in ("==", "!="):
            raise self.error(f"`{word}` needs `==` and a value")
        if value not in values:
            hint = f"`{word}` is {', '.join(values)}"
            raise UsageError(f"`{value}` is no value of `{word}` in `{self.when}`", hint=hint)
        return lambda request: (read(request) == value) is (sign == "==")

    def error(self, message: str, word: str = "") -> UsageError:
        near = get_close_matches(word, [*FLAGS, *VALUES], n=1, cutoff=0.6)
        meant = f"did you mean `{near[0]}`? " if near else ""
        return UsageError(
            f"{message} in `{self.when}`", hint=f"{meant}known: {', '.join(CONDITIONS)}"
        )
