"""Candidates made ready once give the scores that the formula of `similarity` states."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.models.builtin.choices import UNHEARD, WHOLE, Choices, Index
from harness_cli.models.builtin.language import features
from harness_cli.models.builtin.vectors import open_vectors, unit

WORDS = st.sampled_from(["price", "stock", "ship", "link", "价格", "库存", "发货", "多少钱", ""])
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)
PHRASES = st.lists(TEXTS, max_size=3).map(tuple)


@given(query=TEXTS, candidates=st.lists(PHRASES, min_size=1, max_size=5))
def test_shared_words_count_by_their_rarity_over_the_candidates(query, candidates):
    wanted = features(query)
    have = [{piece for phrase in phrases for piece in features(phrase)} for phrases in candidates]

    def counts(piece: str) -> float:
        bearers = sum(piece in pieces for pieces in have)
        rarity = math.log(1 + len(have) / (1 + bearers)) * (1 if bearers else UNHEARD)
        return wanted[piece] * rarity

    whole = sum(map(counts, wanted))
    expected = [sum(counts(p) for p in wanted if p in h) / whole if whole else 0.0 for h in have]
    assert Index(candidates).shares(wanted) == pytest.approx(expected)


def test_meaning_is_the_nearness_of_the_whole_and_of_the_best_phrase_from_their_middle():
    vectors = open_vectors()
    phrases = [("how much it costs", "price"), (), ("delivery time", "shipping", "post")]
    rows = [vectors.embed(list(p or ("",))) for p in phrases]
    middle = np.mean([r[0] for r in rows], axis=0)
    query = unit(vectors.embed(["when is it shipped"]) - middle)[0]
    near = [unit(r - middle) @ query for r in rows]
    expected = [WHOLE * n[0] + (1 - WHOLE) * n.max() for n in near]
    choices = Choices(phrases, [(), (), ()])
    for _ in range(2):
        found = choices.meaning(vectors, "when is it shipped")
        assert found == pytest.approx(expected, abs=1e-5)
    assert max(found) == found[2]
