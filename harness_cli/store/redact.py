"""Keys out of everything that is written: journals, cassettes, logs, error messages.

Two nets: the *values* of environment variables whose names look secret, and texts that look like a
key whoever set them. A run makes one `Redactor`; `redact` is for the odd message.
"""

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

MASK = "[redacted]"
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_LONG = 1024
_SHORTEST = 8
"""A shorter value (`1`, `true`, `none`) is no secret and would blot out half of every text."""


def _prefixed(mark: str, rest: str) -> re.Pattern[str]:
    """`mark` at the start of a word, then `rest`.

    The look-behind stands after the mark, so that `re` still searches for the mark as plain text:
    8 KB in some ten microseconds instead of three hundred.
    """
    return re.compile(rf"{mark}(?<![A-Za-z0-9]{mark}){rest}", re.ASCII)


_SHAPES = (
    _prefixed("sk-", r"[\w-]{16,}"),
    *(_prefixed(m, r"(?=[\w-]*[0-9])[\w-]{16,}") for m in ("sk_", "pk_", "pk-", "rk_", "rk-")),
    _prefixed("gh", r"[opsur]_[A-Za-z0-9]{20,}"),
    _prefixed("github_pat_", r"\w{20,}"),
    _prefixed("xox", r"[abprs]-[A-Za-z0-9-]{10,}"),
    _prefixed("hf_", r"[A-Za-z0-9]{20,}"),
    _prefixed("AKIA", r"[0-9A-Z]{16}\b"),
    _prefixed("AIza", r"[\w-]{30,}"),
    _prefixed("eyJ", r"[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}"),
)
_SCHEMES = tuple(
    re.compile(rf"({word}\s+)(?=[\w.~+/=-]*[0-9])[\w.~+/=-]{{12,}}", re.ASCII)
    for word in ("Bearer", "bearer", "BEARER", "Basic", "basic")
)
_ASSIGNED = tuple(
    re.compile(rf"({word}[\"'\\]*\s*[:=]\s*[\"'\\]*)(?=[\w./+-]*[0-9])[\w./+-]{{12,}}", re.ASCII)
    for end in ("key", "token", "secret", "password")
    for word in (end, end.capitalize(), end.upper())
)
_PATTERNS = tuple(
    (re.split(r"[^A-Za-z_-]", p.pattern.removeprefix("("))[0], p, instead)
    for patterns, instead in ((_SHAPES, MASK), ((*_SCHEMES, *_ASSIGNED), rf"\1{MASK}"))
    for p in patterns
)
"""The plain text a pattern starts with, the pattern, and what takes its match's place: looking for
plain text costs a twentieth of a search by `re`, and most texts hold none of them."""
_USERINFO = re.compile(r"://[^/\s:@\"']+:[^/\s@\"']+(?=@)")
_SECRET_FIELD = re.compile(
    r"(?i)^(?:authorization|proxy-authorization|x-api-key|api[-_]?key|cookie|set-cookie|password)$"
)


class Redactor:
    """Masks a fixed set of values and everything that has the shape of a key."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)
        self._values = tuple(known)
        # Long texts are mostly one prompt that comes again with every call of a run.
        self._long = lru_cache(maxsize=256)(self._scan)

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, *, more: Iterable[str] = ()
    ) -> "Redactor":
        """The redactor of the secrets of an environment (this process's by default)."""
        found = os.environ if environment is None else environment
        return cls([*(v for k, v in found.items() if _SECRET_NAME.search(k)), *more])

    def text(self, text: str) -> str:
        """`text` with every secret masked."""
        return self._scan(text) if len(text) < _LONG else self._long(text)

    def once(self, text: str) -> str:
        """The same, for a text that hardly comes again: it is not remembered."""
        return self._scan(text)

    def _scan(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        for mark, pattern, instead in _PATTERNS:
            if mark in text:
                text = pattern.sub(instead, text)
        if "://" in text and "@" in text:
            text = _USERINFO.sub(f"://{MASK}", text)
        return text

    def value(self, value: Any) -> Any:
        """Plain data with every secret in its texts, keys included, masked at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._key(k): self._field(k, v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(v) for v in value]
        return value

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _field(self, key: Any, value: Any) -> Any:
        if isinstance(key, str) and isinstance(value, str) and _SECRET_FIELD.match(key) and value:
            return MASK
        return self.value(value)


def redact(text: str) -> str:
    """`text` without the secrets of this process's environment and without what looks like one."""
    return Redactor.from_environment().text(text)


def redact_value(value: Any) -> Any:
    """Plain data (dicts, lists, texts, numbers) redacted at any depth."""
    return Redactor.from_environment().value(value)
