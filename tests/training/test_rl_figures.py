"""TR Figures 5 and 6 of a job: what is drawn, and the means that the report tells."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from harness_cli.evaluation.page.curves import trailing_mean
from harness_cli.judges.rewards.dimension import REPLY, TOOL
from harness_cli.records.rl_job import Penalty
from harness_cli.training.rl_figures import figures, means, regions


def lines(steps, updates=1):
    """A curve with rollouts at every `updates`-th step."""
    made = []
    for step in range(1, steps + 1):
        line = {"step": step, "loss": 0.1}
        if (step - 1) % updates == 0:
            line |= {f"rewards/{r}/mean": step / steps for r in (*TOOL, *REPLY)}
            line |= {"cot/tool": 300.0 - step, "cot/reply": 90.0, "cot/q": 1 - step / steps}
        made.append(line)
    return made


def test_means_are_of_the_first_and_the_last_hundred_iterations():
    found = {m.name: m for m in means(lines(300), Penalty())}
    tool = found["tool-call CoT"]
    assert (tool.first, tool.last, tool.steps) == (300 - 50.5, 300 - 250.5, 100)
    assert not tool.overlap
    assert found["q(L)"].first == pytest.approx(1 - 50.5 / 300)
    assert found["-0.1 q(L)"].first == pytest.approx(-0.1 * found["q(L)"].first)
    assert set(found) == {*TOOL, *REPLY, "tool-call CoT", "final-reply CoT", "q(L)", "-0.1 q(L)"}


def test_a_short_job_says_that_its_windows_overlap():
    (one, *_) = means(lines(30), Penalty())
    assert (one.steps, one.overlap) == (30, True)
    assert "they overlap" in figures("short", lines(30), Penalty())


def test_only_steps_with_rollouts_are_drawn():
    found = {m.name: m for m in means(lines(12, updates=4), Penalty())}
    assert found["accuracy"].steps == 3


def test_the_regions_of_the_penalty_follow_its_bounds():
    assert [(b.low, b.high) for b in regions(Penalty(low=10, high=30))] == [
        (0.0, 10),
        (10, 30),
        (30, float("inf")),
    ]


def test_the_page_is_whole_and_draws_faint_and_bold_lines():
    page = figures("job<1>", lines(60), Penalty())
    assert "job&lt;1&gt;" in page
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 4
    for chart in charts:
        ElementTree.fromstring(chart)
    assert charts[0].count("<polyline") == 8  # four rewards, faint and bold
    assert charts[1].count("<polyline") == 4
    assert charts[1].count("fill-opacity") == 3  # the regions, up to the longest
    for word in ("no penalty, L ≤ 100", "linear, 100 &lt; L &lt; 200", "saturated, L ≥ 200"):
        assert word in charts[1]
    assert "-0.1 q(L)" in charts[3]


def test_a_job_that_measured_nothing_has_a_page_too():
    assert "Nothing was measured yet" in figures("new", [{"step": 1, "loss": 0.0}], Penalty())


def test_the_trailing_mean_is_over_what_came_before():
    assert trailing_mean([0.0, 2.0, 4.0], 2) == [0.0, 1.0, 3.0]
