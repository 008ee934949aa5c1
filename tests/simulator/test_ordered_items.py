"""Items that need one call before another: what the second is called with, the first one says."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from gold import Gold
from test_scenarios import ITEMS, LIBRARY, SCENARIOS, WORLD
from test_shipped_harness import STATE

from harness_cli.evaluation.metrics import item_scores
from harness_cli.records.chat import ChatReply
from harness_cli.records.harness import Tool
from harness_cli.records.item import Item
from harness_cli.simulator.sandbox import SandboxExecutor

LABELS = Path(__file__).parents[2] / "evalsets" / "judge_labels" / "team_labels.jsonl"
ORDERED = [item for item in ITEMS if item.expect.order]
SCORES: dict[str, float | None] = {}


class Backwards(Gold):
    """The same host, its calls in the opposite order."""

    def _calls(self, item: Item) -> ChatReply:
        made = super()._calls(item)
        return msgspec.structs.replace(made, tool_calls=made.tool_calls[::-1])


def test_both_splits_have_items_with_an_order_and_it_names_their_tools():
    counts = {s: sum(i.split == s for i in ORDERED) for s in ("dev", "test")}
    assert counts == {"dev": 9, "test": 16}
    for item in ORDERED:
        assert item.expect.order == tuple(tool.name for tool in item.expect.tools)
        assert item.mode == "single"


def test_an_order_is_scored_and_a_rollout_in_the_wrong_order_loses_it():
    right, wrong = Gold(STATE, WORLD, SCENARIOS), Backwards(STATE, WORLD, SCENARIOS)
    for item in ORDERED:
        good, bad = (item_scores(item, host.run(item), SCORES) for host in (right, wrong))
        assert (good["tco"], bad["tco"]) == (1.0, 0.0), item.id
        assert (good["tc"], bad["tc"]) == (1.0, 1.0), item.id  # it called the same tools
        assert good["tool_rationality"] == bad["tool_rationality"] == 1.0, item.id


def test_an_item_without_an_order_has_no_such_score():
    host = Gold(STATE, WORLD, SCENARIOS)
    for item in [i for i in ITEMS if len(i.expect.tools) > 1 and not i.expect.order][:5]:
        assert "tco" not in item_scores(item, host.run(item), SCORES)


@pytest.mark.parametrize("item", [i for i in ORDERED if i.expect.order[0] == "compare_products"])
def test_which_product_is_meant_is_what_the_comparison_answers(item):
    look_up, act = item.expect.tools
    said = asyncio.run(
        SandboxExecutor(WORLD).call(Tool(name=look_up.name), look_up.arguments, item.request)
    ).structured
    assert said["cheapest"]["link_id"] == act.arguments["link_id"]
    assert said["price_gap"] > 0


@pytest.mark.parametrize("item", [i for i in ORDERED if i.expect.order[0] == "get_inventory"])
def test_whether_to_move_is_what_the_stock_answers(item):
    look_up, act = item.expect.tools
    said = asyncio.run(
        SandboxExecutor(WORLD).call(Tool(name=look_up.name), look_up.arguments, item.request)
    ).structured
    assert not said["sold_out"]
    assert look_up.arguments == act.arguments


def test_no_labelled_reply_is_about_an_item_that_took_the_place_of_another():
    taken = {s.id for s in LIBRARY.scenarios if s.instead}
    later = {i.id for i in ITEMS if {t.partition(":")[2] for t in i.tags} & taken}
    assert later == {i.id for i in ORDERED}
    labelled = {json.loads(line)["item_id"] for line in LABELS.read_text().splitlines()}
    assert not labelled & later
