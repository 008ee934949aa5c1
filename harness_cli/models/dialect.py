"""Parameters that a server does not know: learnt from its refusal, then left out.

Some endpoints answer 400 to `stream_options`, want `max_completion_tokens` for `max_tokens`, or fix
the temperature. The first refusal that names such a parameter changes the body of this and of every
later call of the policy; the reply's `retry_reasons` says so.
"""

import re
from typing import Any

from harness_cli.errors import ProviderError

_DROPPABLE = ("stream_options", "seed", "temperature", "top_p", "stop")
_REFUSED = re.compile(
    r"unsupported|not supported|unrecognized|unknown|unexpected|not permitted|extra inputs"
    r"|does not support|invalid parameter|not allowed",
    re.IGNORECASE,
)


class Dialect:
    """What one endpoint was found not to take."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """`body` as this endpoint takes it."""
        if not self.dropped:
            return body
        told = {k: v for k, v in body.items() if k not in self.dropped}
        if "max_tokens" in self.dropped and "max_tokens" in body:
            told["max_completion_tokens"] = body["max_tokens"]
        return told

    def learn(self, error: ProviderError, body: dict[str, Any]) -> str | None:
        """The parameter that `error` refuses and that was sent; None when it is another matter."""
        text = str(error)
        if error.status not in (400, 422) or not _REFUSED.search(text):
            return None
        if "max_completion_tokens" in text and "max_tokens" in body:
            self.dropped.append("max_tokens")
            return "max_tokens"
        for name in _DROPPABLE:
            if name in body and re.search(rf"\b{name}\b", text):
                self.dropped.append(name)
                return name
        return None
