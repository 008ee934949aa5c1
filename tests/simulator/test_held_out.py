"""`harness_edit`: the held-out protocol's items, in phrasings that stand in no other set."""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from gold import Gold

from harness_cli.errors import BadFile
from harness_cli.harness.load import load_state
from harness_cli.judges.assertions import check_assertion
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import read_yaml
from harness_cli.simulator.scenarios.files import split_digests
from harness_cli.simulator.scenarios.held_out import (
    CHECK,
    SIZES,
    held_out_items,
    held_out_library,
)
from harness_cli.simulator.scenarios.library import read_library
from harness_cli.simulator.scenarios.shipped import SEED
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project

ROOT = Path(__file__).parents[2]
EVALSETS = ROOT / "evalsets"
WORLD = read_catalogue(EVALSETS / "catalogue")
LIBRARY = read_library(EVALSETS / "scenarios")
HEADER = read_yaml(EVALSETS / "harness_edit" / "evalset.yaml", EvalsetHeader)


def items_of(name):
    lines = (EVALSETS / name / "items.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Item) for line in lines]


ITEMS = items_of("harness_edit")


def test_the_committed_set_is_what_the_generator_makes():
    held = held_out_library(LIBRARY, EVALSETS / "scenarios")
    made = held_out_items(held, WORLD, seed=SEED + 2)
    assert split_digests(made, compact=True) == HEADER.digests
    assert made == ITEMS


def test_sizes_seal_and_metric_are_those_of_the_protocol():
    assert HEADER.splits == SIZES == {"dev": 500, "test": 1000}
    assert HEADER.seal.splits == ("test",)
    assert HEADER.metrics[0] == "naturalness"
    assert all(CHECK in item.assert_ for item in ITEMS)
    assert len({item.id for item in ITEMS}) == 1500


def test_no_comment_stands_in_another_set_or_in_the_other_split():
    texts = {split: set() for split in SIZES}
    for item in ITEMS:
        texts[item.split] |= {c.text for c in item.request.comments}
    others = {c.text for i in items_of("live_stream_qa") for c in i.request.comments}
    assert not (texts["dev"] | texts["test"]) & others
    assert not texts["dev"] & texts["test"]
    families = {
        s: {t for i in ITEMS if i.split == s for t in i.tags if "family:" in t} for s in SIZES
    }
    assert not families["dev"] & families["test"]


def test_every_category_but_silence_is_there():
    kinds = Counter(item.category for item in ITEMS)
    assert set(kinds) == {
        "product-qa", "chat", "clarification", "after-sales", "promotion",
        "presentation-order", "faq",
    }  # fmt: skip
    assert not any("silent" in item.expect.answers for item in ITEMS)


def test_a_host_that_speaks_by_the_shipped_harness_is_right_and_mostly_natural():
    """Bad cases are texts of catalogue and tools: `Boxes (3 pack)`, `零食券（满49元可用）；`."""
    scenarios = {s.id: s for s in LIBRARY.scenarios}
    gold = Gold(load_state(Project.find(ROOT)), WORLD, scenarios)
    judge, seen, natural = GroundedJudge(), Counter(), 0
    for item in ITEMS[::6]:
        done = gold.run(item)
        spoken = check_assertion(CHECK, done)
        assert spoken.passed or "brackets" in spoken.reason, (item.id, done.reply)
        natural += bool(spoken.passed)
        verdict = asyncio.run(judge.judge(item, done, WORLD))
        seen[verdict.scores["accuracy"], verdict.scores["effectiveness"]] += 1
    assert seen[1.0, 1.0] >= 0.95 * seen.total(), seen
    assert 0.9 * seen.total() <= natural < seen.total()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("scenario: list-price", "scenario: no-such", "`no-such` is no scenario"),
        ("money-wise, where is {ref}", "how much is {ref}", "stands in the library"),
        ("quick one, figure for {ref}", "money-wise, where is {ref}", "stands twice"),
    ],
)
def test_phrasings_that_are_not_held_out_are_refused(tmp_path, old, new, said):
    text = (EVALSETS / "scenarios/held_out/phrases.yaml").read_text()
    (tmp_path / "held_out").mkdir()
    (tmp_path / "held_out/phrases.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(BadFile, match=re.escape(said)):
        held_out_library(LIBRARY, tmp_path)


def test_the_set_is_small_on_disk():
    for name, most in (("harness_edit", 1.2), ("tool_robustness", 3.1), ("prompt_robustness", 1.0)):
        assert (EVALSETS / name / "items.jsonl").stat().st_size < most * 1e6
    assert json.loads((EVALSETS / "harness_edit/items.jsonl").read_text().splitlines()[0])["id"]
