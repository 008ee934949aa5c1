"""Gold solutions of the scripted oracle: what a policy that knows the answer does with an item."""

from collections.abc import Sequence
from pathlib import Path

from harness_cli.records.calibration import LabelledCall
from harness_cli.records.gold import GoldSolution
from harness_cli.records.item import Item
from harness_cli.simulator.oracle import Oracle, joined, read_templates
from harness_cli.simulator.scenarios.draws import generator
from harness_cli.simulator.scenarios.library import read_library
from harness_cli.store.catalogue import read_catalogue

CHANGING = ("change_presentation_order", "select_product_image")
"""Tools that change what the room sees: one of them in a round."""
SILENT = "refuse"


def read_oracle(evalsets: Path) -> Oracle:
    """The oracle of a project's evalsets: catalogue, scenario library, sentences."""
    library = read_library(evalsets / "scenarios")
    return Oracle(
        read_catalogue(evalsets / "catalogue"),
        {scenario.id: scenario for scenario in library.scenarios},
        read_templates(evalsets / "judge_calibration" / "templates.yaml"),
    )


async def solve(oracle: Oracle, item: Item, *, seed: int = 0) -> GoldSolution:
    """Skills, calls with their true results, and a correct reply; the same of the same seed.

    Raises `BadFile` or `ToolError` where the oracle knows no answer.
    """
    calls = await oracle.calls(item)
    draw = generator("gold", seed, item.id)
    units = oracle.units(item, calls)
    reply = joined(item, [oracle.say(item, unit, draw) for unit in units])
    silence = tuple(
        LabelledCall(name=t.name, arguments=t.arguments or {"reason": "meaningless"})
        for t in item.expect.tools
        if t.name == SILENT
    )
    return GoldSolution(
        item=item.id,
        skills=item.expect.skills,
        rounds=_rounds([*calls, *silence], ordered=bool(item.expect.order)),
        reply="" if silence else reply,
    )


def _rounds(
    calls: Sequence[LabelledCall], *, ordered: bool
) -> tuple[tuple[LabelledCall, ...], ...]:
    """All look-ups at once; one after the other where the item demands an order."""
    if ordered:
        return tuple((call,) for call in calls)
    together = tuple(c for c in calls if c.name not in CHANGING)
    apart = tuple((c,) for c in calls if c.name in CHANGING)
    return (together, *apart) if together else apart
