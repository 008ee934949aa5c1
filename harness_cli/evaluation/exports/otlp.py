"""Spans on the wire: OTLP in JSON or protobuf, to a file or over HTTP to a collector.

Source: OTLP 1.x, `opentelemetry/proto/trace/v1/trace.proto` for field numbers, and the
specification of OTLP/HTTP for paths, status codes and partial success.
"""

import os
import ssl
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from harness_cli import __version__
from harness_cli.errors import HarnessError, UsageError
from harness_cli.store.redact import redact

Values = dict[str, Any]
Protocol = Literal["http/protobuf", "http/json"]
SCHEMA: Final = "https://opentelemetry.io/schemas/1.41.0"
BATCH: Final = 512
"""Spans of one request; a rollout is never split."""
TIMEOUT_S: Final = 10.0
TRIES: Final = 4
_AGAIN: Final = frozenset({429, 502, 503, 504})
HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
_BYTES, _TEXT, _FIXED, _INT, _LIST, _ONE = "bytes", "text", "fixed", "int", "list", "one"
_FIELDS: Final[dict[str, dict[str, tuple[int, str, str]]]] = {
    "request": {"resourceSpans": (1, _LIST, "resource_spans")},
    "resource_spans": {
        "resource": (1, _ONE, "resource"),
        "scopeSpans": (2, _LIST, "scope_spans"),
        "schemaUrl": (3, _TEXT, ""),
    },
    "resource": {"attributes": (1, _LIST, "pair")},
    "scope_spans": {
        "scope": (1, _ONE, "scope"),
        "spans": (2, _LIST, "span"),
        "schemaUrl": (3, _TEXT, ""),
    },
    "scope": {"name": (1, _TEXT, ""), "version": (2, _TEXT, "")},
    "span": {
        "traceId": (1, _BYTES, ""),
        "spanId": (2, _BYTES, ""),
        "parentSpanId": (4, _BYTES, ""),
        "name": (5, _TEXT, ""),
        "kind": (6, _INT, ""),
        "startTimeUnixNano": (7, _FIXED, ""),
        "endTimeUnixNano": (8, _FIXED, ""),
        "attributes": (9, _LIST, "pair"),
        "events": (11, _LIST, "event"),
        "status": (15, _ONE, "status"),
    },
    "event": {
        "timeUnixNano": (1, _FIXED, ""),
        "name": (2, _TEXT, ""),
        "attributes": (3, _LIST, "pair"),
    },
    "status": {"message": (2, _TEXT, ""), "code": (3, _INT, "")},
    "pair": {"key": (1, _TEXT, ""), "value": (2, _ONE, "value")},
    "value": {
        "stringValue": (1, _TEXT, ""),
        "boolValue": (2, _INT, ""),
        "intValue": (3, _INT, ""),
        "doubleValue": (4, "double", ""),
        "arrayValue": (5, _ONE, "array"),
    },
    "array": {"values": (1, _LIST, "value")},
}
"""Message → JSON name → (field number, how it is written, message inside)."""


@dataclass(slots=True)
class Sent:
    """What a collector took."""

    rollouts: int = 0
    spans: int = 0
    rejected: int = 0
    requests: int = 0


def request(spans: list[Values]) -> Values:
    """An `ExportTraceServiceRequest` of spans of this program."""
    resource = [
        {"key": "service.name", "value": {"stringValue": "harness"}},
        {"key": "service.version", "value": {"stringValue": __version__}},
    ]
    scope = {"name": "harness_cli", "version": __version__}
    inside = {"scope": scope, "spans": spans, "schemaUrl": SCHEMA}
    return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [inside]}]}


def batches(rollouts: Iterable[list[Values]]) -> Iterator[tuple[int, list[Values]]]:
    """(rollouts, spans) of one request after another, in constant memory."""
    count, spans = 0, list[Values]()
    for one in rollouts:
        if spans and len(spans) + len(one) > BATCH:
            yield count, spans
            count, spans = 0, []
        count += 1
        spans = [*spans, *one]
    if spans:
        yield count, spans


def protobuf(message: Values, kind: str = "request") -> bytes:
    """A message in protobuf's wire format; `message` is its JSON form."""
    made = bytearray()
    for name, (number, how, inside) in _FIELDS[kind].items():
        if name not in message:
            continue
        value = message[name]
        for one in value if how == _LIST else (value,):
            made += _field(number, how, protobuf(one, inside) if inside else one)
    return bytes(made)


def _field(number: int, how: str, value: Any) -> bytes:
    if how == _INT:
        return _varint(number << 3) + _varint(int(value) & (1 << 64) - 1)
    if how == _FIXED:
        return _varint(number << 3 | 1) + struct.pack("<Q", int(value))
    if how == "double":
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    data = bytes.fromhex(value) if how == _BYTES else value
    data = data.encode("utf-8", "replace") if isinstance(data, str) else data
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


class Collector:
    """One OTLP/HTTP endpoint."""

    def __init__(self, endpoint: str, protocol: Protocol) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"`{redact(endpoint)}` is no HTTP endpoint", hint="http://127.0.0.1:4318"
            )
        path = parts.path.rstrip("/")
        self._path = path if path.endswith("/v1/traces") else f"{path}/v1/traces"
        self._host, self._port, self._tls = parts.hostname, parts.port, parts.scheme == "https"
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._path}"
        self._protocol = protocol
        self._headers = headers(os.environ.get(HEADERS, ""))

    def send(self, spans: list[Values]) -> int:
        """Spans that the collector rejected of these. Raises `HarnessError` where it took none.

        What is worth it (a busy collector, a connection that is refused) is tried again.
        """
        whole = request(spans)
        as_json = self._protocol == "http/json"
        body = msgspec.json.encode(whole) if as_json else protobuf(whole)
        told, wait = "", 0.5
        for left in reversed(range(TRIES)):
            status, told, data, after = self._post(body)
            if status == 200:
                return rejected(data, as_json=as_json)
            if (status not in _AGAIN and status != 0) or not left:
                break
            time.sleep(min(after or wait, TIMEOUT_S))
            wait *= 2
        raise HarnessError(
            f"{self.url} did not take the spans: {redact(told)}",
            hint="is a collector listening there? its HTTP port is 4318 as a rule",
        )

    def _post(self, body: bytes) -> tuple[int, str, bytes, float | None]:
        """(status or 0, what went wrong, body, seconds to wait)."""
        kind = "json" if self._protocol == "http/json" else "x-protobuf"
        fields = {**self._headers, "Content-Type": f"application/{kind}"}
        tls = HTTPSConnection if self._tls else None
        try:
            made = (
                tls(self._host, self._port, timeout=TIMEOUT_S, context=ssl.create_default_context())
                if tls
                else HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
            )
            try:
                made.request("POST", self._path, body=body, headers=fields)
                answer = made.getresponse()
                data = answer.read(1 << 20)
            finally:
                made.close()
        except (OSError, HTTPException) as exc:
            return 0, str(exc) or type(exc).__name__, b"", None
        after = answer.headers.get("Retry-After", "")
        said = f"{answer.status} {answer.reason} {data[:200].decode('utf-8', 'replace')}".strip()
        return answer.status, said, data, float(after) if after.isdigit() else None


def headers(text: str) -> dict[str, str]:
    """`key=value,key=value` as OpenTelemetry's own exporters read it, values percent-encoded."""
    found = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{HEADERS} is no list of key=value pairs")
        found[key.strip()] = unquote(value.strip())
    return found


def rejected(data: bytes, *, as_json: bool) -> int:
    """`rejected_spans` of an `ExportTraceServiceResponse`; 0 where all were kept."""
    if as_json:
        try:
            found = msgspec.json.decode(data or b"{}")
            return int(found.get("partialSuccess", {}).get("rejectedSpans", 0))
        except (msgspec.DecodeError, AttributeError, ValueError, TypeError):
            return 0
    partial = next((v for n, v in fields_of(data) if n == 1 and isinstance(v, bytes)), b"")
    return next((v for n, v in fields_of(partial) if n == 1 and isinstance(v, int)), 0)


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a protobuf message's fields; ends where the bytes are no message."""
    at = 0
    while at < len(data):
        key, at = _read(data, at)
        size, value = 0, 0
        if key & 7 in (0, 2):
            value, at = _read(data, at)
        if key & 7 == 0:
            yield key >> 3, value
            continue
        size = {1: 8, 2: value, 5: 4}.get(key & 7, len(data))
        yield key >> 3, data[at : at + size]
        at += size


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 128:
            break
    return value, at
