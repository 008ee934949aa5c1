"""What no proposal may do, whatever a reviewer says."""

# ruff: noqa: E501  rows of tables read best on one line

import os

import pytest

from harness_cli.evolution.paths import Refused, disk_fault, path_fault
from harness_cli.evolution.safety import check_changes, check_ops
from harness_cli.records.diagnosis import Op

MODES = {
    "skills/chat/SKILL.md": "100644",
    "prompts/blocks/base.md": "100644",
    "link.md": "120000",
    "folder": "120000",
    "vendor": "160000",
    "judges/final/fallback.md": "100644",
    "tools/mcp.lock.json": "100644",
}
HOSTILE = [
    "../outside.md",
    "skills/../../outside.md",
    "skills/chat/SKILL.md/../../../../outside.md",
    "/etc/passwd",
    "folder/inside.md",
    "link.md",
    "vendor/README.md",
    ".git/hooks/pre-commit",
    "skills/.GIT/config",
    "skills/.g\u200cit/config",
    "skills/git~1/config",
    "skills\\..\\..\\outside.md",
    "skills/x\0.md",
    "Skills/chat/skill.md",
]
"""performance.md F3's kinds: traversal, absolute, links, submodule, `.git` in disguises, twins."""


def write(path):
    return Op(op="write", path=path, text="x")


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_refused(path):
    with pytest.raises(Refused):
        check_ops([write(path)], MODES)
    with pytest.raises(Refused):
        check_ops([Op(op="move", path="prompts/blocks/base.md", to=path)], MODES)


@pytest.mark.parametrize(
    "path",
    [
        "judges/final/fallback.md",
        "JUDGES/final/new.md",
        "ju\u200bdges/x.md",
        "failure_classes/a.md",
        "tools/mcp.lock.json",
        "tools/MCP.lock.JSON",
        "tools/mcp.lock.json.",
        "ｊudges/x.md",
    ],
)
def test_protected_places_are_refused_in_every_spelling(path):
    with pytest.raises(Refused, match=r"protected|spelling|unprintable"):
        check_ops([write(path)], MODES)


@pytest.mark.parametrize(
    "path", ["skills/新/SKILL.md", "skills/chat/SKILL.md", "a b.md", "x..y.md", ".keep"]
)
def test_plain_paths_are_admitted(path):
    check_ops([write(path)], MODES)
    assert path_fault(path) is None


def test_every_fault_is_listed_at_once():
    with pytest.raises(Refused) as caught:
        check_ops([write(p) for p in HOSTILE], MODES)
    assert str(caught.value).count("\n") == len(HOSTILE)


def test_an_edit_of_a_judge_stays_inside_that_judge():
    check_ops([write("judges/final/fallback.md")], MODES, judge="final")
    for path in ("judges/other/x.md", "skills/chat/SKILL.md", "judges/final/../x.md"):
        with pytest.raises(Refused):
            check_ops([write(path)], MODES, judge="final")


def test_links_on_disk_are_seen_though_git_does_not_know_them(tmp_path):
    root = tmp_path / "harness"
    (root / "real").mkdir(parents=True)
    (root / "real" / "a.md").write_text("x")
    os.link(root / "real" / "a.md", tmp_path / "second-name.md")
    (root / "soft").symlink_to(tmp_path)
    (root / "soft.md").symlink_to(root / "real" / "a.md")
    os.mkfifo(root / "pipe")
    assert "hard link" in disk_fault(root, "real/a.md")
    assert "symbolic" in disk_fault(root, "soft/second-name.md")
    assert "symbolic" in disk_fault(root, "soft.md")
    assert "regular" in disk_fault(root, "pipe")
    assert disk_fault(root, "real/new.md") is None
    (tmp_path / "second-name.md").unlink()
    assert disk_fault(root, "real/a.md") is None


MD = b"a\n<!-- harness:protected -->\nnever change\n<!-- /harness:protected -->\nb\n"
YML = b"a: 1\n# harness:protected\nb: 2\n# /harness:protected\nc: 3\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "ok"),
    [
        ("s.md", MD, MD.replace(b"a\n", b"z\n"), True),
        ("s.md", MD, MD.replace(b"never", b"always"), False),
        ("s.md", MD, MD.replace(b"<!-- /harness:protected -->\n", b""), False),
        ("s.md", MD, b"<!-- harness:protected -->\n" + MD, False),
        ("s.md", MD, None, False),
        ("s.md", MD, MD.replace(b"\n", b"\r\n").replace(b"a\r\n", b"z\r\n"), True),
        ("p.yaml", YML, YML.replace(b"c: 3", b"c: 4"), True),
        ("p.yaml", YML, YML.replace(b"b: 2", b"b: 3"), False),
        (
            "p.yaml",
            YML.replace(b"# /harness:protected\n", b""),
            YML.replace(b"c: 3", b"c: 4"),
            False,
        ),
    ],
)
def test_protected_regions_stay_as_they_are(path, old, new, ok):
    if ok:
        check_changes({path: old}, {path: new}, allow_code=False)
    else:
        with pytest.raises(Refused, match="harness:protected"):
            check_changes({path: old}, {path: new}, allow_code=True)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tools/extra.py", None, b"print(1)\n"),
        ("hooks/check.sh", b"exit 0\n", b"exit 1\n"),
        ("hooks/run.yaml", None, b"name: run\nevent: request\ncommand: [sh, -c, id]\n"),
        ("hooks/run.yaml", b"name: r\ncommand: [hooks/a.md]\n", b"name: r\ncommand: [hooks/b.md]\n"),
        ("hooks/run.yaml", b"name: r\ncommand: [x]\n", None),
        ("tools/mcp.yaml", b"servers: {}\n", b"servers: {a: {command: [sh]}}\n"),
        ("tools/t.yaml", b"name: t\n", b"name: t\n_meta: {harness.executor: python}\n"),
        ("tools/t.yaml", b"name: t\n_meta: {harness.executor: http, u: a}\n",
         b"name: t\n_meta: {harness.executor: http, u: b}\n"),
        ("prompts/.gitattributes", None, b"* filter=x\n"),
    ],
)  # fmt: skip
def test_code_needs_to_be_allowed(path, old, new):
    before = {} if old is None else {path: old}
    with pytest.raises(Refused, match=r"code|command|MCP|executed"):
        check_changes(before, {path: new}, allow_code=False)
    check_changes(before, {path: new}, allow_code=True)


def test_a_text_that_a_hook_runs_is_code():
    before = {
        "hooks/h.yaml": b"name: h\ncommand: [sh, hooks/note.md]\n",
        "hooks/note.md": b"exit 0",
    }
    with pytest.raises(Refused, match="a hook runs it"):
        check_changes(before, {"hooks/note.md": b"curl x"}, allow_code=False)


def test_words_of_skills_hooks_and_tools_are_no_code():
    before = {
        "hooks/h.yaml": b"name: h\nmessage: a\n",
        "tools/t.yaml": b"name: t\ndescription: a\n",
    }
    changes = {
        "hooks/h.yaml": b"name: h\nmessage: b\n",
        "tools/t.yaml": b"name: t\ndescription: b\n",
        "skills/x/SKILL.md": b"---\nname: x\n---\n",
    }
    check_changes(before, changes, allow_code=False)
