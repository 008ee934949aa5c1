"""Files read and written by their entries are what they are as a whole, errors included."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness_cli.errors import BadFile
from harness_cli.records.reader import dump_yaml, load_yaml
from harness_cli.records.yaml_entries import dump_entries, load_entries

ROOT = Path(__file__).parents[2]
LINES = st.sampled_from(
    """a: 1|b: 2|a: x|- y|  c: 3|  - z|# no||"|'|k: "one|two"|[|]|m: {|n: 1}|l: [1,|  text| more
    |---|...|x: &n 1|y: *n|<<: {}|on: off|d: 2026-11-30|1: one|e: !!int 7|word|f: 1.0|? g|: h
    |u: >|u: >+|\tq: 1""".replace("\n    ", "").split("|")
) | st.sampled_from(["t: |", "t: |+", "t: |-"])
TEXTS = st.text(max_size=8) | st.text("ab \n\t.:#-", max_size=8)
KEYS = st.text(max_size=6) | st.sampled_from("abc")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def outcome(read, text):
    try:
        return read(text, name="f.yaml")
    except BadFile as exc:
        return str(exc), exc.hint


@example("  c: 3\na: 1")
@example("b: 2\n...\na: 1")
@example("t: |+\n  x\n\nb: 1")
@given(st.lists(LINES, max_size=7).map("\n".join))
def test_any_lines_read_by_entries_are_those_read_whole(text):
    assert outcome(load_entries, text) == outcome(load_yaml, text)


@given(PLAIN)
def test_anything_written_by_entries_is_that_written_whole(value):
    encoded = msgspec.json.encode(value)
    text = dump_entries(encoded)
    assert text == dump_yaml(msgspec.json.decode(encoded), fast=True)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "harness_repo").rglob("*.yaml")), ids=lambda p: p.name
)
def test_files_of_the_harness_read_by_entries_are_those_read_whole(path):
    text = path.read_text(encoding="utf-8")
    assert load_entries(text, name="f") == load_yaml(text, name="f")


def test_an_entry_that_stands_twice_is_an_error_at_its_line():
    with pytest.raises(BadFile, match=r"f\.yaml:3:1: the key `a` stands twice"):
        load_entries("a: 1\nb: 2\na: 3\n", name="f.yaml")
