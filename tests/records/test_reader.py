"""Files into records: every error carries its place and, where there is one, the fix."""

import pytest

from harness_cli.errors import BadFile
from harness_cli.records.config import ProjectConfig
from harness_cli.records.gates import GatesFile
from harness_cli.records.harness import Hook, Pipeline
from harness_cli.records.reader import (
    decode,
    dump_yaml,
    load_yaml,
    parse_json,
    parse_yaml,
    read_text,
    read_yaml,
    text_of,
)
from harness_cli.records.run import RunConfig

# ruff: noqa: E501  rows of tables read best on one line

GATES = """\
schema: 1
gates:
  - {name: a, kind: judge}
  - name: b
    kind: latency
    minimun_n: 3
"""


def refused(text, kind):
    with pytest.raises(BadFile) as caught:
        parse_yaml(text, kind, name="f.yaml")
    return str(caught.value), caught.value.hint or ""


def test_an_unknown_key_is_shown_with_line_and_the_nearest_known_one():
    message, hint = refused(GATES, GatesFile)
    assert message.startswith("f.yaml:6: ")
    assert "minimun_n" in message
    assert hint == "did you mean `minimum_n`?"


@pytest.mark.parametrize(
    ("text", "kind", "line", "words"),
    [
        ("schema: one\n", ProjectConfig, 1, "Expected `int`"),
        ("schema: 1\npolicies:\n  x: {kind: magic}\n", ProjectConfig, 3, "magic"),
        ("blocks:\n  - name: a\n  - {nme: b}\n", Pipeline, 3, "nme"),
        ("name: h\nevent: sometimes\n", Hook, 2, "sometimes"),
        ("gates: 3\n", GatesFile, 1, "array"),
        ("{}\n", GatesFile, 1, "gates"),
    ],
)
def test_a_wrong_value_is_shown_with_its_line(text, kind, line, words):
    message, _ = refused(text, kind)
    assert message.startswith(f"f.yaml:{line}: ")
    assert words in message


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("a: 1\na: 2\n", "stands twice", None),
        ("a: b: c\n", "mapping values", "must stand in quotes"),
        ("a:\n\t- b\n", "", "not with tabs"),
        ("a: [1, 2\n", "", None),
        ("a: !!python/object/apply:os.system [ls]\n", "constructor", None),
        ("? [1, 2]\n: x\n", "plain text", None),
        ("a: 1\n---\nb: 2\n", "", None),
    ],
)
def test_broken_yaml_is_refused_with_place(text, words, hint):
    with pytest.raises(BadFile) as caught:
        load_yaml(text, name="f.yaml")
    assert str(caught.value).startswith("f.yaml:")
    assert words in str(caught.value)
    assert hint is None or hint in (caught.value.hint or "")


def test_dates_and_versions_stay_the_text_they_are():
    assert load_yaml("a: 2026-01-02\nb: yes it is\n", name="f") == {
        "a": "2026-01-02",
        "b": "yes it is",
    }


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfname: x\r\nevent: request\r\n",
        "name: x\nevent: request\n".encode("utf-16"),
        b"name: x\revent: request\r",
    ],
    ids=["bom-crlf", "utf-16", "cr"],
)
def test_marked_and_foreign_line_ends_are_read(tmp_path, data):
    (tmp_path / "h.yaml").write_bytes(data)
    assert read_yaml(tmp_path / "h.yaml", Hook).name == "x"


def test_bytes_that_are_no_text_are_refused_with_their_place():
    with pytest.raises(BadFile, match="byte 2 is not UTF-8"):
        text_of(b"ab\xff", name="f")


@pytest.mark.parametrize("make", ["missing", "folder"])
def test_a_file_that_is_not_there_is_a_clear_error(tmp_path, make):
    path = tmp_path / "x.yaml"
    if make == "folder":
        path.mkdir()
    with pytest.raises(BadFile, match=r"x\.yaml"):
        read_yaml(path, Hook)


@pytest.mark.parametrize("text", ['{"id": "x"', "not json", "[1]", '{"id": 3}'])
def test_a_torn_or_foreign_json_file_is_refused(text):
    with pytest.raises(BadFile, match=r"run\.json"):
        parse_json(text, RunConfig, name="run.json")


def test_plain_data_is_refused_with_its_path():
    with pytest.raises(BadFile, match=r"gates\[0\]\.kind"):
        decode(GatesFile, {"gates": [{"name": "a", "kind": "none"}]})


def test_dumped_yaml_reads_back_as_the_same_value():
    made = parse_yaml(GATES.replace("minimun_n", "minimum_n"), GatesFile, name="f")
    assert parse_yaml(dump_yaml(made), GatesFile, name="g") == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!int abc", "not what its tag or its form says"),
        ("a: !!float abc", "not what its tag or its form says"),
        ("a: !!bool maybe", "not what its tag or its form says"),
        ("a: " + "9" * 5000, "not what its tag or its form says"),
        ("a: 0\nb: .nan", "f.yaml:2:4: a number must be finite"),
        ("a: -.inf", "f.yaml:1:4: a number must be finite"),
        ("a: 1.0e+999", "f.yaml:1:4: a number must be finite"),
        ("[" * 100_000 + "]" * 100_000, "f.yaml:1:1001: exceeded maximum nesting depth"),
        ("a: &a [*a]", "f.yaml:1:4: found unconstructable recursive node"),
        ("&a {b: *a}", "f.yaml:1:1: found unconstructable recursive node"),
        ('a: "\0"', "f.yaml:1:1: unacceptable character"),
    ],
)
def test_yaml_that_stands_for_no_value_is_bad_with_its_place(text, said):
    with pytest.raises(BadFile) as caught:
        load_yaml(text, name="f.yaml")
    assert said in str(caught.value)


def test_aliases_that_stand_for_billions_of_values_are_refused_at_once():
    lines = ["a0: &a0 [" + ",".join("x" * 9) + "]"]
    lines += [f"a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * 9) + "]" for i in range(1, 30)]
    with pytest.raises(BadFile, match="more than 1,000,000 values"):
        load_yaml("\n".join(lines), name="f.yaml")
    assert load_yaml("a: &a [1]\nb: [*a, *a]", name="f.yaml") == {"a": [1], "b": [[1], [1]]}


def test_merge_keys_are_refused_with_the_way_out():
    with pytest.raises(BadFile) as caught:
        load_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}", name="f.yaml")
    assert "f.yaml:2:5" in str(caught.value)
    assert caught.value.hint == "merge keys (`<<`) are not read: write the keys out"


def test_json_nested_without_end_is_bad():
    with pytest.raises(BadFile, match="nested too deeply"):
        parse_json("[" * 100_000 + "]" * 100_000, list, name="f.json")


def test_a_file_that_cannot_be_read_is_bad_with_the_reason(tmp_path):
    (tmp_path / "f").symlink_to(tmp_path / "f")
    with pytest.raises(BadFile, match="cannot be read: Too many levels of symbolic links"):
        read_text(tmp_path / "f")


@pytest.mark.parametrize(
    ("text", "kind", "said", "hint"),
    [
        ("gates: [{name: a, kind: judge, approvals: 0}]", GatesFile, ">= 1 at `gates[0].approvals`", "range"),
        ("gates: [{name: a, kind: judge, margin: 3}]", GatesFile, "<= 1.0 at `gates[0].margin`", "range"),
        ("gates: [{name: a, kind: judge, minimum_n: -3}]", GatesFile, ">= 1 at", "range"),
        ("gates: [{name: a, kind: judge, max_errored: -0.1}]", GatesFile, ">= 0.0 at", "range"),
        ("limits: {production: {tool_s: -1}}", ProjectConfig, "> 0.0 at `limits[...].tool_s`", "range"),
        ("limits: {production: {rounds: 0}}", ProjectConfig, ">= 1 at", "range"),
        ("policies: {x: {kind: openai, max_attempts: 0}}", ProjectConfig, ">= 1 at", "range"),
        ("policies: {x: {kind: openai, price: {input: -1, output: 1}}}", ProjectConfig, ">= 0.0", "range"),
        ("policy: 3", ProjectConfig, "Expected `str`, got `int` at `policy`", "in quotes"),
        ("gates: [{name: a, kind: magic}]", GatesFile, "at `gates[0].kind`", "known: approvals, capability"),
        ("gates: [{name: a}]", GatesFile, "missing required field `kind`", "add `kind: …`"),
        ('runs: "a\\0b"', ProjectConfig, "a text must not hold NUL", ""),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_its_place_and_what_to_write(text, kind, said, hint):
    message, advice = refused(text, kind)
    assert message.startswith("f.yaml:1:")
    assert said in message
    assert hint in advice
