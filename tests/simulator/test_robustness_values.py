"""Slots of the robustness seeds: filled in a language, recognised in any accepted wording."""

import pytest

from harness_cli.judges.assertions import check_assertion
from harness_cli.records.trajectory import Trajectory
from harness_cli.simulator.robustness.values import fill, states

VALUES = {
    "n": 12,
    "day": ("Monday", "周一|星期一"),
    "gift": ("a storage pouch", "收纳袋"),
    "verdict": ("is not in it|n't contain", "配方里没有|不含"),
    "size": "XL",
    "time": "20:30",
}


@pytest.mark.parametrize(
    ("template", "language", "filled"),
    [
        ("{n}", "en", 12),
        ("{n} on {day}", "en", "12 on Monday"),
        ("{day}有{n}件", "zh", "周一有12件"),
        ("{day:zh}", "en", "周一"),
        ("you get {gift}", "en", "you get a storage pouch"),
        ("milk {verdict}", "en", "milk is not in it"),
    ],
)
def test_a_template_is_filled_in_its_language(template, language, filled):
    assert fill(template, VALUES, language) == filled


@pytest.mark.parametrize(
    ("slot", "reply", "stated"),
    [
        ("n", "We have 12 left.", True),
        ("n", "还有12件", True),
        ("n", "We have 120 left.", False),
        ("n", "It is 3.12 now.", False),
        ("day", "It comes on monday!", True),
        ("day", "星期一到", True),
        ("day", "周二到", False),
        ("gift", "You get one storage pouch.", True),
        ("verdict", "It doesn't contain milk.", True),
        ("verdict", "milk is in it", False),
        ("size", "Take XL, it runs small.", True),
        ("size", "Take XXL.", False),
        ("time", "At 20:30 sharp.", True),
        ("time", "At 8:30 pm.", True),
        ("time", "晚上8点半", True),
        ("time", "20点半开始", True),
        ("time", "At 18:30.", False),
    ],
)
def test_a_value_counts_by_itself_and_in_its_wordings(slot, reply, stated):
    check = states(VALUES[slot])
    assert check_assertion(check, Trajectory(request_id="r", reply=reply)).passed is stated
