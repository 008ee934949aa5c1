"""One line of an SGLang log → what kind it is and its numbers.

Batch lines of 34 versions have this in common: a bracketed prefix with the time and the tags of the
process, `Prefill batch` or `Decode batch`, and `key: value` pairs between commas. Keys come and go
with versions, models and options, so the pairs are read as they are and named here; what is not
known is kept by its own name. `docs/mtp.md` lists the variants.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["prefill", "decode", "other", "foreign", "mangled"]

PREFIX: Final = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)((?: [A-Z_]+\d+)*)\] ?"
)
"""A bracket may be lost and another logger's time may stand in front: the last prefix counts."""
BATCH: Final = re.compile(r"(Prefill|Decode) batch(?: \[(\d+)\])?([,.]) ")
PAIR: Final = re.compile(r"([#A-Za-z][^:,]*): ?([^,]*?)(?:, ?|$)")
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?%?$")
FLAGS: Final = {"True": 1.0, "False": 0.0}
STAMP: Final = "timestamp"
"""0.4.9.post2 ends its lines with an ISO time, which holds colons."""

KEYS: Final = {
    "#running-req": "running",
    "#queue-req": "queue",
    "#new-seq": "new_sequences",
    "#new-token": "new_tokens",
    "#cached-token": "cached_tokens",
    "cache hit rate": "cache_hit_rate",
    "token usage": "token_usage",
    "full token usage": "full_token_usage",
    "swa token usage": "swa_token_usage",
    "#token": "tokens",
    "#full token": "full_tokens",
    "#swa token": "swa_tokens",
    "mamba num": "mamba_slots",
    "mamba usage": "mamba_usage",
    "accept len": "accept_len",
    "accept rate": "accept_rate",
    "cap len": "cap_len",
    "block accept len": "block_accept_len",
    "cuda graph": "graph",
    "cpu graph": "graph",
    "npu graph": "graph",
    "musa graph": "graph",
    "gen throughput (token/s)": "throughput",
    "input throughput (token/s)": "input_throughput",
    "#pending-token": "pending_tokens",
    "#replay-token": "replay_tokens",
    "#retracted-req": "retracted",
    "#unbootstrapped-req": "unbootstrapped",
    "#bootstrap-req": "bootstrapping",
    "#transferring-req": "transferring",
    "#prealloc-req": "preallocating",
    "#transfer-req": "transferring",
    "#inflight-req": "in_flight",
    "#optimistic-req": "optimistic",
    "#host-receive-req": "host_receiving",
    "pre-allocated usage": "preallocated_usage",
    "#gpu token": "gpu_tokens",
    "#cpu token": "cpu_tokens",
    "time": "seconds",
}
NEEDED: Final = {
    "prefill": ("running", "queue", "new_sequences", "new_tokens", "cached_tokens"),
    "decode": ("running", "queue", "throughput"),
}
"""Without these a line was cut: every version writes them."""
SERVER: Final = (
    "Receive: obj=", "Finish: obj=", "server_args=", "max_total_num_tokens=", "Load weight",
    "KV Cache is allocated", "Capture ", "Init torch distributed", "The server is fired up",
    "Gracefully exiting", "SIGTERM received", "KV cache pool is full", "Health check failed",
    "Uvicorn running", "Application startup", "Started server process", "Waiting for application",
    "Memory pool end", "Using ", "Attention backend", "Cache flushed",
)  # fmt: skip
ACCESS: Final = re.compile(
    r"INFO: +\S+ - \"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH) \S+ HTTP/[\d.]+\"(?: (\d{3}))?"
)


@dataclass(slots=True)
class Line:
    """A line that was read; `values` are by the names of `KEYS`, unknown keys by their own."""

    kind: Kind
    at: str | None = None
    """As logged; of the process's own clock and zone."""
    rank: str = ""
    values: dict[str, float] | None = None
    text: str = ""
    """What follows the prefix, of lines that are no batch."""
    dotted: bool = False
    """`Decode batch.`, until 0.5.3."""
    numbered: bool = False
    """`Decode batch [123]`."""
    trailing: bool = False
    """A comma at the end: 0.4.10 to 0.5.8."""


def read_line(raw: str) -> Line:
    """What one line says; never fails. A batch line that does not add up is `mangled`."""
    found = BATCH.search(raw)
    if found is not None:
        return _batch(raw, found)
    prefix = PREFIX.match(raw)
    if prefix and ("Decode bat" in raw or "Prefill bat" in raw or "#running-req" in raw):
        return Line("mangled", text=raw)
    text = raw[prefix.end() :] if prefix else raw
    at = prefix.group(1) if prefix else None
    rank = prefix.group(2).strip() if prefix else ""
    known = text.startswith(SERVER) or ACCESS.match(text) is not None
    return Line("other" if known or prefix else "foreign", at, rank, text=text)


def _batch(raw: str, found: re.Match[str]) -> Line:
    prefixes = list(PREFIX.finditer(raw, 0, found.start()))
    prefix = prefixes[-1] if prefixes else None
    if prefix is None or prefix.end() != found.start() or BATCH.search(raw, found.end()):
        return Line("mangled", text=raw)
    kind: Literal["prefill", "decode"] = "prefill" if found.group(1) == "Prefill" else "decode"
    body = raw[found.end() :].rstrip()
    values = _pairs(body)
    if values is None or not all(name in values for name in NEEDED[kind]):
        return Line("mangled", text=raw)
    return Line(
        kind,
        prefix.group(1),
        prefix.group(2).strip(),
        values,
        dotted=found.group(3) == ".",
        numbered=found.group(2) is not None,
        trailing=body.endswith(","),
    )


def _pairs(body: str) -> dict[str, float] | None:
    """The numbers of a batch line; None where a pair is no pair or a number no number."""
    values: dict[str, float] = {}
    end = len(body)
    if (stamp := body.rfind(STAMP + ":")) >= 0:
        end = stamp
    at = 0
    while at < end:
        pair = PAIR.match(body, at, end)
        if pair is None or pair.end() == at:
            # What is left may only be the comma and the blank at the end.
            return None if body[at:end].strip(", ") else values
        key, text = pair.group(1).strip(), pair.group(2).strip()
        value = FLAGS.get(text)
        if value is None:
            if not NUMBER.match(text):
                return None
            value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        values[KEYS.get(key, key)] = value
        at = pair.end()
    return values
