"""`python3 -m harness_cli.training.scale.verl_start OVERRIDES`: the entry point of a verl job.

It checks what verl would not say aloud, then hands over to verl's own entry point with the same
command line. `--sft` first means the supervised trainer.
"""

import runpy
import sys
from importlib.metadata import version

from harness_cli.errors import HarnessError
from harness_cli.training.scale.verl_plugin import TESTED, assert_registered

ENTRY = {"rl": "verl.trainer.main_ppo", "sft": "verl.trainer.sft_trainer_ray"}


def main() -> None:
    """Check and start."""
    kind = "rl"
    if len(sys.argv) > 1 and sys.argv[1] == "--sft":
        kind = "sft"
        del sys.argv[1]
    found = version("verl")
    if found != TESTED:
        raise HarnessError(
            f"verl {found} is installed, this job was made for {TESTED}",
            hint="its keys and hooks are internal to verl and change between versions",
        )
    assert_registered()
    sys.argv[0] = ENTRY[kind]
    runpy.run_module(ENTRY[kind], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
