"""What is read and written quickly is what PyYAML reads and writes, errors included."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.errors import BadFile
from harness_cli.records import yaml_forms
from harness_cli.records.reader import dump_yaml, load_strings, load_yaml

ROOT = Path(__file__).parents[2]
FILES = sorted(
    p
    for folder in ("harness_repo", "evalsets", "harness_cli/augmentation/tables", "templates")
    for p in (ROOT / folder).rglob("*.yaml")
    if p.stat().st_size < 200_000
)


class Slow(yaml.CSafeLoader):
    """The same rules by PyYAML's own search and tables."""

    yaml_implicit_resolvers = yaml_forms.Loader.yaml_implicit_resolvers
    yaml_constructors = yaml_forms.Loader.yaml_constructors


class SlowPlain(yaml.CSafeDumper):
    yaml_representers = yaml_forms.FastPlain.yaml_representers

    def ignore_aliases(self, data):
        return True


def slowly(text):
    try:
        return yaml.load(text, Loader=Slow)
    except (yaml.YAMLError, ValueError, KeyError) as exc:
        return type(exc).__name__, str(exc)


def quickly(text):
    try:
        return yaml.load(text, Loader=yaml_forms.Loader)
    except (yaml.YAMLError, ValueError, KeyError) as exc:
        return type(exc).__name__, str(exc)


def written_slowly(value):
    return yaml.dump(
        value, Dumper=SlowPlain, sort_keys=False, allow_unicode=True,
        default_flow_style=False, width=100,
    )  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_ship_are_read_and_written_as_by_pyyaml(path):
    text = path.read_text()
    read = quickly(text)
    assert read == slowly(text)
    assert dump_yaml(read, fast=True) == written_slowly(read)


@pytest.mark.parametrize(
    "text",
    [
        "", "---\n", "# only words\n", "a", "[1, 2.5, 0x1F, 1_0, ~, null, true, yes, on, 12:30]",
        "a: 1\na: 2", "? [1]\n: 2", "? {a: 1}\n: 2", "1: x\ntrue: y", "a: .inf", "a: .nan",
        'a: "\\0"', '"\\0": a', "a: !!int x", "a: !!str 5", "a: !!str {=: x}", "!!map [1]",
        "!!seq {a: 1}", "a: !!binary aGk=", "a: !!set {x}", "a: !!python/name:os.system",
        "a: &x [1, *x]", "a: &x [1]\nb: *x", "a: &x {k: 1}\nb: *x", "a: &x 1\nb: *x", "<<: {a: 1}",
        "a: 2026-11-30", "a: 2026-11-30T10:00:00Z", "a: |\n  two\n  lines\n", "a: 'it''s'",
        "a: *nobody", "a: 1\n--- \nb: 2", "a: [", "a:\n\tb: 1", "=: 1", "- - - 1", "a: 1e3",
        "{a: {b: {c: [d, {e: f}]}}}", "a: 0o17\nb: 017\nc: +1\nd: -0", "x" * 200, "9" * 70,
        "a: " + "9" * 5000,
    ],
)  # fmt: skip
def test_odd_documents_are_read_as_by_pyyaml(text):
    assert repr(quickly(text)) == repr(slowly(text))


def test_a_cycle_is_the_same_cycle():
    read = quickly("&x [1, *x]")
    assert read[1] is read


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_any_value_is_written_as_by_pyyaml_and_read_as_by_pyyaml(value):
    text = dump_yaml(value, fast=True)
    assert text == written_slowly(value)
    assert repr(quickly(text)) == repr(slowly(text))


@given(st.text(alphabet="ab:-[]{}\n \"'#&*!|>0123.~", max_size=60))
def test_any_text_is_read_as_by_pyyaml(text):
    assert repr(quickly(text)) == repr(slowly(text))


def test_strings_keep_their_words():
    assert load_strings("a: 1.0\nb: yes\nc: ~", name="x") == {"a": "1.0", "b": "yes", "c": "~"}
    with pytest.raises(BadFile, match="x:2:1: the key `a` stands twice"):
        load_strings("a: 1\na: 2", name="x")
    with pytest.raises(BadFile, match="stands twice"):
        load_yaml("a: 1\na: 2", name="x")
