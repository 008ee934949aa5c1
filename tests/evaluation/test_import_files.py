"""Files as strangers send them: what is broken, boundless or planted is refused, whole."""

import io
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imported_files import left_behind, tau2_file, tau2_simulation, tau_record, write

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import TABLE

from harness_cli.errors import BadFile, HarnessError, UnknownName, UsageError
from harness_cli.evaluation.imports.bring_in import bring_in
from harness_cli.evaluation.imports.elements import elements, members, whole
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.evaluation.imports.kinds import KINDS, guessed
from harness_cli.evaluation.imports.source import Source, opened


def as_json(value):
    return json.dumps(value).encode()


GOOD = as_json([tau_record(0)])
DEEP = b"[" * 5000 + b"]" * 5000
FILES = {
    # kind, bytes, what is said
    "nothing": ("tau-bench", b"", "the file is empty"),
    "blanks": ("tau-bench", b" \n\t\n", "nothing but blanks"),
    "cut short": ("tau-bench", GOOD[:-40], "cut short"),
    "cut in a text": ("tau-bench", b'[{"task_id": "abc', "cut short"),
    "no JSON": ("tau-bench", b"[{task_id: 0}]", "no JSON"),
    "two lists": ("tau2", b"[1] [2]", "a τ²-bench result file is an object"),
    "nested without end": ("tau-bench", DEEP, "nested deeper than 100"),
    "nested in a line": ("jsonl", b'{"prompt": ' + DEEP + b"}\n", "nested too deeply"),
    "nested YAML": ("promptfoo", b"prompts: " + DEEP, "nesting depth"),
    "Latin-1": ("tau-bench", GOOD.replace(b"I am ill", b"I am \xe9"), "is not UTF-8"),
    "Latin-1 rows": ("csv", b"prompt\n\xe9t\xe9\n", "is not UTF-8"),
    "half a UTF-16": ("csv", b"\xff\xfep\x00r\x00o", "no whole UTF-16"),
    "a number without measure": (
        "tau-bench",
        GOOD.replace(b'"reward": 1.0', b'"reward": 1e999', 1),
        "out of range",
    ),
    "an id without measure": (
        "tau-bench",
        GOOD.replace(b'"task_id": 0', b'"task_id": ' + b"9" * 5000, 1),
        "record 1",
    ),
    "an id with NUL": (
        "tau-bench",
        GOOD.replace(b'"task_id": 0', b'"task_id": "a\\u0000b"', 1),
        "holds a control character",
    ),
    "half a character": (
        "jsonl",
        b'{"prompt": "\\ud800"}\n',
        "x.jsonl:1",
    ),
    "an id twice": ("jsonl", b'{"id": 1, "prompt": "a"}\n{"id": 1, "prompt": "b"}\n', ":2: the id"),
    "a key twice": ("tau2", b'{"info": {}, "info": {}}', "the key `info` stands twice"),
    "a column twice": ("csv", b"prompt,prompt\na,b\n", "a name of its own"),
    "too many cells": ("csv", b"prompt,expected\na,b,c\n", "x.csv:2: 3 cells in a row of 2"),
    "a quote that never ends": ("csv", b'prompt\n"a\n', "is a quote never closed?"),
    "a score that is none": ("csv", b"prompt,score\na,11\n", "x.csv:2: the score `11`"),
    "a row that asks nothing": ("jsonl", b'{"answer": "x"}\n', "the row asks nothing"),
    "no zip": ("inspect", b"PK\x03\x04 and no more", "no whole zip archive"),
    "no log": ("inspect", b'{"a": 1}', "there is no `eval`"),
    "no spans": ("otel", b'{"spans": []}', "there are no `resourceSpans`"),
    "no conversation": ("openai-chat", b'{"id": 1}\n', "there are no `messages`"),
    "a message of nobody": (
        "openai-chat",
        b'{"messages": [{"role": "root", "content": "x"}]}\n',
        "the role `root` is none of",
    ),
    "no evals": ("evals-json", b'{"evals": []}', "`evals` is empty"),
}
ENDINGS = {"csv": "csv", "jsonl": "jsonl", "promptfoo": "yaml", "inspect": "eval"}


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_is_refused_with_place_and_leaves_nothing(name, make_project):
    project = make_project()
    kind, data, says = FILES[name]
    path = write(project.root, f"x.{ENDINGS.get(kind, 'json')}", data)
    with pytest.raises(BadFile) as caught:
        bring_in(project, kind, path, ImportOptions(name="tried"))
    assert says in f"{caught.value} {caught.value.hint}"
    assert "x." in str(caught.value)
    assert left_behind(project) == set()


def archive(**members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        for name, value in members.items():
            made.writestr(name.replace("__", "/") + ".json", value)
    return data.getvalue()


HEAD = json.dumps({"eval": {"task": "t", "model": "m"}})


def lying(data, size):
    """The archive with every size of an unpacked member changed in its directory."""
    made = bytearray(data)
    at = made.find(b"PK\x01\x02")
    while at >= 0:
        made[at + 24 : at + 28] = size.to_bytes(4, "little")
        at = made.find(b"PK\x01\x02", at + 4)
    return bytes(made)


ZIPS = {
    "a member of 70 MB": (archive(header=HEAD, samples__a=b"0" * 70_000_000), "more than"),
    "a bomb that says it is small": (
        lying(archive(header=b" " * 5_000_000), 100),
        "its size or sum is another",
    ),
    "a method of its own": (
        archive(header=HEAD).replace(b"\x08\x00", b"\x63\x00"),
        "packed by method 99",
    ),
    "no header": (archive(samples__a=b"{}"), "there is no member"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_a_hostile_archive_is_refused_and_nothing_is_unpacked(name, make_project):
    project = make_project()
    data, says = ZIPS[name]
    path = write(project.root, "x.eval", data)
    before = set(project.root.rglob("*"))
    with pytest.raises(BadFile, match=says):
        bring_in(project, "inspect", path, ImportOptions(name="tried"))
    assert set(project.root.rglob("*")) == before


def test_names_of_members_are_never_paths(make_project):
    project = make_project()
    sample = {"id": "../../x", "epoch": 1, "input": "hi", "messages": [], "scores": {}}
    data = archive(header=HEAD, **{"samples__..__..__evil": json.dumps(sample)})
    before = set(project.root.parent.rglob("evil*"))
    made = bring_in(project, "inspect", write(project.root, "x.eval", data), ImportOptions())
    assert [i.id for i in made.evalset.items] == ["../../x"]
    assert set(project.root.parent.rglob("evil*")) == before


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden", "", "catalogue", "a\0b", "x" * 400])
def test_an_evalset_cannot_be_named_out_of_its_folder(name, make_project):
    project = make_project()
    path = write(project.root, "x.json", GOOD)
    with pytest.raises(UsageError):
        bring_in(project, "tau-bench", path, ImportOptions(name=name))
    assert left_behind(project) == set()


@pytest.mark.parametrize("what", ["folder", "absent", "pipe", "device"])
def test_only_a_regular_file_is_read(what, make_project):
    project = make_project()
    path = project.root / "x.json"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    with pytest.raises(BadFile):
        bring_in(project, "tau-bench", path, ImportOptions())


def test_a_kind_that_there_is_not_has_the_nearest_in_its_hint(make_project):
    with pytest.raises(UnknownName) as caught:
        bring_in(make_project(), "taubench", make_project, ImportOptions())
    assert "did you mean `tau-bench`?" in caught.value.hint


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_read(mark, make_project):
    project = make_project()
    text = "prompt,reply,score\n价格？,九元,1\n"
    path = write(project.root, "x.csv", text.encode(mark))
    made = bring_in(project, "csv", path, ImportOptions())
    assert [i.request.prompt for i in made.evalset.items] == ["价格？"]


def test_numbers_beyond_64_bits_and_planted_keys_are_only_data(make_project):
    project = make_project()
    call = ("book", {"n": 10**40, "__class__": "x", "$text": "no-such-id"}, '{"$text": "x"}')
    path = write(project.root, "x.json", [tau_record(0, calls=[call])])
    made = bring_in(project, "tau-bench", path, ImportOptions())
    trajectory = made.run.trajectory("0")
    assert trajectory.calls[0].arguments["n"] == 10**40
    assert trajectory.calls[0].result.structured == {"$text": "x"}


def test_secrets_of_a_file_reach_neither_evalset_nor_run(make_project):
    project = make_project()
    key = "sk-" + "a1B2c3D4" * 4
    row = {"id": "1", "prompt": f"my key is {key}", "reply": f"keep {key}", "expected": "x"}
    made = bring_in(project, "jsonl", write(project.root, "x.jsonl", row), ImportOptions())
    written = [*made.evalset.folder.iterdir(), *made.run.path.iterdir()]
    assert not [p for p in written if key in p.read_text()]


@settings(max_examples=80, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
def test_members_found_by_their_brackets_are_those_that_json_finds(value):
    data = json.dumps({"a": value, "list": [value, 1, value]}).encode()
    source = Source(path=None, name="x", data=data)
    parts = members(source, whole(source))
    assert json.loads(source.at(*parts["a"], "a")) == value
    found = [json.loads(source.at(*s, "e")) for s in elements(source, parts["list"])]
    assert found == [value, 1, value]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 400), st.binary(max_size=6))
def test_a_damaged_file_ends_in_an_error_of_ours(at, planted):
    data = as_json(tau2_file([tau2_simulation()]))
    at = at * len(data) // 400
    source = Source(path=None, name="x", data=data[:at] + planted + data[at + len(planted) :])
    try:
        for span in members(source, whole(source)).values():
            if source.data[span.start : span.start + 1] == b"[":
                list(elements(source, span))
    except HarnessError:
        pass


KIND_OF = {
    "tau-bench": GOOD,
    "tau2": as_json(tau2_file([])),
    "otel": b'{"resourceSpans": []}',
    "openai-chat": b'{"messages": [{"role": "user", "content": "x"}]}\n',
    "inspect": as_json({"version": 2, "eval": {}, "plan": {}, "samples": []}),
}


@pytest.mark.parametrize("kind", KIND_OF)
def test_a_result_file_is_known_by_its_beginning(kind, tmp_path):
    with opened(write(tmp_path, "x.json", KIND_OF[kind])) as source:
        assert guessed(source) == kind


def test_every_kind_has_its_row_in_the_docs_and_stands_in_the_help():
    text = (Path(__file__).parents[2] / "docs/imports.md").read_text()
    assert not [kind for kind in KINDS if f"| `{kind}` |" not in text]
    (argument,) = [p for p in TABLE["evalset import"].params if p.name == "kind"]
    named = argument.help.partition(" (")[0].replace(" or ", ", ").split(", ")
    assert named == sorted(KINDS)


MEASURE = """
import json, sys, tracemalloc
from pathlib import Path
from harness_cli.evaluation.imports.bring_in import bring_in
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.store.project import Project
root, small, large = map(Path, sys.argv[1:])
bring_in(Project.find(root), "tau-bench", small, ImportOptions(name="small"))
tracemalloc.start()
bring_in(Project.find(root), "tau-bench", large, ImportOptions(name="large"))
print(json.dumps(tracemalloc.get_traced_memory()[1]))
"""


def test_memory_does_not_grow_with_the_file(make_project):
    """6 MB of dialogues: one is in memory at a time, and the repeats of one task in the report."""
    project = make_project()
    filler = "word " * 20_000
    records = [tau_record(n // 2, n % 2, end=filler) for n in range(60)]
    small = write(project.root, "small.json", records[:4])
    large = write(project.root, "large.json", records)
    argv = [sys.executable, "-c", textwrap.dedent(MEASURE), project.root, small, large]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert large.stat().st_size > 6_000_000
    assert json.loads(done.stdout) < 3_000_000
