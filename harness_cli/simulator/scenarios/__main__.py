"""`python -m harness_cli.simulator.scenarios --seed N`: write the shipped evalsets anew.

The same seed, library and catalogue give the same bytes.
"""

import argparse
import sys
from pathlib import Path

from harness_cli.simulator.scenarios.shipped import SEED, write_all


def main(argv: list[str] | None = None) -> int:
    """Parse, write, say what was written."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.simulator.scenarios", description=__doc__
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="default: the seed of the shipped sets"
    )
    parser.add_argument(
        "--evalsets", type=Path, default=Path("evalsets"), help="where scenarios/ lies"
    )
    parser.add_argument("--out", type=Path, help="write elsewhere than into --evalsets")
    chosen = parser.parse_args(argv)
    for name, splits in write_all(chosen.evalsets, chosen.out or chosen.evalsets, chosen.seed):
        counts = ", ".join(f"{split} {count}" for split, count in splits.items())
        sys.stdout.write(f"{name}: {counts}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
