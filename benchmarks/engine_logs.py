"""Lines of an SGLang log read in a second of CPU, in one fresh process on one core."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.floor import result

LINES = 400_000
GOAL = 200_000
ROOT = Path(__file__).parents[1]
DECODE = (
    "[2026-07-30 {h:02d}:{m:02d}:{s:02d}] Decode batch, #running-req: {r}, #full token: {t}, full "
    "token usage: 0.01, mamba num: {r}, mamba usage: 0.02, accept len: {a:.2f}, accept rate: "
    "{p:.2f}, cuda graph: True, gen throughput (token/s): {g:.2f}, #queue-req: 0\n"
)
PREFILL = (
    "[2026-07-30 {h:02d}:{m:02d}:{s:02d}] Prefill batch, #new-seq: 1, #new-token: {t}, "
    "#cached-token: 4096, full token usage: 0.12, mamba usage: 0.02, #running-req: {r}, "
    "#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): {g:.2f}\n"
)
ACCESS = (
    "[2026-07-30 {h:02d}:{m:02d}:{s:02d}] INFO:     192.0.2.1:57052 - "
    '"POST /v1/chat/completions HTTP/1.1" 200 OK\n'
)
READ = """
import json, sys, time
from pathlib import Path
from harness_cli.serving.engine_logs.read import read_log
from harness_cli.serving.engine_logs.stats import log_stats
start = time.process_time()
found = log_stats(*read_log(Path(sys.argv[1])))
took = time.process_time() - start
print(json.dumps({"cpu_s": took, "decode": found.decode, "prefill": found.prefill,
                  "mangled": found.mangled, "lines": found.lines}))
"""


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object: Qwen3.6's lines on SGLang 0.5.23, one in eight a prefill, one an access."""
    path = folder / "server.log"
    count = LINES // 8 if quick else LINES
    path.write_text("".join(_line(n) for n in range(count)))
    rounds = [_read(path) for _ in range(1 if quick else 5)]
    if any(r["mangled"] or r["lines"] != count for r in rounds):
        raise SystemExit(f"engine_logs: {rounds[0]}")
    speed = median(count / r["cpu_s"] for r in rounds)
    best = max(count / r["cpu_s"] for r in rounds)
    yield result(
        "lines of an SGLang log a second of CPU",
        speed,
        f">= {GOAL}",
        speed >= GOAL,
        f"{count} lines, {rounds[0]['decode']} decode, {rounds[0]['prefill']} prefill; "
        f"median of {len(rounds)}, best {best:,.0f}",
    )


def _line(n: int) -> str:
    shape = {6: PREFILL, 7: ACCESS}.get(n % 8, DECODE)
    second = n // 8
    return shape.format(
        h=second // 3600 % 24, m=second // 60 % 60, s=second % 60, r=n % 7 + 1, t=n,
        a=2 + n % 200 / 100, p=n % 100 / 100, g=200 + n % 150,
    )  # fmt: skip


def _read(path: Path) -> dict:
    words = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
