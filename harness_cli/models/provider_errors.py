"""What an endpoint's refusal means: its kind, whether to ask again, and what a person can do."""

import email.utils
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.errors import ProviderError

SHOWN = 300
"""Characters of a server's message that are shown."""

_BY_STATUS = {
    401: ("auth", False),
    402: ("auth", False),
    403: ("auth", False),
    408: ("timeout", True),
    409: ("server", True),
    425: ("server", True),
    429: ("rate_limit", True),
    501: ("bad_request", False),
    505: ("bad_request", False),
}
_SPENT = ("insufficient_quota", "insufficient_balance", "billing_hard_limit_reached")
"""Codes of a 429 that no waiting cures."""


def status_error(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float | None = None
) -> ProviderError:
    """The error of an answer whose status is not 200. Header names are lower case.

    `now` is seconds since the epoch, for a Retry-After that names a date.
    """
    said, code = _message(body)
    kind, retryable = _BY_STATUS.get(
        status, ("server", True) if status >= 500 else ("bad_request", False)
    )
    if code in _SPENT:
        kind, retryable = "auth", False
    error = ProviderError.of(
        kind,
        f"the endpoint answered {status}" + (f": {said}" if said else ""),
        retryable=retryable,
        status=status,
        retry_after_s=retry_after(headers, now=now) if retryable else None,
    )
    if 300 <= status < 400:
        error.hint = f"`base_url` is redirected to {headers.get('location', 'elsewhere')}"
    elif status == 404:
        error.hint = "check `base_url` (it usually ends in /v1) and `model`"
    elif "reasoning_content" in said:
        error.hint = "set `send_back_reasoning: true` for this policy in harness.yaml"
    return error


def error_in_body(payload: Any) -> ProviderError | None:
    """The error that some servers put into a 200 answer or into one event of its stream."""
    if not isinstance(payload, dict):
        return None
    found = payload.get("error")
    if payload.get("object") == "error":
        found = payload
    if not found or payload.get("choices"):
        return None
    said, code = _of_error(found)
    status = next((c for c in (_number(found, "code"), _number(found, "status")) if c), None)
    if status and 400 <= status < 600:
        kind, retryable = _BY_STATUS.get(
            status, ("server", True) if status >= 500 else ("bad_request", False)
        )
    elif "rate" in code and "limit" in code:
        kind, retryable = "rate_limit", True
    elif "auth" in code or "api_key" in code or "permission" in code:
        kind, retryable = "auth", False
    elif "invalid_request" in code or "bad_request" in code or "not_found" in code:
        kind, retryable = "bad_request", False
    else:
        kind, retryable = "server", True
    return ProviderError.of(
        kind, f"the endpoint answered with an error: {said}", retryable=retryable, status=status
    )


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds the server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.

    RFC 9110 §10.2.3. None when there is no such header or it cannot be read.
    """
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - (now or time.time())
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def malformed(what: str) -> ProviderError:
    """An answer that is no answer: cut short, not JSON, without an end. Worth another try."""
    return ProviderError.of("malformed", what, retryable=True)


def transport(what: str) -> ProviderError:
    """The connection failed or broke."""
    return ProviderError.of("transport", what, retryable=True)


def stalled(seconds: float) -> ProviderError:
    """A server that fell silent."""
    return ProviderError.of("stalled", f"nothing came for {seconds:g} s", retryable=True)


def shown(data: bytes | str) -> str:
    """The beginning of an answer, on one line, for a message."""
    text = data[: 4 * SHOWN].decode("utf-8", "replace") if isinstance(data, bytes) else data
    text = " ".join(text.split())
    return text[:SHOWN] + ("…" if len(text) > SHOWN else "")


def _message(body: bytes) -> tuple[str, str]:
    try:
        payload = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return shown(body), ""
    if isinstance(payload, dict):
        return _of_error(payload.get("error") or payload.get("detail") or payload)
    return shown(body), ""


def _of_error(found: Any) -> tuple[str, str]:
    """(message, code or type in lower case) of an error object of any dialect."""
    if isinstance(found, dict):
        text = found.get("message") or found.get("detail") or found.get("msg")
        said = text if isinstance(text, str) else msgspec.json.encode(text or found).decode()
        code = f"{found.get('code') or found.get('type') or ''}".lower()
        return shown(said), code
    return shown(found if isinstance(found, str) else msgspec.json.encode(found)), ""


def _number(found: Any, key: str) -> int | None:
    value = found.get(key) if isinstance(found, dict) else None
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if isinstance(value, int) else None
