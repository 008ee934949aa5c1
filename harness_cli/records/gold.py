"""A gold solution: what a policy that knows the answer does with an item, round by round."""

import msgspec

from harness_cli.records.calibration import LabelledCall


class GoldSolution(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Skills to load, calls with their true results, and the reply; names are of one harness."""

    item: str
    skills: tuple[str, ...] = ()
    """Loaded in the first round, beside its calls."""
    rounds: tuple[tuple[LabelledCall, ...], ...] = ()
    reply: str = ""
    """Empty where nothing is to be said: the last call declines."""
