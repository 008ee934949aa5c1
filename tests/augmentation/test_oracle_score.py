"""Where `builtin` has the oracle's full marks it keeps them, whichever dimension changed."""

import pytest

from harness_cli.evaluation.drops import scores_of
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.loop.dimension_drops import SAMPLE, SEED, _run, conditions, make_sets, set_of
from harness_cli.loop.scaffold import make_project
from harness_cli.records.augmentation import DIMENSIONS
from harness_cli.store.project import Project

FULL = {"accuracy": 1.0, "effectiveness": 1.0}
ITEMS = 120
LOST = {
    # "where do you come from": under the base it answers from where orders ship, and passes.
    "skill_identifiers": {"lsq-0213"},
    # "how much is this one after the coupon": two tools are equally near under the base (1.02 and
    # 0.99); in other words the one for the price on the card is nearer (1.12).
    "tool_definitions": {"lsq-0181"},
}
"""What it has by a narrow chance under the base, and loses when the chance falls the other way."""


def full_marks(project, evalset):
    """Items of the set that `builtin` answers as well as the oracle, who has full marks."""
    run = _run(project, evalset, "builtin", "harness", resume=None, seconds=None)
    scores = scores_of(run)
    assert len(scores) == ITEMS, "none errored, none unscored"
    return {item for item, of in scores.items() if FULL.items() <= of.items()}


@pytest.mark.accept
@pytest.mark.timeout(900)
def test_builtin_and_the_oracle_under_every_dimension(tmp_path):
    """The oracle passes under every state: one under which it does not was drawn again. The items
    and states are those of `python -m harness_cli.loop.dimension_drops`."""
    project = Project.find(make_project(tmp_path / "shop").root)
    every = list(load_evalset(project, "live_stream_qa", split="dev").items)
    recipes = {name: conditions(1.0)[name] for name in DIMENSIONS}
    make_sets(project, every[:: len(every) // ITEMS][:ITEMS], recipes, SEED)
    base = full_marks(project, SAMPLE)
    assert len(base) >= 69
    lost = {name: base - full_marks(project, set_of(name)) for name in recipes}
    assert all(items <= LOST.get(name, set()) for name, items in lost.items()), lost
