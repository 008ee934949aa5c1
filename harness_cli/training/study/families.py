"""Which arms of a study need one another: what can be run side by side.

Two arms are of one family where one starts from the other or is taught by it; the base, which is
there before any arm, joins nobody. A family of one seed is a unit of work.
"""

from collections.abc import Iterable, Sequence

from harness_cli.records.study import Arm
from harness_cli.training.study.checked import BASE_ARM

Unit = tuple[int, tuple[str, ...]]
"""A seed and the arms of a family, in the order of the study."""


def families(arms: Sequence[Arm]) -> list[tuple[str, ...]]:
    """The arms put together by what they need; names in the order of the study."""
    of: dict[str, str] = {}

    def root(name: str) -> str:
        while of[name] != name:
            name = of[name]
        return name

    for arm in arms:
        of[arm.name] = arm.name
        for needed in (arm.start, arm.teacher or BASE_ARM):
            if needed != BASE_ARM:
                of[root(arm.name)] = root(needed)
    found: dict[str, list[str]] = {}
    for arm in arms:
        found.setdefault(root(arm.name), []).append(arm.name)
    return [tuple(names) for names in found.values()]


def units(arms: Sequence[Arm], seeds: Iterable[int], only: Sequence[str] = ()) -> list[Unit]:
    """Every family of every seed, the largest first: what is left for the end is small.

    Of the arms `only` those that are named; without a name, those that are not on request.
    """
    wanted = set(only) or {arm.name for arm in arms if not arm.on_request}
    chosen = [
        kept
        for family in families(arms)
        if (kept := tuple(name for name in family if name in wanted))
    ]
    chosen.sort(key=len, reverse=True)
    return [(seed, family) for family in chosen for seed in seeds]
