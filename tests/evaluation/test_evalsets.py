import json
from datetime import datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import BadFile, Stale, UnknownName, UsageError
from harness_cli.evaluation.evalsets import findings, load_evalset, names, split_digests
from harness_cli.evaluation.seal import openings
from harness_cli.evaluation.sealing import freeze, with_block
from harness_cli.evaluation.survey import CanonicalLines
from harness_cli.records.canonical import canonical_json, digest
from harness_cli.store.project import Project

ITEM = {"id": "a-1", "split": "dev", "request": {"comments": [{"text": "hi"}]}}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    return Project.find(tmp_path)


def write(project, items, name="tiny", header="", raw=False):
    folder = project.root / "evalsets" / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = items if raw else [json.dumps(item) for item in items]
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "evalset.yaml").write_text(
        header or f"schema: 1\nname: {name}\nsplits: {{dev: {len(lines)}}}\ncatalogue: null\n"
    )
    return folder


def items(n, split="dev"):
    return [{**ITEM, "id": f"{split}-{i}", "split": split} for i in range(n)]


HEADER = """\
schema: 1
name: tiny
# two splits, one of them sealed
splits: {dev: 3, test: 2}
catalogue: null
seal: {splits: [test]}   # by us
"""


def test_the_items_of_a_split_are_streamed_in_file_order(project):
    write(project, items(3) + items(2, "test"), header=HEADER)
    evalset = load_evalset(project, "tiny")
    assert evalset.ref.split == "dev"
    assert evalset.ref.n == len(evalset.items) == 3
    assert [item.id for item in evalset.items] == ["dev-0", "dev-1", "dev-2"]
    assert [item.id for item in evalset.items.first(2)] == ["dev-0", "dev-1"]
    assert evalset.item("dev-2").id == "dev-2"
    with pytest.raises(UnknownName, match="no item named `dev-9`"):
        evalset.item("dev-9")
    assert names(project) == ["tiny"]


def test_a_sealed_split_needs_a_reason_and_logs_who_when_and_why_before_the_first_item(project):
    write(project, items(3) + items(2, "test"), header=HEADER)
    log = project.evalsets / "seal.log.jsonl"
    with pytest.raises(UsageError, match="is sealed") as caught:
        load_evalset(project, "tiny", split="test")
    assert "--reason" in caught.value.hint
    evalset = load_evalset(project, "tiny", split="test", reason="release 3")
    assert openings(log) == []  # nothing was handed out yet
    stream = iter(evalset.items)
    next(stream)
    (opening,) = openings(log)
    assert opening.why == "release 3"
    assert opening.by
    assert datetime.fromisoformat(opening.at).tzinfo is not None
    assert (opening.evalset, opening.split, opening.digest) == ("tiny", "test", evalset.digest)
    list(stream)
    list(load_evalset(project, "tiny", split="test", reason="again").items)
    assert [o.why for o in openings(log)] == ["release 3", "again"]


def test_a_seal_log_that_cannot_be_written_hands_out_nothing(project):
    write(project, items(3) + items(2, "test"), header=HEADER)
    (project.evalsets / "seal.log.jsonl").mkdir()
    evalset = load_evalset(project, "tiny", split="test", reason="release 3")
    with pytest.raises(IsADirectoryError):
        next(iter(evalset.items))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": "a", "request": {}}', "{half"], r"items.jsonl:2: .*(truncated|malformed)"),
        (['{"id": "a", "request": {}, "splt": "dev"}'], r":1: .*`splt`.*did you mean `split`"),
        (['{"id": "a"}'], r":1: .*required field `request`"),
        (['{"id": "a", "request": {}}', '{"id": "a", "request": {}}'], r":2: the id `a` stands tw"),
        (['{"id": " ", "request": {}}'], r":1: an id must be text"),
        (['{"id": "a", "request": {"channel": "open"}}'], r":1: .*request.channel"),
        (['{"id": "a", "split": "x", "request": {}}'], r"split `x` is not in evalset.yaml"),
        (['{"id": "\\ud83d", "request": {}}'], r":1: "),
        ([""], "there are no items"),
    ],
)
def test_a_wrong_line_is_told_with_its_place(project, lines, message):
    write(project, lines, raw=True)
    with pytest.raises(BadFile, match=message):
        load_evalset(project, "tiny")
    assert findings(project, "tiny")


def test_all_wrong_lines_are_told_at_once(project):
    write(project, ["{1", "{2", "{3"], raw=True)
    with pytest.raises(BadFile) as caught:
        load_evalset(project, "tiny")
    assert [f"items.jsonl:{n}:" in str(caught.value) for n in (1, 2, 3)] == [True] * 3


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("schema: 1\nname: tiny\nsplits: {dev: 4}\ncatalogue: null\n", "has 3 items, .* says 4"),
        (
            "schema: 1\nname: tiny\nsplits: {dev: 3}\ncatalogue: null\ndigests: {dev: '00'}\n",
            "has changed: its digest is [0-9a-f]{64}, evalset.yaml froze 00",
        ),
        ("schema: 2\nname: tiny\n", "schema 2 is not known"),
        ("schema: 1\nname: other\n", "is not its folder's name `tiny`"),
        ("schema: 1\nname: tiny\nsplitz: {}\n", "evalset.yaml:3.*splitz"),
    ],
)
def test_a_header_that_does_not_hold_is_refused(project, header, message):
    write(project, items(3), header=header)
    with pytest.raises(BadFile, match=message):
        load_evalset(project, "tiny")


def test_an_unknown_evalset_or_split_is_told_with_the_nearest_name(project):
    write(project, items(1), name="live_stream_qa")
    with pytest.raises(UnknownName) as caught:
        load_evalset(project, "live_stream_aq")
    assert "did you mean `live_stream_qa`?" in caught.value.hint
    with pytest.raises(UnknownName, match="no split named `tset`"):
        load_evalset(project, "live_stream_qa", split="tset")


def test_a_byte_order_mark_crlf_and_blank_lines_change_nothing(project):
    folder = write(project, items(2))
    before = load_evalset(project, "tiny")
    listed = list(before.items)
    text = (folder / "items.jsonl").read_text()
    (folder / "items.jsonl").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n\r\n").encode())
    after = load_evalset(project, "tiny")
    assert after.digest == before.digest
    assert list(after.items) == listed


def test_the_digest_of_a_split_is_of_the_canonical_json_of_its_items(project):
    every = [
        {**item, "expect": {"facts": [{"field": "price", "value": 89.0}]}} for item in items(3)
    ]
    write(project, every)
    assert split_digests(project, "tiny") == {"dev": digest(every)}


def test_the_digest_binds_items_and_header_but_not_notes_and_order_of_keys(project):
    folder = write(project, items(2))
    first = load_evalset(project, "tiny").digest
    turned = [dict(reversed(item.items())) for item in items(2)]
    write(project, turned)
    header = folder / "evalset.yaml"
    header.write_text(header.read_text() + "notes: other words\n")
    assert load_evalset(project, "tiny").digest == first
    header.write_text(header.read_text() + "judge: none\n")
    changed = load_evalset(project, "tiny").digest
    assert changed != first
    write(project, items(1) + [{**items(2)[1], "category": "chat"}])
    assert load_evalset(project, "tiny").digest not in (first, changed)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(plain)
def test_the_fast_canonical_form_is_the_slow_one(value):
    line = msgspec.json.encode(value)
    assert CanonicalLines().of(line) == canonical_json(msgspec.json.decode(line))


def test_a_number_no_double_holds_is_refused_not_turned_into_nothing():
    with pytest.raises(BadFile, match="1e400 is too large"):
        CanonicalLines().of(b'{"a":1e400}')


def test_freezing_writes_digests_and_seal_and_leaves_the_rest_of_the_header_alone(project):
    folder = write(project, items(3) + items(2, "test"), header=HEADER)
    frozen = freeze(project, "tiny", seal=("dev",))
    assert frozen.digests == split_digests(project, "tiny")
    text = (folder / "evalset.yaml").read_text()
    assert "# two splits, one of them sealed" in text
    assert frozen.seal.splits == ("dev", "test")
    assert load_evalset(project, "tiny", reason="x").header == frozen
    items_file = folder / "items.jsonl"
    items_file.write_text(items_file.read_text().replace("hi", "ho"))
    with pytest.raises(BadFile, match="has changed"):
        load_evalset(project, "tiny", reason="x")


def test_a_header_that_cannot_be_rewritten_in_place_is_left_alone_and_says_what_to_write(project):
    header = '{"schema": 1, "name": "tiny", "splits": {"dev": 2}, "catalogue": null}'
    folder = write(project, items(2), header=header)
    with pytest.raises(BadFile, match="cannot be rewritten in place") as caught:
        freeze(project, "tiny")
    assert "digests:" in caught.value.hint
    assert (folder / "evalset.yaml").read_text() == header


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a: 1\n", "a: 1\nk:\n  x: 1\n"),
        ("a: 1", "a: 1\nk:\n  x: 1\n"),
        ("k: {x: 0}\nb: 2\n", "k:\n  x: 1\nb: 2\n"),
        ("k:\n  x: 0\n  y:\n  - 1\nb: 2\n", "k:\n  x: 1\nb: 2\n"),
        ("k:\n- 1\n- 2\nb: 2\n", "k:\n  x: 1\nb: 2\n"),
    ],
)
def test_a_block_is_replaced_or_added_and_nothing_else(text, after):
    assert with_block(text, "k", {"x": 1}) == after


def test_an_evalset_that_is_edited_while_it_is_handed_out_stops_the_run(project):
    folder = write(project, items(3))
    evalset = load_evalset(project, "tiny")
    stream = iter(evalset.items)
    next(stream)
    with (folder / "items.jsonl").open("a") as file:
        file.write(json.dumps(ITEM) + "\n")
    with pytest.raises(Stale, match=r"`tiny/items.jsonl` changed while it was being evaluated"):
        list(stream)
