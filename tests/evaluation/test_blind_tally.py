"""What a blind report says follows from the annotations, whoever stands under A."""

import msgspec
import pytest
from blind_runs import two_runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_cli.evaluation.blind.make import Wanted, make
from harness_cli.evaluation.blind.tally import report
from harness_cli.records.blind import Annotation

CHOICES = st.sampled_from(["A", "B", "tie", None])
OTHER = {"A": "B", "B": "A", "tie": "tie"}
SYSTEMS = {"baseline": "candidate", "candidate": "baseline"}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tally")
    project, baseline, candidate = two_runs(folder, strata={"chat": 9, "product-qa": 5})
    sheet, key, _ = make(project, baseline, candidate, Wanted(review=0.3))
    return sheet, key


def said(pair, choice, name="ann", at="2026-01-01"):
    return Annotation(pair=pair, choice=choice, reason="r", annotator=name, at=at)


def annotations(sheet, choices, name="ann"):
    return {
        p.id: said(p.id, c, name)
        for p, c in zip(sheet.pairs, choices, strict=True)
        if c is not None
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_counts_add_up_and_follow_the_key(drawn, data):
    sheet, key = drawn
    choices = data.draw(st.lists(CHOICES, min_size=len(sheet.pairs), max_size=len(sheet.pairs)))
    found = report(sheet, key, {"ann": annotations(sheet, choices)})
    whole = found.whole
    assert whole.candidate + whole.tie + whole.baseline == found.annotated
    for field in ("candidate", "tie", "baseline"):
        assert sum(getattr(t, field) for t in found.strata) == getattr(whole, field)
    assert sum(a.candidate for a in found.attribution) == whole.candidate
    assert found.complete is (None not in choices)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_swapping_every_side_and_every_choice_changes_nothing_but_the_place(drawn, data):
    sheet, key = drawn
    choices = data.draw(st.lists(CHOICES, min_size=len(sheet.pairs), max_size=len(sheet.pairs)))
    entries = tuple(msgspec.structs.replace(e, a=SYSTEMS[e.a]) for e in key.entries)
    swapped_key = msgspec.structs.replace(key, entries=entries)
    swapped = [None if c is None else OTHER[c] for c in choices]
    one = report(sheet, key, {"ann": annotations(sheet, choices)})
    other = report(sheet, swapped_key, {"ann": annotations(sheet, swapped)})
    assert (one.whole, one.strata, one.attribution) == (
        other.whole,
        other.strata,
        other.attribution,
    )
    assert one.consistency.agreed == other.consistency.agreed
    assert one.consistency.a_preferred == other.consistency.b_preferred


def test_eight_pairs_with_a_preference_are_enough_for_a_stratum(drawn):
    sheet, key = drawn
    sides = {e.pair: e.a for e in key.entries}
    choices = ["A" if sides[p.id] == "candidate" else "B" for p in sheet.pairs]
    found = report(sheet, key, {"ann": annotations(sheet, choices)})
    read = {t.name: (t.reading, t.p_holm) for t in found.strata}
    assert read["chat"] == ("candidate", pytest.approx(2 / 2**9))
    assert read["product-qa"] == ("too few", None)
    assert found.consistency.rate == 1.0


def test_nobody_has_said_anything_yet(drawn):
    sheet, key = drawn
    found = report(sheet, key, {})
    assert (found.annotated, found.complete, found.whole.p) == (0, False, None)
    assert found.consistency.rate is None
