"""What is remembered, or sorted out before, is what the plain pattern finds."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.judges.grounded import money, price_checks, quantities, stock_checks
from harness_cli.judges.grounded.language import clauses, fold, names_number, terms_pattern
from harness_cli.judges.grounded.searched import LONGEST, Phrases

PIECES = st.sampled_from(
    [
        *"ab a1.,，。:？! \n", "cotton", "cottons", "not ", "allergies", "棉", "纯棉", "s", "es",
        "half", "half-price", "a dozen", "twenty-one", "八十九", "半价", "5折", "两", "点", "¥9",
        "20 % off", "3 left", "an hour", "8pm", "百分之五", "满200减30", "1,299", "only 9 for",
        "ipx7", "last nine",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.characters(codec="utf-8"), max_size=14).map("".join)


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_a_pattern_finds_again_what_it_found(text):
    plain = re.compile(r"\b(?:cotton|half|not)\w*|[棉半]|^a|b$")
    phrases = Phrases(plain.pattern)
    for long in (text, text + "x" * LONGEST):
        for _ in range(2):
            assert [m.span() for m in phrases.finditer(long)] == [
                m.span() for m in plain.finditer(long)
            ]
            for found, wanted in (
                (phrases.search(long), plain.search(long)),
                (phrases.match(long), plain.match(long)),
                (phrases.search(long, 2), plain.search(long, 2)),
                (phrases.match(long, 1), plain.match(long, 1)),
            ):
                assert (found and found.span()) == (wanted and wanted.span())


TERMS = [
    "cotton",
    "not",
    "not a",
    "allerg*",
    "棉",
    "纯棉",
    "half-price",
    "a",
    "ab",
    "a1",
    ".",
    " a",
]


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_terms_are_found_as_one_pattern_of_all_of_them_finds_them(text):
    rests = []
    for term in sorted(TERMS, key=lambda t: (-len(t), t)):
        latin = term[0].isascii() and term[0].isalnum()
        end = "[a-z]*" if term[-1] == "*" else ""
        if term[-1].isascii() and term[-1].isalnum():
            end = r"(?:e?s)?(?![a-z0-9])"
        rests.append((r"(?<![a-z0-9])" if latin else "") + re.escape(term.rstrip("*")) + end)
    whole = re.compile("|".join(rests))
    found = terms_pattern(TERMS).finditer(text)
    assert [m.span() for m in found] == [m.span() for m in whole.finditer(text)]


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_clauses_end_where_a_stop_or_a_comma_stands_and_no_number_goes_on(text):
    ends = re.compile(r"[。！？!?;；\n…]+|(?<!\d)\.(?!\d)|(?<=\d)\.(?=\s|$)|[,，、](?!\d{3}\b)|:\s")
    bounds = [0, *(at for m in ends.finditer(text) for at in m.span()), len(text)]
    pieces = zip(bounds[::2], bounds[1::2], strict=True)
    wanted = [(start, end) for start, end in pieces if text[start:end].strip()]
    assert [(c.start, c.end) for c in clauses(text)] == wanted


NUMBERED = [
    quantities._QUANTITY, quantities._CLOCK, quantities._PERCENT_ZH, money._WITH_UNIT,
    money._BARE, money._OFF_SPEND, stock_checks._STOCK_NUMBER, price_checks._DISCOUNT,
]  # fmt: skip


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_no_pattern_with_a_number_finds_anything_where_no_number_is_named(text):
    folded = fold(text)
    if not names_number(folded):
        assert not any(pattern.search(folded) for pattern in NUMBERED)


@pytest.mark.parametrize("text", ["a dozen left", "half-price", "五折", "９ yuan", "twenty left"])
def test_a_number_is_named_in_digits_and_in_words(text):
    assert names_number(fold(text))
    assert not names_number(fold("Lovely colours, dear viewers! 欢迎来到直播间"))
