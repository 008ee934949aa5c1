"""Operations on files: exact, all or nothing, and the bytes around an edit stay what they were."""

# ruff: noqa: E501  rows of tables read best on one line

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.errors import BadFile
from harness_cli.evolution.ops import after, apply_ops
from harness_cli.evolution.pointer import change_value, changed, tokens_of
from harness_cli.evolution.text_file import Splice, TextFile
from harness_cli.evolution.unified import apply_diff, make_diff, split_diff
from harness_cli.records.diagnosis import Op
from harness_cli.records.reader import dump_yaml, load_yaml

SKILL = b'\xef\xbb\xbf---\r\nname: item-qa\r\ndescription: "a --- b"\r\n---\r\n# Rules\r\n---\r\n- one\r\n'
YAML = (
    b"# pipeline\r\nwords: {value: 30, range: [10, 60]}  # short\r\nblocks:\r\n  - name: base\r\n"
)


def op(kind, path, **fields):
    return Op(op=kind, path=path, **fields)


@pytest.mark.parametrize(
    ("before", "edit", "after_bytes"),
    [
        (b"a\r\nb\r\n", op("replace", "f.md", search="a\n", text="x\ny\n"), b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\r\n", op("unified-diff", "f.md", text="@@ -1,2 +1,2 @@\n-a\n+x\n b\n"), b"x\r\nb\r\n"),
        (b"\xef\xbb\xbfa\nb", op("replace", "f.md", search="b", text="c"), b"\xef\xbb\xbfa\nc"),
        (b"\xff\xfea\x00\n\x00", op("replace", "f.md", search="a", text="\u4e2d"), b"\xff\xfe\x2d\x4e\n\x00"),
        (b"a\r\nb\n", op("replace", "f.md", search="b", text="c"), b"a\r\nc\n"),
        (b"a\r\nb\r\n", op("write", "f.md", text="a\nc\n"), b"a\r\nc\r\n"),
        (SKILL, op("set-frontmatter", "f.md", key="description", value="x: y"),
         SKILL.replace(b'"a --- b"', b'"x: y"')),
        (SKILL, op("set-frontmatter", "f.md", key="metadata.harness.kind", value="reply"),
         SKILL.replace(b'--- b"\r\n', b'--- b"\r\nmetadata:\r\n  harness.kind: reply\r\n')),
    ],
    ids=["crlf-replace", "crlf-diff", "bom", "utf-16", "mixed-ends", "write-keeps-crlf",
         "frontmatter-crlf-bom-fence-in-value", "frontmatter-adds-metadata"],
)  # fmt: skip
def test_line_ends_and_marks_survive_an_edit(before, edit, after_bytes):
    assert apply_ops({"f.md": before}, [edit]) == {"f.md": after_bytes}


@pytest.mark.parametrize(
    ("pointer", "value", "remove", "line"),
    [
        ("/words/value", 40, False, b"words: {value: 40, range: [10, 60]}  # short\r\n"),
        ("/words/range/1", 80, False, b"words: {value: 30, range: [10, 80]}  # short\r\n"),
        (
            "/words/unit",
            "word",
            False,
            b"words: {value: 30, range: [10, 60], unit: word}  # short\r\n",
        ),
        ("/words/value", None, True, b"words: {range: [10, 60]}  # short\r\n"),
        ("/blocks/-", {"name": "faq"}, False, b"  - name: base\r\n  - name: faq\r\n"),
        ("/blocks/0/when", "faq", False, b"  - name: base\r\n    when: faq\r\n"),
        ("/schema", 1, False, b"  - name: base\r\nschema: 1\r\n"),
    ],
)
def test_a_pointer_changes_one_value_of_a_yaml_file_and_nothing_else(pointer, value, remove, line):
    edit = op("json-pointer", "p.yaml", pointer=pointer, value=value, remove=remove)
    made = apply_ops({"p.yaml": YAML}, [edit])["p.yaml"]
    assert line in made
    assert made.startswith(b"# pipeline\r\n")
    assert b"\n" not in made.replace(b"\r\n", b"")


plain = st.recursive(
    st.one_of(
        st.integers(-9, 9), st.booleans(), st.none(), st.text("ab :#-'\"\n,é中😀", max_size=8)
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("klmn"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from("abc"), plain, min_size=1),
    st.data(),
    plain,
    st.sampled_from(["y", "j", "J"]),
)
def test_a_pointer_edit_means_exactly_its_one_change(document, data, value, form):
    tokens, here = [], document
    while True:
        key = data.draw(
            st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here)))
        )
        tokens.append(str(key))
        here = here[key]
        if not here or not isinstance(here, dict | list) or data.draw(st.booleans()):
            break
    name = "f.yaml" if form == "y" else "f.json"
    text = (
        dump_yaml(document)
        if form == "y"
        else json.dumps(document, indent=2 if form == "J" else None)
    )
    pointer = "/" + "/".join(tokens)
    made = change_value(text, pointer, value, name=name)
    done = text[: made.start] + made.new + text[made.end :]
    wanted = changed(document, tokens_of(pointer, name=name), value, name=name)
    assert (load_yaml(done, name=name) if form == "y" else json.loads(done)) == wanted


@given(st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r", "中"]), max_size=30), st.data())
def test_a_splice_leaves_every_byte_outside_it_alone(parts, data):
    raw = "".join(parts).encode()
    file = TextFile.of(raw, name="f")
    start = data.draw(st.integers(0, len(file.text)))
    end = data.draw(st.integers(start, len(file.text)))
    cuts = [i for i in range(len(file.raw) + 1) if file.raw[i - 1 : i + 1] != "\r\n"]
    plain = [file.raw[:i].replace("\r\n", "\n").replace("\r", "\n") for i in cuts]
    head, tail = cuts[plain.index(file.text[:start])], cuts[plain.index(file.text[:end])]
    done = file.splice([Splice(start, end, "Q")])
    assert done == (file.raw[:head] + "Q" + file.raw[tail:]).encode()
    assert file.splice([Splice(start, end, file.text[start:end])]) == raw


@given(
    st.lists(st.sampled_from("abc"), max_size=12),
    st.lists(st.sampled_from("abc"), max_size=12),
    st.booleans(),
)
def test_a_diff_we_make_applies_and_its_parts_together_make_the_same(old, new, newline):
    before = "".join(f"{x}{i}\n" for i, x in enumerate(old))
    after_text = "".join(f"{x}{i}\n" for i, x in enumerate(new)) or "z"
    after_text = after_text if newline else after_text.rstrip("\n")
    if before == after_text:
        return
    assert apply_diff(before, make_diff(before, after_text, "f"), name="f") == after_text
    step = before
    for part in split_diff(before, after_text):
        step = apply_diff(step, part, name="f")
    assert step == after_text


@pytest.mark.parametrize(
    ("files", "edit", "says"),
    [
        ({"f": b"aXbXc"}, op("replace", "f", search="X", text="-"), "stands 2 times, expected 1 (lines 1, 1)"),
        ({"f": b"abc"}, op("replace", "f", search="X", text="-"), "stands 0 times"),
        ({"f": b"abc"}, op("replace", "f", search="", text="-"), "empty `search`"),
        ({"f": b"abc"}, op("replace", "f", search="a"), "needs `text`"),
        ({}, op("delete", "f"), "is not there"),
        ({"f": b"", "g": b""}, op("move", "f", to="g"), "is there already"),
        ({"f": b"a\na\n"}, op("unified-diff", "f", text="@@ -9,1 +9,1 @@\n-a\n+b\n"), "stands at 2 places"),
        ({"f": b"a\n"}, op("unified-diff", "f", text="@@ -1,1 +1,1 @@\n-b\n+c\n"), "hunk 1: its text is nowhere"),
        ({"f": b"a\n"}, op("unified-diff", "f", text="no diff"), "no `@@` hunk"),
        ({"f.yaml": b"a: &x 1\nb: *x\n"}, op("json-pointer", "f.yaml", pointer="/b", value=2), "cannot be changed alone"),
        ({"f.yaml": b"a: 1\n"}, op("json-pointer", "f.yaml", pointer="/b/c", value=2), "nothing stands at `/b`"),
        ({"f.json": b'{"a": [1]}'}, op("json-pointer", "f.json", pointer="/a/5", value=2), "nothing stands at `/a/5`"),
        ({"f.md": b"# no front\n"}, op("set-frontmatter", "f.md", key="name", value="x"), "no frontmatter"),
        ({"f": b"\xff\x00"}, op("replace", "f", search="a", text="b"), "is not UTF-8"),
    ],
)  # fmt: skip
def test_an_operation_that_does_not_fit_is_refused_with_its_place(files, edit, says):
    with pytest.raises(BadFile) as caught:
        apply_ops(files, [edit])
    assert says in str(caught.value)


def test_operations_build_on_one_another_and_a_move_keeps_the_bytes():
    files = {"a": b"1\r\n", "b": b"2"}
    made = apply_ops(files, [op("replace", "a", search="1", text="3"), op("move", "a", to="c"),
                             op("delete", "b"), op("write", "d", text="new\n")])  # fmt: skip
    assert made == {"a": None, "b": None, "c": b"3\r\n", "d": b"new\n"}
    assert after(files, made) == {"c": b"3\r\n", "d": b"new\n"}
