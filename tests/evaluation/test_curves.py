from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.evaluation.page.curves import Curve, curves, trailing_mean


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60), st.integers(1, 30))
def test_a_trailing_mean_is_of_the_values_up_to_here(values, window):
    found = trailing_mean(values, window)
    for n, mean in enumerate(found):
        part = values[max(0, n - window + 1) : n + 1]
        assert mean == pytest.approx(sum(part) / len(part), abs=1e-6)


def test_each_series_is_drawn_twice_and_no_name_becomes_markup():
    drawn = curves("loss <of>", [Curve("a & <b>", [1, 2, 3], [3.0, 2.0, 1.0]), Curve("c", [], [])])
    page = ElementTree.fromstring(drawn)
    lines = page.findall("{*}polyline")
    assert [line.get("stroke-opacity") for line in lines] == ["0.3", "1.0"]
    assert lines[0].get("points").split()[0] == "56.0,40.0"  # step 1, the highest value
    assert "a & <b>: 3.000 at step 1" in page.find("{*}desc").text
    assert curves("nothing", [Curve("c", [], [])]) == ""
