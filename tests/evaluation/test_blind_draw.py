"""The draw is stratified and fixed by its seed; the sides are even, hidden and sealed."""

import json
from collections import Counter

import msgspec
import pytest
from blind_runs import make_project, make_run, two_runs
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.blind.draw import allocate, draw, lay_out
from harness_cli.evaluation.blind.make import Wanted, key_path, make, read_key, read_sheet, write
from harness_cli.records.canonical import digest, sha256

SIZES = st.dictionaries(st.text("abcd", min_size=1, max_size=2), st.integers(1, 60), min_size=1)


@given(SIZES, st.data())
def test_places_follow_the_pool_to_within_one_and_add_up(sizes, data):
    total = sum(sizes.values())
    n = data.draw(st.integers(1, total))
    places = allocate(sizes, n)
    assert sum(places.values()) == n
    for name, size in sizes.items():
        assert abs(places[name] - n * size / total) < 1
        assert places[name] <= size


def test_a_hundred_of_the_report_s_categories():
    pool = {"product-qa": 452, "chat": 186, "clarification": 157, "after-sales": 74,
            "promotion": 39, "presentation-order": 38, "faq": 30, "refusal": 2}  # fmt: skip
    assert allocate(pool, 100) == {
        "product-qa": 46, "chat": 19, "clarification": 16, "after-sales": 8,
        "promotion": 4, "presentation-order": 4, "faq": 3, "refusal": 0,
    }  # fmt: skip
    with pytest.raises(UsageError, match="979 pairs are asked for, 978 are there"):
        allocate(pool, 979)


def test_the_draw_is_the_same_for_a_seed_and_another_for_another():
    strata = {"a": [f"a{n}" for n in range(40)], "b": [f"b{n}" for n in range(20)]}
    backwards = {name: ids[::-1] for name, ids in reversed(strata.items())}
    assert draw(strata, 30, 7) == draw(backwards, 30, 7)
    assert draw(strata, 30, 7) != draw(strata, 30, 8)


@given(st.integers(0, 500), st.text("0123456789abcdef", min_size=4, max_size=8))
def test_sides_are_even_in_every_stratum_and_repeats_are_swapped_and_late(seed, secret):
    drawn = draw({"a": [f"a{n}" for n in range(25)], "b": [f"b{n}" for n in range(14)]}, 30, seed)
    places = lay_out(drawn, secret, review=0.2, repeatable=set(drawn))
    first = [p for p in places if p.repeats is None]
    again = [p for p in places if p.repeats is not None]
    assert (len(first), len(again)) == (30, 6)
    assert {p.item_id for p in first} == set(drawn)
    for stratum in ("a", "b"):
        sides = Counter(p.a for p in first if p.stratum == stratum)
        assert abs(sides["baseline"] - sides["candidate"]) <= 1
    at = {p.pair: n for n, p in enumerate(places)}
    by_name = {p.pair: p for p in places}
    assert len(by_name) == len(places)
    for place in again:
        original = by_name[place.repeats]
        assert (original.item_id, original.a) == (
            place.item_id, "candidate" if place.a == "baseline" else "baseline",
        )  # fmt: skip
        assert at[place.pair] > at[place.repeats]


def test_neither_order_nor_sides_follow_from_the_seed_of_the_draw():
    drawn = draw({"a": [f"a{n}" for n in range(60)]}, 60, 1)
    one, other = (lay_out(drawn, s, review=0, repeatable=set()) for s in ("s1", "s2"))
    assert [p.item_id for p in one] != [p.item_id for p in other]
    assert {p.item_id: p.a for p in one} != {p.item_id: p.a for p in other}
    assert one == lay_out(drawn, "s1", review=0, repeatable=set())


def test_the_sheet_names_nobody_and_key_and_sheet_seal_each_other(tmp_path):
    project, baseline, candidate = two_runs(tmp_path)
    sheet, key, sealed = make(project, baseline, candidate, Wanted(seed=5))
    write(tmp_path / "blind" / "t", sheet, key_path(project, sheet.id), sealed)
    shown = (tmp_path / "blind" / "t" / "sheet.json").read_text()
    for hidden in ("r-react", "r-harness", "p@1", key.secret):
        assert hidden not in shown
    for item in (entry.item_id for entry in key.entries):  # nowhere but in what was said
        assert shown.count(item) == shown.count(f"about {item}") + shown.count(f"says {item}")
    assert sheet.drawn == 100
    assert len(sheet.pairs) == 110
    assert sheet.strata == {"product-qa": 46, "chat": 19, "clarification": 16,
                            "after-sales": 10, "promotion": 9}  # fmt: skip
    path = key_path(project, sheet.id)
    assert path.stat().st_mode & 0o777 == 0o600
    assert sheet.key_sha256 == sha256(path.read_bytes())
    assert key.pairs_sha256 == digest(sheet.pairs)
    assert read_key(path, read_sheet(tmp_path / "blind" / "t")) == key


def test_a_changed_key_or_sheet_proves_nothing(tmp_path):
    project, baseline, candidate = two_runs(tmp_path)
    sheet, key, sealed = make(project, baseline, candidate, Wanted(pairs=10))
    path = tmp_path / "key.json"
    path.write_bytes(sealed)
    assert read_key(path, sheet) == key
    path.write_bytes(sealed.replace(b'"a": "candidate"', b'"a": "baseline"', 1))
    with pytest.raises(BadFile, match="not the key that was sealed"):
        read_key(path, sheet)
    path.write_bytes(sealed)
    turned = msgspec.structs.replace(sheet.pairs[0], a=sheet.pairs[0].b, b=sheet.pairs[0].a)
    forged = msgspec.structs.replace(sheet, pairs=(turned, *sheet.pairs[1:]))
    with pytest.raises(BadFile, match="not those that were drawn"):
        read_key(path, forged)
    other, _, _ = make(project, baseline, candidate, Wanted(pairs=10))
    with pytest.raises(BadFile, match="is the key of"):
        read_key(path, other)
    with pytest.raises(BadFile, match="no key"):
        read_key(tmp_path / "none.json", sheet)


def test_errored_items_are_left_out_and_equal_replies_are_marked(tmp_path):
    project = make_project(tmp_path, {"chat": 12})
    a = make_run(project, "a", lambda i: f"same {i}", errored={"chat-03"})
    b = make_run(project, "b", lambda i: f"same {i} " if i < "chat-06" else f"else {i}")
    sheet, key, _ = make(project, a, b, Wanted(review=1.0))
    assert (sheet.drawn, key.left_out) == (11, {"errored": 1})
    assert sum(p.identical for p in sheet.pairs) == 5
    assert len(sheet.pairs) == 11 + 6  # equal ones are not shown twice


def test_what_cannot_be_compared_is_refused(tmp_path):
    project, baseline, candidate = two_runs(tmp_path, strata={"chat": 5})
    with pytest.raises(UsageError, match="stand on both sides"):
        make(project, baseline, baseline, Wanted())
    with pytest.raises(UsageError, match="6 pairs are asked for, 5 are there"):
        make(project, baseline, candidate, Wanted(pairs=6))
    with pytest.raises(UsageError, match="is no share"):
        make(project, baseline, candidate, Wanted(review=2))
    sheet, _, sealed = make(project, baseline, candidate, Wanted())
    with pytest.raises(UsageError, match="beside the sheet"):
        write(tmp_path / "t", sheet, tmp_path / "t" / "key.json", sealed)
    write(tmp_path / "t", sheet, tmp_path / "key.json", sealed)
    with pytest.raises(UsageError, match="is there already"):
        write(tmp_path / "t", sheet, tmp_path / "other.json", sealed)
    items = project.evalsets / "qa" / "items.jsonl"
    items.write_text(items.read_text().replace("what", "and"))
    with pytest.raises(UsageError, match="changed since the runs were made"):
        make(project, baseline, candidate, Wanted())
    with pytest.raises(BadFile, match=r"no `sheet\.json`"):
        read_sheet(tmp_path / "nowhere")
    assert json.loads((tmp_path / "t" / "sheet.json").read_text())["schema"] == 1
