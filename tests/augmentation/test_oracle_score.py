"""What `builtin` solves, it solves at the oracle's score, whichever dimension changed."""

import asyncio

import pytest

from harness_cli.evaluation.augmenting import golds_of, grounds_of
from harness_cli.evaluation.drops import scores_of
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.harness.load import load_state
from harness_cli.loop.dimension_drops import SAMPLE, SEED, _run, conditions, make_sets, set_of
from harness_cli.loop.scaffold import make_project
from harness_cli.records.augmentation import DIMENSIONS
from harness_cli.simulator.solutions import read_oracle
from harness_cli.store.project import Project

FULL = {"accuracy": 1.0, "effectiveness": 1.0}
ITEMS = 120
UNSOLVED = {"lsq-0205", "lsq-0417"}
"""Without a gold solution: the oracle has no score to reach there, `builtin` keeps its own."""


def unsolved(project, items):
    """Items that the scripted oracle has no full marks on, under the base."""
    oracle = read_oracle(project.evalsets)
    golds = asyncio.run(golds_of(oracle, load_state(project), items, grounds_of(oracle)))
    return {item.id for item in items} - {gold.item.id for gold in golds}


def full_marks(project, evalset):
    """Items of the set that `builtin` answers as well as the oracle, who has full marks."""
    run = _run(project, evalset, "builtin", "harness", resume=None, seconds=None)
    scores = scores_of(run)
    assert len(scores) == ITEMS, "none errored, none unscored"
    return {item for item, of in scores.items() if FULL.items() <= of.items()}


@pytest.mark.accept
@pytest.mark.timeout(900)
def test_builtin_and_the_oracle_under_every_dimension(tmp_path):
    """Under a state on which the oracle lost full marks, the state was drawn again: it has them
    under every dimension. So has `builtin`, on every item that it has them on under the base. Items
    and states are those of `python -m harness_cli.loop.dimension_drops`."""
    project = Project.find(make_project(tmp_path / "shop").root)
    every = list(load_evalset(project, "live_stream_qa", split="dev").items)
    items = every[:: len(every) // ITEMS][:ITEMS]
    assert unsolved(project, items) == UNSOLVED
    recipes = {name: conditions(1.0)[name] for name in DIMENSIONS}
    make_sets(project, items, recipes, SEED)
    base = full_marks(project, SAMPLE)
    assert len(base) >= 69
    lost = {name: sorted(base - full_marks(project, set_of(name))) for name in recipes}
    assert lost == {name: [] for name in DIMENSIONS}
