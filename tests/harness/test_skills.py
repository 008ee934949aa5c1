import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.errors import BadFile
from harness_cli.harness.skills import allowed_tools, parse_skill, read_skill

PATH = "skills/a/SKILL.md"
HEAD = "---\nname: a\ndescription: {}\nallowed-tools: Read\n---\n{}"


def text(description="what it does", body="Do it.\n"):
    return HEAD.format(description, body)


READABLE = {
    "plain": text().encode(),
    "utf-8 with a byte-order mark": b"\xef\xbb\xbf" + text().encode(),
    "utf-16": text().encode("utf-16"),
    "utf-16 big endian": b"\xfe\xff" + text().encode("utf-16-be"),
    "CRLF": text().replace("\n", "\r\n").encode(),
    "blank lines before the first fence": b"\n \n" + text().encode(),
    "a tab after the fences": text().replace("---", "---\t").encode(),
    "no line end at the end": text(body="Do it.").encode(),
}


@pytest.mark.parametrize("data", READABLE.values(), ids=READABLE)
def test_every_way_of_saving_a_skill_reads_the_same(data):
    skill = parse_skill(data, PATH)
    assert (skill.name, skill.description, skill.body) == ("a", "what it does", "Do it.\n")
    assert skill.allowed_tools == ("Read",)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"a --- b"', "a --- b"),
        ("a --- b", "a --- b"),
        ('"first\n---\nlast"', "first --- last"),
        ("'first\n---\nlast'", "first --- last"),
        ("|\n  first\n  ---\n  last", "first\n---\nlast"),
        ("'Use it: always'", "Use it: always"),
        ('"说明：价格 # 1"', "说明：价格 # 1"),
        (">-\n  two\n  lines", "two lines"),
    ],
)
def test_three_dashes_inside_a_value_do_not_end_the_frontmatter(written, meant):
    skill = parse_skill(text(written).encode(), PATH)
    assert skill.description == meant
    assert skill.allowed_tools == ("Read",)
    assert skill.body == "Do it.\n"


def test_rules_in_the_body_are_text_and_no_yaml():
    body = "One\n\n---\n\nkey: [broken\n\n---\nTwo\n"
    assert parse_skill(text(body=body).encode(), PATH).body == body


@pytest.mark.parametrize(
    ("data", "line", "says", "fix"),
    [
        (b"", 1, "empty", ""),
        (b"# Title\n", 1, "no frontmatter", "---"),
        (b"---\nname: a\ndescription: x\n", 1, "never closed", "put a line `---`"),
        (
            b"---\nname: a\ndescription: Use when: asked \"so\"\nallowed-tools: Read\n---\nb\n",
            3,
            "holds `: `",
            'write `description: "Use when: asked \\"so\\""`',
        ),
        (b"---\n- a\n---\nb\n", 2, "no mapping", "key: value"),
        (b"---\nname: a\nname: a\ndescription: x\n---\nb\n", 3, "stands twice", ""),
        (b"---\nname: a\ndescription: x\n\tlicense: y\n---\nb\n", 4, "", "tabs"),
        (b"---\nname: a\ndescription: \xff\n---\nb\n", 0, "not UTF-8", "UTF-8"),
        (b"-\x00-\x00-\x00\n\x00", 1, "NUL", "UTF-8"),
        (b"---\n---\nb\n", 2, "`name` is missing", "add `name"),
        (b"---\nname: a\n---\nb\n", 2, "`description` is missing", "add"),
        (b"---\nname: A_b\ndescription: x\n---\nb\n", 2, "no skill name", "`a-b`"),
        (b"---\nname: a--b\ndescription: x\n---\nb\n", 2, "no skill name", "`a-b`"),
        (b"---\nname: b\ndescription: x\n---\nb\n", 2, "its folder `a`", "name: a"),
        (b"---\nname: a\ndescription: ' '\n---\nb\n", 3, "is empty", ""),
        (b"---\nname: a\ndescription: [x]\n---\nb\n", 3, "must be text", ""),
        (b"---\nname: a\ndescription: x\nversion: 1\n---\nb\n", 4, "no top-level key", "metadata"),
        (
            b"---\nname: a\ndescription: x\nallowed_tools: Read\n---\nb\n",
            4,
            "no top-level key",
            "did you mean `allowed-tools`?",
        ),
        (b"---\nname: a\ndescription: x\nmetadata: y\n---\nb\n", 4, "must map", ""),
        (b"---\nname: a\ndescription: x\nmetadata: {k: [1]}\n---\nb\n", 4, "must be text", ""),
        (b"---\nname: a\ndescription: x\nmetadata: {harness.kind: other}\n---\nb\n", 4, "`other`",
         "`reply` or `strategy`"),
        (b"---\nname: a\ndescription: x\nallowed-tools: {a: b}\n---\nb\n", 4, "tool names", ""),
    ],
)  # fmt: skip
def test_a_broken_skill_is_refused_with_its_line_and_the_fix(data, line, says, fix):
    skill, findings = read_skill(data, PATH)
    assert skill is None
    wrong = [f for f in findings if f.level == "error"]
    assert all(f.fix for f in wrong)
    assert any(f.line == line and says in f.message and fix in f.fix for f in wrong), wrong
    with pytest.raises(BadFile, match=r"skills/a/SKILL\.md"):
        parse_skill(data, PATH)


@pytest.mark.parametrize(
    ("key", "limit"), [("description", 1024), ("compatibility", 500), ("name", 64)]
)
def test_lengths_of_the_specification_are_held_to_the_character(key, limit):
    def data(length):
        fields = {"name": "a", "description": "x", key: "名" * length}
        if key == "name":
            fields["name"] = "a" * length
        lines = "".join(f"{k}: {v}\n" for k, v in fields.items())
        return f"---\n{lines}---\nb\n".encode()

    def wrong(length):
        found = read_skill(
            data(length), f"skills/{'a' * length if key == 'name' else 'a'}/SKILL.md"
        )
        return [f for f in found[1] if f.level == "error"]

    assert not wrong(limit)
    assert "characters" in wrong(limit + 1)[0].message


def test_all_mistakes_of_one_skill_are_found_at_once():
    data = b"---\nname: B\nversion: 1\nallowed_tools: x\n---\n"
    _, findings = read_skill(data, PATH)
    assert {f.rule for f in findings} == {
        "skill/unknown-key",
        "skill/description",
        "skill/name",
        "skill/body",
    }
    assert sum(f.rule == "skill/unknown-key" for f in findings) == 2


def test_scalars_stay_as_they_are_written():
    data = b"---\nname: a\ndescription: yes\nmetadata: {v: 1.0, on: 2026-01-01, n: ~}\n---\nb\n"
    skill = parse_skill(data, PATH)
    assert skill.description == "yes"
    assert skill.metadata == {"v": "1.0", "on": "2026-01-01", "n": "~"}


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("Read Write", ("Read", "Write")),
        ("Read, Write", ("Read", "Write")),
        ("Bash(git log:*) Read", ("Bash(git log:*)", "Read")),
        (["Read", "Bash(npm run:*)"], ("Read", "Bash(npm run:*)")),
        ("", ()),
    ],
)
def test_allowed_tools_are_never_lost(written, tools):
    assert allowed_tools(written) == tools


def test_a_foreign_list_of_allowed_tools_is_read_with_a_warning():
    data = b"---\nname: a\ndescription: x\nallowed-tools:\n  - Read\n  - Write\n---\nb\n"
    skill, findings = read_skill(data, PATH)
    assert skill is not None
    assert skill.allowed_tools == ("Read", "Write")
    assert [f.level for f in findings] == ["warning"]


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_in_another_way(data):
    for given_bytes in (data, b"---\n" + data, b"---\nname: a\n" + data + b"\n---\nb"):
        skill, findings = read_skill(given_bytes, PATH)
        assert (skill is None) == any(f.level == "error" for f in findings)


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Zl", "Zp", "Co"]),
        min_size=1,
        max_size=60,
    ).filter(str.strip)
)
def test_a_quoted_description_comes_back_as_it_was(description):
    data = text(json.dumps(description, ensure_ascii=False)).encode()
    skill, _ = read_skill(data, PATH)
    assert skill is not None
    assert skill.description == description.strip()
