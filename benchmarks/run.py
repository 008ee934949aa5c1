"""`python -m benchmarks.run [--quick] [NAME…]`: one JSON object a line, a goal each.

`{"name", "value", "goal", "ok", "how"}`; values are medians of ratios taken within one run. Names:
startup, augmenting, diagnosing, engine-logs, floor, inspect, masks, panel, reliability, replaying,
rescoring, simulating, statistics, verifying. `--table FILE` writes the same as a Markdown table
with the machine it was measured on.
The exit code is 1 when a goal was missed.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks import (
    augmenting,
    diagnosing,
    engine_logs,
    floor,
    inspect_ai,
    masks,
    panel,
    reliability,
    replaying,
    rescoring,
    simulating,
    startup,
    statistics,
    verifying,
)

ALL = {
    "startup": startup,
    "augmenting": augmenting,
    "diagnosing": diagnosing,
    "engine-logs": engine_logs,
    "floor": floor,
    "inspect": inspect_ai,
    "masks": masks,
    "panel": panel,
    "reliability": reliability,
    "replaying": replaying,
    "rescoring": rescoring,
    "simulating": simulating,
    "statistics": statistics,
    "verifying": verifying,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=ALL, help="default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--table", type=Path, help="write a Markdown table to this file")
    chosen = parser.parse_args()
    lines = []
    for name in chosen.names or ALL:
        with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder:
            for line in ALL[name].measurements(Path(folder), quick=chosen.quick):
                lines.append(line)
                print(json.dumps(line), flush=True)
    if chosen.table:
        chosen.table.write_text(table(lines))
    sys.exit(1 if any(line["ok"] is False for line in lines) else 0)


def table(lines: list[dict]) -> str:
    """The lines as Markdown, under the machine and the load they were measured with."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    head = (
        f"Measured on {platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, load average {load} at the end.\n\n"
        "| what | value | goal | reached | how |\n| --- | --- | --- | --- | --- |\n"
    )
    words = {True: "yes", False: "no", None: "not measured"}
    rows = [
        f"| {x['name']} | {x['value']} | {x['goal']} | {words[x['ok']]} | {x['how']} |\n"
        for x in lines
    ]
    return head + "".join(rows)


if __name__ == "__main__":
    main()
