"""Drafts of a whole set in a fixed order, each a function of seed, position and attempt alone."""

from collections.abc import Callable

from harness_cli.records.catalogue import Catalogue
from harness_cli.simulator.robustness.drafts import Draft
from harness_cli.simulator.robustness.prompt_items import prompt_draft
from harness_cli.simulator.robustness.seeds import Seeds
from harness_cli.simulator.robustness.tool_items import tool_draft
from harness_cli.simulator.scenarios.draws import generator, spread
from harness_cli.simulator.scenarios.items import CHINESE
from harness_cli.simulator.scenarios.library import Context
from harness_cli.simulator.scenarios.setting import Scene

MAKERS: dict[str, Callable[..., Draft]] = {
    "tool_robustness": tool_draft,
    "prompt_robustness": prompt_draft,
}
SIZES = {"tool_robustness": 1532, "prompt_robustness": 491}
"""TR App. E.3."""
METRICS = {
    "tool_robustness": ("avg", "adr", "rc", "tc"),
    "prompt_robustness": ("avg", "adr", "llm", "tco"),
}
PREFIX = {"tool_robustness": "tr", "prompt_robustness": "pr"}
SEED = 20261129
"""Of the committed sets."""


class Drafts:
    """Where the drafts of one set come from."""

    def __init__(
        self, name: str, seeds: Seeds, world: Catalogue, context: Context, *, seed: int, count: int
    ) -> None:
        self.name, self.seeds, self.seed, self.count = name, seeds, seed, count
        self.scene = Scene(world, context, "test")
        rng = generator(seed, name, "plan")
        self._plan = spread({s.id: 1.0 for s in seeds.tools}, count, rng)
        self._languages = spread({"en": 1 - CHINESE, "zh": CHINESE}, count, rng)
        self._by_id = {s.id: s for s in seeds.tools}

    def draft(self, position: int, attempt: int) -> Draft:
        """The draft for one place of the set; another attempt is another draft of the same seed."""
        return MAKERS[self.name](
            self.seeds,
            self.scene,
            self._by_id[self._plan[position]],
            self._languages[position],
            generator(self.seed, self.name, position, attempt),
        )
