"""What verl loads in each of its processes: entry point `verl.plugins`, or by name.

verl says nothing where an entry point fails to load (a DEBUG line), so a job's environment names
this module in `VERL_USE_EXTERNAL_MODULES` as well, which fails aloud, and `verl_start` asserts that
everything is registered before a job begins. Without verl this module does nothing.
"""

from importlib.util import find_spec
from typing import Final

from harness_cli.errors import HarnessError, MissingExtra

TRAINERS: Final = ("harness_sync", "harness_colocate_async", "harness_separate_async")
TESTED: Final = "0.9.1"
"""The version of verl that the exported keys and hooks are of."""


def register() -> None:
    """Load the trainers; the agent loop is named by its class in `agent_loop.yaml`."""
    import harness_cli.training.scale.verl_trainer  # noqa: F401


def assert_registered() -> None:
    """Raise `HarnessError` where verl lacks one of our trainers, or has them under another class.

    Raises `MissingExtra` without verl.
    """
    if find_spec("verl") is None:
        raise MissingExtra.of("a verl job", "verl")
    register()
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    from harness_cli.training.scale.verl_trainer import GdpoBySegment

    for name in TRAINERS:
        found = TRAINER_REGISTRY.get(name)
        if found is None or not issubclass(found, GdpoBySegment):
            raise HarnessError(f"verl has no trainer `{name}` of ours: {found}")


if find_spec("verl") is not None:
    register()
