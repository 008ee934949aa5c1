"""`python -m harness_cli.simulator.fault_rates [-C DIR] [RUN…]`: rates at which tools failed.

Prints the `faults` of a room's settings as one line of JSON, from the calls of recorded runs (the
newest one where none is named), so that rooms fail as often as the services did.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness_cli.errors import HarnessError, UsageError
from harness_cli.simulator.live.faults import observed
from harness_cli.simulator.live.settings import Faults
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore


def rates_of(project: Project, names: Sequence[str]) -> tuple[Faults, int]:
    """The rates in all these runs together, and the calls they are measured on.

    Raises `UsageError` where no call reached a service: that is no rate of 0.
    """
    runs = [RunStore(project.runs).get(name) for name in names or ("latest",)]
    rates, calls = observed(t for run in runs for t in run.trajectories())
    if not calls:
        raise UsageError(
            f"no call of a tool in {', '.join(f'`{run.id}`' for run in runs)}",
            hint="name runs whose policy calls tools",
        )
    return rates, calls


def main(argv: Sequence[str] | None = None) -> int:
    """Print them; 2 where there are none."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.simulator.fault_rates", description="Rates of tool failures."
    )
    parser.add_argument("-C", dest="folder", type=Path, default=Path(), help="the project")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="default: the newest one")
    chosen = parser.parse_args(argv)
    try:
        rates, calls = rates_of(Project.find(chosen.folder), chosen.runs)
    except HarnessError as exc:
        sys.stderr.write(f"error: {exc}\n" + (f"hint: {exc.hint}\n" if exc.hint else ""))
        return exc.exit_code
    told = {"faults": msgspec.to_builtins(rates), "calls": calls}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
