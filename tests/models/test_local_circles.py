"""When a generation is taken for going round in circles, and what of it is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.models.local_circles import LENGTHS, ROUNDS, circle, said_once


@pytest.mark.parametrize(
    ("tokens", "length"),
    [
        ([], 0),
        ([1, 2, 3, 4] * 2, 0),
        ([1, 2, 3, 4] * 3, 4),
        ([9, 8, 7, *[1, 2, 3, 4, 5] * 3], 5),
        ([1, 2, 3, 4] * 3 + [5], 0),
        ([7] * 11, 0),
        ([7] * 12, 4),
        ([1, 2, 3] * 5, 0),
        ([1, 2, 3] * 6, 6),
        (list(range(32)) * 3, 32),
        (list(range(33)) * 3, 0),
    ],
)
def test_three_copies_of_four_to_32_tokens_are_a_circle(tokens, length):
    assert circle(tokens) == length


@given(
    before=st.lists(st.integers(0, 3), max_size=20),
    round_=st.lists(st.integers(0, 3), min_size=LENGTHS.start, max_size=LENGTHS.stop - 1),
)
def test_every_circle_is_found_and_a_copy_of_its_round_stays(before, round_):
    tokens = [*before, *round_ * ROUNDS]
    length = circle(tokens)
    assert 0 < length <= len(round_)
    said = said_once(tokens, length)
    assert tokens[: len(said)] == said
    assert [*said, *said[-length:] * (ROUNDS - 1)] == tokens
