"""`python -m benchmarks.run [--quick] [NAME…]`: one JSON object a line, a goal each.

`{"name", "value", "goal", "ok", "how"}`; values are medians of ratios taken within one run. Names:
startup, floor, inspect, reliability. The exit code is 1 when a goal was missed.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks import floor, inspect_ai, reliability, startup

ALL = {
    "startup": startup,
    "floor": floor,
    "inspect": inspect_ai,
    "reliability": reliability,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=ALL, help="default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    chosen = parser.parse_args()
    missed = 0
    for name in chosen.names or ALL:
        with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder:
            for line in ALL[name].measurements(Path(folder), quick=chosen.quick):
                missed += line["ok"] is False
                print(json.dumps(line), flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
