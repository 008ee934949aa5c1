"""Numbers with their nouns."""

import pytest

from harness_cli.records.counting import counted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((0, "error"), "0 errors"),
        ((1, "error"), "1 error"),
        ((2, "error"), "2 errors"),
        ((1, "reply", "replies"), "1 reply"),
        ((2, "reply", "replies"), "2 replies"),
    ],
)
def test_one_of_a_thing_is_said_in_the_singular(words, said):
    assert counted(*words) == said
