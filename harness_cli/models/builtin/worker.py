"""The process that thinks: wire requests in, answers out, one JSON line each.

    ← {"id": 7, "body": {"messages": [...], "tools": [...], "seed": 1}}
    → {"id": 7, "reply": {"choices": [...]}}     or     {"id": 7, "error": "..."}

It reads no file but the vectors of their package, knows no project, and ends when its input does.
"""

import gc
import json
import sys
import traceback
from typing import Any, BinaryIO

import msgspec

from harness_cli.models.builtin.deciding import decide
from harness_cli.models.builtin.moves import reply_of
from harness_cli.models.builtin.similarity import Similarity
from harness_cli.models.builtin.vectors import open_vectors

GARBAGE_AFTER = 20_000
"""Objects made before a search for garbage: a request is thousands, none of them in a circle."""


def answer(line: bytes, similarity: Similarity) -> dict[str, Any]:
    """The answer to one line; what goes wrong is told, never raised."""
    number: Any = None
    try:
        asked = _read(line)
        number, body = asked["id"], asked["body"]
        return {"id": number, "reply": reply_of(decide(body, similarity), body)}
    except Exception as error:  # noqa: BLE001  the process boundary: the client raises it
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
        return {"id": number, "error": f"{type(error).__name__}: {error} ({where})"}


def _read(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return json.loads(line)  # it takes halves of surrogate pairs, which viewers may send


def serve(source: BinaryIO, target: BinaryIO, similarity: Similarity) -> None:
    """Answer lines until there are no more."""
    for line in source:
        if line.strip():
            text = json.dumps(answer(line, similarity), ensure_ascii=False)
            target.write(text.encode("utf-8", "surrogatepass") + b"\n")
            target.flush()


def main() -> None:
    """Serve standard input with the vectors that the first argument names."""
    kind = sys.argv[1] if len(sys.argv) > 1 else "wordllama"
    try:
        similarity = Similarity(open_vectors(kind))
        gc.freeze()
        gc.set_threshold(GARBAGE_AFTER)
        serve(sys.stdin.buffer, sys.stdout.buffer, similarity)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)


if __name__ == "__main__":
    main()
