"""Numbers, clauses, quantities and sums of money in two languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.judges.grounded.language import clauses, fold, number, phrases, terms_pattern
from harness_cli.judges.grounded.money import money
from harness_cli.judges.grounded.quantities import quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("89", 89), ("1,299", 1299), ("89.9", 89.9), ("八十九", 89), ("一百二", 120),
        ("两百五", 250), ("一百零五", 105), ("三千五", 3500), ("一万二", 12000), ("十二", 12),
        ("二十", 20), ("半", 0.5),
        ("二点五", 2.5), ("eighty-nine", 89), ("a hundred and twenty", 120), ("two thousand", 2000),
        ("an", 1), ("nothing", None), ("好", None),
    ],
)  # fmt: skip
def test_numbers_are_read(text, value):
    assert number(text) == value


@given(st.text(max_size=200))
def test_folding_keeps_every_place(text):
    assert len(fold(text)) == len(text)
    for clause in clauses(fold(text)):
        assert fold(text)[clause.start : clause.end] == clause.text


def test_clauses_end_at_commas_and_stops_but_not_within_numbers():
    text = fold("It's 1,299.50 yuan, ok. 好的，89.9元！Really?")
    found = [c.text.strip() for c in clauses(text)]
    assert found == ["it's 1,299.50 yuan", "ok", "好的", "89.9元", "really"]
    assert clauses(text)[-1].question
    assert len({c.sentence for c in clauses(text)}) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("48小时内", [("time", 48)]),
        ("2 to 4 days", [("time", 48), ("time", 96)]),
        ("a two-year warranty", [("time", 17280)]),
        ("半年", [("time", 4320)]),
        ("50 by 40 by 33 cm", [("length", 50), ("length", 40), ("length", 33)]),
        ("0.5 L", [("volume", 500)]),
        ("1.1公斤", [("mass", 1100)]),
        ("SPF50, PA++++", [("spf", 50), ("pa", 4)]),
        ("IPX7", [("ipx", 7)]),
        ("百分之九十", [("percent", 90)]),
        ("500-ml bottle", [("volume", 500)]),
    ],
)
def test_quantities_come_in_one_unit_a_dimension(text, expected):
    assert [(q.dimension, pytest.approx(q.value)) for q in quantities(fold(text))] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("89 yuan right now", [(89, "price")]),
        ("original price 129 yuan now 89 yuan", [(129, "list"), (89, "price")]),
        ("满200减30后248元", [(200, "threshold"), (30, "saving"), (248, "total")]),
        ("30 off 200", [(30, "saving"), (200, "threshold")]),
        ("save 40 yuan", [(40, "saving")]),
        ("立减四十元", [(40, "saving")]),
        ("under 100 yuan", [(100, "upper")]),
        ("到手59元", [(59, "total")]),
        ("89块9", [(89.9, "price")]),
        ("售价89", [(89, "price")]),
        ("it costs 89 and 139 yuan", [(89, "price"), (139, "price")]),
        ("运费10元", [(10, "fee")]),
        ("$89", [(89, "foreign")]),
        ("送一块幕布", []),
        ("the price is 5.9 kg", []),
    ],
)
def test_sums_of_money_have_a_role(text, expected):
    found = [m for clause in clauses(fold(text)) for m in money(clause)]
    assert [(m.value, m.role) for m in found] == expected


def test_phrases_join_lines_and_continue_after_a_backslash():
    pattern = phrases(
        r"""
        one
        two\
        \ three
        """
    )
    assert [bool(pattern.pattern.fullmatch(t)) for t in ("one", "two three", "two")] == [
        True,
        True,
        False,
    ]


def test_terms_match_whole_words_plurals_and_stems():
    pattern = terms_pattern(["cotton", "allerg*", "棉"])
    found = [m.group() for m in pattern.finditer("cottons allergies 纯棉 cottonwood")]
    assert found == ["cottons", "allergies", "棉"]
