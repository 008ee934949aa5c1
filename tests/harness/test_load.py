import shutil

import pytest
from small_harness import FILES, SKILL, changed_files, committed, git, project, write

from harness_cli.errors import BadFile, RepoError, UnknownName
from harness_cli.harness.load import load_judge, load_state, state_from_files
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.tree import EXECUTABLE, FILE, Entry


@pytest.fixture
def place(tmp_path):
    return project(tmp_path / "project")


def load(place, rev=None):
    return load_state(Project.find(place), rev)


def edit(place, path="harness_repo/fallback.md", text="Edited.\n"):
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    (place / path).write_text(text)


def test_the_id_of_a_state_is_git_s_tree_id(place):
    assert load(place, "HEAD").id == git(place, "rev-parse", "HEAD:harness_repo")
    assert load(place).id == load(place, "HEAD").id


def test_any_revision_loads_and_the_working_tree_stays_as_it_is(place):
    first = git(place, "rev-parse", "HEAD")
    git(place, "tag", "v1")
    edit(place)
    committed(place, "second")
    edit(place, text="Third, not committed.\n")
    git(place, "add", "-A")
    edit(place, text="Fourth, not even staged.\n")
    status = git(place, "status", "--porcelain")
    assert load(place, first).fallback == "Answer in one short sentence."
    assert (
        load(place, "v1").fallback == load(place, "HEAD~1").fallback == load(place, first).fallback
    )
    assert load(place, "HEAD").fallback == "Edited."
    assert load(place).fallback == "Fourth, not even staged."
    assert git(place, "status", "--porcelain") == status
    assert (place / "harness_repo/fallback.md").read_text() == "Fourth, not even staged.\n"


def test_uncommitted_files_make_a_dirty_state_without_a_commit(place):
    clean = load(place)
    assert (clean.dirty, clean.commit) == (False, git(place, "rev-parse", "HEAD"))
    edit(place)
    state = load(place)
    assert (state.dirty, state.commit) == (True, None)
    edit(place, text=FILES["fallback.md"])
    assert load(place) == clean
    edit(place, "harness_repo/noise.log", "ignored")
    assert not load(place).dirty


def test_the_same_content_has_the_same_name_whatever_the_commit(place):
    before = load(place, "HEAD").id
    edit(place, "README.md", "elsewhere")
    edit(place, "harness_repo/judges/final/prompts/pipeline.yaml", "schema: 1\nblocks: []\n")
    edit(place, "harness_repo/failure_classes/a.md", "---\nid: a\nname: A\ndefinition: x\n---\n")
    committed(place, "judge and classes")
    after = load(place, "HEAD")
    assert after.id == before == load(place).id
    assert not any(path.startswith(("judges/", "failure_classes/")) for path in after.files)


def test_the_mode_of_a_file_is_part_of_the_name():
    files = changed_files({"hooks/x.py": "x"})
    other = {**files, "hooks/x.py": Entry(EXECUTABLE, b"x")}
    assert state_from_files(files).id != state_from_files(other).id


def test_each_judge_has_a_tree_id_of_its_own(place):
    write(
        place / "harness_repo/judges/final",
        {
            "prompts/pipeline.yaml": "schema: 1\nblocks: [{name: rubric}]\n",
            "prompts/blocks/rubric.md": "Grade it.\n",
            "tools/submit.yaml": (
                "name: submit\ndescription: Give the verdict.\n"
                "_meta: {harness.executor: builtin, harness.operation: answer}\n"
            ),
        },
    )
    committed(place, "judge")
    judge = load_judge(Project.find(place), "final")
    assert judge.id == git(place, "rev-parse", "HEAD:harness_repo/judges/final")
    assert judge.blocks == {"rubric": "Grade it.\n"}
    assert not judge.dirty
    edit(place, "harness_repo/judges/final/prompts/blocks/rubric.md", "Grade it well.\n")
    assert load_judge(Project.find(place), "final").dirty
    assert not load(place).dirty
    assert load_judge(Project.find(place), "final", "HEAD") == judge
    with pytest.raises(UnknownName, match="finl"):
        load_judge(Project.find(place), "finl")


def test_a_kept_tree_and_a_bare_tree_id_load_as_the_state_they_hold(place):
    edit(place)
    state = load(place)
    repo = Repo.open(place)
    files = repo.working_files(place / "harness_repo")
    tree = repo.keep_tree("refs/harness/runs/r1", files, "run r1")
    edit(place, text="later\n")
    assert tree == state.id
    for rev in ("refs/harness/runs/r1", tree):
        kept = load(place, rev)
        assert (kept.id, kept.fallback, kept.commit) == (state.id, "Edited.", None)


def test_worktree_submodule_shallow_clone_and_own_repository_give_one_id(place, tmp_path):
    expected = load(place).id
    linked = tmp_path / "linked"
    git(place, "worktree", "add", "-q", str(linked))
    assert load(linked).id == expected

    clone = tmp_path / "clone"
    git(
        tmp_path,
        "clone",
        "-q",
        "--depth",
        "1",
        "-c",
        "core.autocrlf=true",
        f"file://{place}",
        "clone",
    )
    git(clone, "checkout", "-q", "--detach")
    assert b"\r\n" in (clone / "harness_repo" / "fallback.md").read_bytes()
    assert (load(clone).id, load(clone).dirty) == (expected, False)

    own = tmp_path / "own"
    shutil.copytree(place / "harness_repo", own / "harness_repo")
    committed(own / "harness_repo")
    (own / "harness.yaml").write_text("schema: 1\n")
    assert (load(own).id, load(own).dirty) == (expected, False)
    assert load(own, "HEAD").commit == git(own / "harness_repo", "rev-parse", "HEAD")

    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    source = str(own / "harness_repo")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", source, "harness_repo")
    (outer / "harness.yaml").write_text("schema: 1\n")
    git(outer, "add", "-A")
    git(outer, "commit", "-q", "-m", "outer")
    assert (load(outer).id, load(outer, "HEAD").id) == (expected, expected)


def test_a_harness_that_is_not_committed_yet_is_dirty(tmp_path):
    write(tmp_path / "harness_repo")
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    git(tmp_path, "init", "-q")
    state = load(tmp_path)
    assert (state.dirty, state.commit) == (True, None)


@pytest.mark.parametrize("rev", ["nope", "-x", "0" * 40])
def test_an_unknown_revision_is_an_error_of_the_repository(place, rev):
    with pytest.raises(RepoError, match="no revision"):
        load(place, rev)


def test_a_revision_without_the_harness_says_so(place):
    git(place, "rm", "-rq", "--cached", "harness_repo")
    git(place, "commit", "-q", "-m", "gone")
    with pytest.raises(RepoError, match="no folder `harness_repo`"):
        load(place, "HEAD")


def test_a_broken_revision_lists_its_errors(place):
    edit(place, "harness_repo/skills/item-qa/SKILL.md", SKILL.replace("description:", "descr:"))
    edit(place, "harness_repo/hooks/reply-length.yaml", "schema: 1\nname: x\n")
    committed(place, "broken")
    with pytest.raises(BadFile) as found:
        load(place, "HEAD")
    assert "skills/item-qa/SKILL.md" in str(found.value)
    assert "hooks/reply-length.yaml" in str(found.value)
    assert load(place, "HEAD~1").fallback


def test_saved_with_crlf_a_bom_or_utf16_the_state_means_the_same():
    plain = state_from_files(changed_files({}))
    for way in (
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
    ):
        files = {path: Entry(FILE, way(text)) for path, text in FILES.items()}
        state = state_from_files(files)
        assert state.id != plain.id
        for field in ("skills", "tools", "hooks", "pipelines", "blocks", "fallback", "replies"):
            assert getattr(state, field) == getattr(plain, field), field


def test_hooks_stand_in_the_order_in_which_they_run():
    def hook(name, priority):
        check = "checks: [{check: request_valid}]"
        return f"schema: 1\nname: {name}\nevent: request\npriority: {priority}\n{check}\n"

    files = {f"hooks/{n}.yaml": hook(n, p) for n, p in (("a", 50), ("b", 10), ("c", 10))}
    names = [h.name for h in state_from_files(changed_files(files)).hooks]
    assert names == ["b", "c", "a", "reply-length"]
