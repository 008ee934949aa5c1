import json
from pathlib import Path

import pytest
from small_harness import committed, git, project

from harness_cli.errors import RepoError, UsageError
from harness_cli.harness.check_project import check_project, project_root

ITEMS = "evalsets/qa/items.jsonl"
GOOD = {
    "harness.yaml": "schema: 1\npolicies:\n  builtin: {kind: builtin}\n",
    "gates.yaml": "schema: 1\ngates:\n  - {name: business, kind: regression, evalset: qa}\n",
    "evalsets/qa/evalset.yaml": "schema: 1\nname: qa\nsplits: {dev: 2}\ncatalogue: null\n",
    "evalsets/qa/items.jsonl": '{"id": "a", "request": {}}\n{"id": "b", "request": {}}\n',
    "manifests/channels/dev.json": json.dumps({"schema": 1, "name": "dev"}),
}


@pytest.fixture
def place(tmp_path):
    root = project(tmp_path / "project")
    for path, text in GOOD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    committed(root, "project")
    return root


def test_a_project_in_order_has_no_findings(place):
    assert check_project(place) == []


@pytest.mark.parametrize(
    ("path", "text", "rule", "line", "fix"),
    [
        ("harness.yaml", "schema: 1\npolicys: {}\n", "config/file", 2, "did you mean `policy`?"),
        ("harness.yaml", "schema: 2\n", "file/schema", 1, "migrate"),
        ("harness.yaml", "schema: 1\npolicy: builtn\n", "config/name", 2,
         "did you mean `builtin`?"),
        ("harness.yaml", "schema: 1\nroles: {teacher: pro}\n", "config/name", 2, "known"),
        ("harness.yaml", "schema: 1\npolicies:\n  x: {kind: openai}\npolicy: x\n", "config/name", 3,
         "base_url"),
        ("harness.yaml", "schema: 1\npolicies:\n  x: {kind: openai, base_url: u,\n"
         "      model: sk-abcdefghijklmnopqrstuv}\n", "config/secret", 4, "api_key_env"),
        ("gates.yaml", GOOD["gates.yaml"].replace("regression", "regresion"), "gates/file", 3, ""),
        ("gates.yaml", GOOD["gates.yaml"] + "  - {name: business, kind: latency}\n", "gates/name",
         0, "rename"),
        ("gates.yaml", GOOD["gates.yaml"].replace("evalset: qa", "evalset: aq"), "gates/evalset",
         0, ""),
        ("evalsets/qa/evalset.yaml", "schema: 1\nname: other\ncatalogue: null\n", "evalset/name",
         0, "name: qa"),
        ("evalsets/qa/evalset.yaml", "schema: 1\nname: qa\nsplits: {dev: 3}\ncatalogue: null\n",
         "evalset/count", 0, ""),
        ("evalsets/qa/evalset.yaml", "schema: 1\nname: qa\nspilts: {}\n", "evalset/header", 3,
         "did you mean `splits`?"),
        ("evalsets/qa/items.jsonl", '{"id": "a", "request": {}}\n{"id": "a", "request": {}}\n',
         "evalset/id", 2, ""),
        ("evalsets/qa/items.jsonl", '{"id": "a", "request": {}}\n\n{"id": "b", "requst": {}}\n',
         "evalset/item", 3, "did you mean `request`?"),
        ("evalsets/qa/items.jsonl", '{"id": "a", "request": {}}\n{"id": "b", "request"\n',
         "evalset/item", 2, "one item a line"),
        ("evalsets/more/items.jsonl", "{}\n", "evalset/header", 0, "evalset.yaml"),
        ("manifests/m1.json", "{}", "manifest/file", 1, ""),
        ("manifests/m1.json", "{", "manifest/file", 1, ""),
        ("manifests/channels/dev.json", '{"schema": 1}', "manifest/file", 1, ""),
        ("harness_repo/hooks/x.yaml", "schema: 1\nname: x\nevent: request\n", "hook/empty", 3, ""),
    ],
)  # fmt: skip
def test_each_kind_of_file_is_checked(place, path, text, rule, line, fix):
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    (place / path).write_text(text)
    found = [f for f in check_project(place) if f.rule == rule]
    assert any((f.line, f.level) == (line, "error") and fix in f.fix for f in found), found
    assert all(f.fix for f in found)
    assert {f.path for f in found} <= {path, path.rpartition("/")[0], ITEMS}


def test_findings_of_all_files_come_together_in_the_order_of_places(place):
    (place / "gates.yaml").write_text("schema: 1\ngates: 1\n")
    (place / "harness_repo/replies.yaml").write_text("schema: 1\nconservative: 1\n")
    (place / "evalsets/qa/items.jsonl").write_text("x\n{}\n")
    found = [(f.path, f.line) for f in check_project(place) if f.level == "error"]
    assert found == sorted(found)
    assert {path for path, _ in found} == {
        "gates.yaml",
        "harness_repo/replies.yaml",
        "evalsets/qa/items.jsonl",
    }


def test_a_wrong_line_of_an_evalset_lists_all_its_mistakes(place):
    line = '{"id": 1, "mode": "triple", "request": {"channel": "secret"}, "xpect": {}}\n'
    (place / "evalsets/qa/items.jsonl").write_text(GOOD["evalsets/qa/items.jsonl"] + line)
    found = [f for f in check_project(place) if f.rule == "evalset/item"]
    assert {f.line for f in found} == {3}
    assert len(found) == 4


def test_the_harness_of_another_revision_is_checked_without_a_checkout(place):
    broken = place / "harness_repo/replies.yaml"
    text = broken.read_text()
    broken.write_text("schema: 1\n")
    sha = committed(place, "broken")
    broken.write_text(text)
    assert check_project(place) == []
    assert [f.path for f in check_project(place, rev=sha)] == ["harness_repo/replies.yaml"]
    with pytest.raises(RepoError):
        check_project(place, rev="nope")


def test_a_part_of_the_harness_that_git_ignores_is_told(place):
    (place / ".git/info/exclude").write_text("draft*\n*.pyc\n")
    for name in ("skills/draft/SKILL.md", "hooks/draft.yaml", "tools/draft.pyc"):
        (place / "harness_repo" / name).parent.mkdir(exist_ok=True)
        (place / "harness_repo" / name).write_text("x")
    found = [(f.path, f.rule, f.level) for f in check_project(place)]
    assert found == [
        ("harness_repo/hooks/draft.yaml", "file/ignored", "warning"),
        ("harness_repo/skills/draft/SKILL.md", "file/ignored", "warning"),
    ]
    assert check_project(place, rev="HEAD") == []


def test_a_project_outside_git_or_without_a_harness_says_so(tmp_path):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    rules = {f.rule: f for f in check_project(tmp_path)}
    assert "git init" in rules["harness/git"].fix
    git(tmp_path, "init", "-q")
    rules = {f.rule: f for f in check_project(tmp_path)}
    assert "no folder" in rules["harness/git"].message


def test_the_root_is_found_even_when_its_settings_cannot_be_read(place):
    (place / "harness.yaml").write_text("schema: [\n")
    assert project_root(place / "harness_repo" / "skills") == place
    assert [f.rule for f in check_project(place)] == ["config/file"]
    with pytest.raises(UsageError):
        project_root(place.parent)


VARIANT = (
    "schema: 1\nname: variant\nitems_of: qa\nstates: states\nsplits: {dev: 2}\ncatalogue: null\n"
)


@pytest.mark.parametrize(
    ("header", "state", "rule"),
    [
        (VARIANT, "schema: 1\nstate: s\nfolder: s\n", None),
        (VARIANT, "schema: 1\nstate: s\ntool: {}\n", "evalset/state"),
        (VARIANT.replace("items_of: qa", "items_of: aq"), "", "evalset/items_of"),
    ],
)
def test_a_set_with_the_items_of_another_needs_none_of_its_own(place, header, state, rule):
    folder = place / "evalsets/variant"
    (folder / "states").mkdir(parents=True)
    (folder / "evalset.yaml").write_text(header)
    if state:
        (folder / "states/s.yaml").write_text(state)
    assert [f.rule for f in check_project(place)] == ([rule] if rule else [])


def test_the_shipped_evalsets_have_no_findings():
    root = Path(__file__).parents[2]
    assert [f for f in check_project(root) if f.path.startswith("evalsets/")] == []
