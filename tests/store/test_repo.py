import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import RepoError, Stale
from harness_cli.store.repo import Repo
from harness_cli.store.tree import EXECUTABLE, FILE, GITLINK, SYMLINK, Entry, blob_id, tree_id


def git(folder: Path, *args: str, data: bytes = b"") -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *args], check=True, capture_output=True, input=data
    )
    return os.fsdecode(done.stdout).strip()


@pytest.fixture
def place(tmp_path):
    """A repository with one commit: h/a.txt, h/bin/run (executable), other.txt."""
    root = tmp_path / "repo"
    (root / "h" / "bin").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "h" / "a.txt").write_text("a\n")
    (root / "h" / "bin" / "run").write_text("#!/bin/sh\n")
    (root / "h" / "bin" / "run").chmod(0o755)
    (root / "other.txt").write_text("o\n")
    (root / ".gitignore").write_text("*.log\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


def snapshot(root: Path) -> dict[str, bytes]:
    """Everything git keeps beside objects and logs: what must not change."""
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and not {"objects", "logs"} & set(p.relative_to(root).parts)
    }


def test_files_of_a_revision_come_with_mode_and_bytes_and_without_checkout(place):
    repo = Repo.open(place / "h")
    (place / "h" / "a.txt").write_text("edited\n")
    before = snapshot(place)
    assert repo.files("HEAD", place / "h") == {
        "a.txt": Entry(FILE, b"a\n"),
        "bin/run": Entry(EXECUTABLE, b"#!/bin/sh\n"),
    }
    assert snapshot(place) == before


def test_tree_id_is_what_git_calls_the_folder(place):
    repo = Repo.open(place)
    files = repo.files("HEAD", Path("h"))
    assert repo.tree_id(files) == git(place, "rev-parse", "HEAD:h")


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(
        st.lists(NAMES, min_size=1, max_size=3).map("/".join),
        st.tuples(st.sampled_from([FILE, EXECUTABLE]), st.binary(max_size=20)),
        max_size=6,
    )
)
def test_tree_id_computed_here_equals_mktree_for_any_names(tmp_path_factory, files):
    paths = set(files)
    files = {
        p: Entry(*v)
        for p, v in files.items()
        if not any(q.startswith(p + "/") for q in paths)
        and not {".", "..", ".git"} & {s.lower() for s in p.split("/")}
    }
    root = tmp_path_factory.mktemp("mktree")
    git(root, "init", "-q")
    repo = Repo.open(root)
    if files:
        kept = repo.keep_tree("refs/harness/runs/x", files, "kept")
        assert repo.tree_id(files) == kept
        assert repo.files("refs/harness/runs/x", Path()) == files


def test_a_sha256_repository_gives_sha256_ids(tmp_path):
    git(tmp_path, "init", "-q", "--object-format=sha256")
    (tmp_path / "f").write_text("x")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "m")
    repo = Repo.open(tmp_path)
    files = repo.files("HEAD", Path())
    assert repo.object_format == "sha256"
    assert repo.tree_id(files) == git(tmp_path, "rev-parse", "HEAD^{tree}")


def test_blob_id_is_the_published_one_of_the_empty_blob():
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert tree_id({}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_working_files_hold_edits_and_new_files_but_no_ignored_ones(place):
    (place / "h" / "a.txt").write_text("edited\n")
    (place / "h" / "new.txt").write_text("new\n")
    (place / "h" / "x.log").write_text("noise")
    (place / "h" / "bin" / "run").unlink()
    before = snapshot(place)
    objects = len(list((place / ".git" / "objects").rglob("*")))
    repo = Repo.open(place)
    assert repo.working_files(place / "h") == {
        "a.txt": Entry(FILE, b"edited\n"),
        "new.txt": Entry(FILE, b"new\n"),
    }
    assert snapshot(place) == before
    assert len(list((place / ".git" / "objects").rglob("*"))) == objects


def test_an_edit_of_equal_size_within_one_clock_tick_is_seen(place):
    for n in range(20):
        (place / "h" / "a.txt").write_text(f"{n % 10}\n")
        git(place, "add", "-A")
        (place / "h" / "a.txt").write_text(f"{(n + 1) % 10}\n")
        assert Repo.open(place).working_files(place / "h")["a.txt"].data == b"%d\n" % ((n + 1) % 10)


def test_dirty_tells_edits_and_untracked_files_of_one_folder(place):
    repo = Repo.open(place)
    assert not repo.dirty(place / "h")
    (place / "other.txt").write_text("edited")
    assert not repo.dirty(place / "h")
    (place / "h" / "new.txt").write_text("n")
    assert repo.dirty(place / "h")


def test_a_checkout_with_crlf_is_the_same_content(place, tmp_path):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", str(place), str(clone))
    assert (clone / "h" / "a.txt").read_bytes() == b"a\r\n"
    repo = Repo.open(clone)
    assert repo.working_files(clone / "h") == repo.files("HEAD", clone / "h")
    assert not repo.dirty(clone / "h")


def test_names_with_newlines_blanks_and_no_ascii_survive(place):
    names = ["日本 語.md", "a\nb.md", 'qu"ote.md', "-dash.md", ":(top)x.md"]
    for name in names:
        (place / "h" / name).write_text(name)
    (place / "h" / os.fsdecode(b"lat\xe9.md")).write_text("l")
    repo = Repo.open(place)
    found = repo.working_files(place / "h")
    assert {*names, os.fsdecode(b"lat\xe9.md")} < set(found)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "names")
    assert repo.files("HEAD", place / "h") == found


@pytest.mark.parametrize("name", ["a\nb", " a b ", "店", "a'$(id)\"", "\n"])
def test_a_repository_may_lie_in_a_folder_of_any_name(place, tmp_path, name):
    moved = place.rename(tmp_path / name)
    repo = Repo.open(moved / "h")
    assert (repo.root, repo.git_dir, repo.kind) == (moved, moved / ".git", "plain")
    assert repo.working_files(moved / "h") == repo.files("HEAD", moved / "h")


def test_links_and_submodules_come_as_entries_and_are_not_followed(place, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (place / "h" / "link.md").symlink_to(secret)
    inner = place / "h" / "sub"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "f").write_text("f")
    git(inner, "add", "-A")
    git(inner, "commit", "-q", "-m", "inner")
    found = Repo.open(place).working_files(place / "h")
    assert found["link.md"] == Entry(SYMLINK, str(secret).encode())
    assert found["sub"] == Entry(GITLINK, git(inner, "rev-parse", "HEAD").encode())


def test_the_git_environment_of_a_hook_does_not_lead_elsewhere(place, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    repo = Repo.open(place / "h")
    assert repo.root == place
    assert set(repo.working_files(place / "h")) == {"a.txt", "bin/run"}
    sha = repo.commit_files("evolve/1", "HEAD", Path("h"), {"a.txt": b"b\n"}, "m")
    monkeypatch.undo()
    assert git(place, "show", f"{sha}:h/a.txt") == "b"


def test_a_linked_worktree_and_a_submodule_are_told_apart(place, tmp_path):
    linked = tmp_path / "linked"
    git(place, "worktree", "add", "-q", str(linked))
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(place), "sub")
    kinds = {}
    for name, folder in (("plain", place), ("worktree", linked), ("submodule", outer / "sub")):
        repo = Repo.open(folder / "h")
        kinds[name] = repo.kind
        assert repo.root == folder
        assert (folder / ".git").is_file() == (name != "plain")
        assert repo.working_files(folder / "h") == repo.files("HEAD", folder / "h")
    assert kinds == {k: k for k in kinds}
    assert Repo.open(outer / "sub").superproject == outer


def test_a_submodule_without_files_says_how_to_get_them(place, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(place), "h")
    git(outer, "commit", "-q", "-m", "sub")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(outer), str(clone))
    repo = Repo.open(clone / "h")
    for read in (lambda: repo.files("HEAD", clone / "h"), lambda: repo.working_files(clone / "h")):
        with pytest.raises(RepoError) as found:
            read()
        assert "submodule update --init" in (found.value.hint or "")


def test_a_shallow_detached_clone_works_and_says_why_a_revision_is_missing(place, tmp_path):
    first = git(place, "rev-parse", "HEAD")
    (place / "h" / "a.txt").write_text("second\n")
    git(place, "commit", "-q", "-am", "second")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{place}", str(clone))
    git(clone, "checkout", "-q", "--detach", "HEAD")
    repo = Repo.open(clone / "h")
    assert repo.shallow
    assert repo.head() == git(clone, "rev-parse", "HEAD")
    assert repo.files("HEAD", clone / "h")["a.txt"].data == b"second\n"
    with pytest.raises(RepoError) as found:
        repo.resolve(first)
    assert "unshallow" in (found.value.hint or "")


@pytest.mark.parametrize("rev", ["nope", "", "--help", "-x", "HEAD:h", "HEAD^{blob}"])
def test_what_names_no_commit_is_refused(place, rev):
    with pytest.raises(RepoError):
        Repo.open(place).resolve(rev)


def test_a_folder_in_no_repository_and_a_bare_one_say_so(tmp_path):
    with pytest.raises(RepoError, match="no git repository"):
        Repo.open(tmp_path)
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    with pytest.raises(RepoError, match="working tree"):
        Repo.open(tmp_path / "bare.git")


def test_a_repository_without_commits_has_working_files_and_no_head(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "f").write_text("x")
    repo = Repo.open(tmp_path)
    assert repo.head() is None
    assert repo.working_files(tmp_path) == {"f": Entry(FILE, b"x")}


def test_the_innermost_repository_is_the_harness_own(place):
    inner = place / "own"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "f").write_text("x")
    repo = Repo.open(inner)
    assert repo.root == inner
    assert set(repo.working_files(inner)) == {"f"}


def test_a_kept_tree_survives_gc_and_touches_neither_index_nor_files(place):
    repo = Repo.open(place)
    files = {"a/b.md": Entry(FILE, b"\r\nraw \xff\n"), "run.sh": Entry(EXECUTABLE, b"x")}
    before = {k: v for k, v in snapshot(place).items() if "refs" not in k}
    tree = repo.keep_tree("refs/harness/runs/r1", files, "run r1")
    after = {k: v for k, v in snapshot(place).items() if "refs" not in k}
    assert before == after
    git(place, "gc", "-q", "--prune=now")
    assert repo.files(tree, Path()) == files
    assert set(repo.refs("refs/harness/runs/")) == {"refs/harness/runs/r1"}
    repo.delete_ref("refs/harness/runs/r1")
    repo.delete_ref("refs/harness/runs/r1")
    assert repo.refs("refs/harness/runs/") == {}


@pytest.mark.parametrize(
    "ref", ["refs/heads/main", "main", "refs/harness/a..b", "refs/harness/x.lock"]
)
def test_a_tree_is_kept_only_under_a_ref_of_ours(place, ref):
    with pytest.raises(RepoError):
        Repo.open(place).keep_tree(ref, {}, "m")


def test_a_commit_by_plumbing_runs_no_hook_asks_no_signature_and_leaves_the_tree(place):
    hook = place / ".git" / "hooks" / "post-checkout"
    for name in ("post-checkout", "pre-commit", "reference-transaction", "post-commit"):
        hook = place / ".git" / "hooks" / name
        hook.write_text("#!/bin/sh\ntouch ../hook-ran hook-ran\nexit 1\n")
        hook.chmod(0o755)
    git(place, "config", "commit.gpgsign", "true")
    git(place, "config", "core.autocrlf", "true")
    (place / "h" / "a.txt").write_text("work in progress\n")
    git(place, "add", "h/a.txt")
    before = {k: v for k, v in snapshot(place).items() if "refs" not in k}
    repo = Repo.open(place)
    sha = repo.commit_files(
        "evolve/1",
        "HEAD",
        place / "h",
        {"a.txt": b"x\r\ny\r\n", "bin/run": b"#!/bin/sh\necho\n", "deep/new.md": b"n"},
        "subject\n\nbody",
        author="A Person <a@example.invalid>",
    )
    assert {k: v for k, v in snapshot(place).items() if "refs" not in k} == before
    assert repo.files(sha, place / "h") == {
        "a.txt": Entry(FILE, b"x\r\ny\r\n"),
        "bin/run": Entry(EXECUTABLE, b"#!/bin/sh\necho\n"),
        "deep/new.md": Entry(FILE, b"n"),
    }
    assert git(place, "rev-parse", "evolve/1") == sha
    assert git(place, "log", "-1", "--format=%an|%cn|%s|%b|%P", sha) == (
        f"A Person|Test Person|subject|body|{git(place, 'rev-parse', 'HEAD')}"
    )


def test_a_commit_continues_its_branch_and_refuses_another_base(place):
    repo = Repo.open(place)
    one = repo.commit_files("evolve/1", "HEAD", Path("h"), {"a.txt": b"1"}, "one")
    two = repo.commit_files("evolve/1", one, Path("h"), {"a.txt": None}, "two")
    assert set(repo.files(two, Path("h"))) == {"bin/run"}
    with pytest.raises(Stale):
        repo.commit_files("evolve/1", "HEAD", Path("h"), {"a.txt": b"3"}, "three")
    assert git(place, "rev-parse", "evolve/1") == two


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "a/../../x", ".git/config", "x/.GIT/y", "", "link.md", "link.md/x"]
)
def test_a_commit_never_leaves_its_folder_nor_follows_links(place, path):
    (place / "h" / "link.md").symlink_to("/etc")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "link")
    with pytest.raises(RepoError):
        Repo.open(place).commit_files("evolve/1", "HEAD", Path("h"), {path: b"x"}, "m")
    assert "evolve" not in git(place, "branch", "--list")


def test_a_branch_that_is_checked_out_is_left_alone(place):
    branch = git(place, "symbolic-ref", "--short", "HEAD")
    with pytest.raises(RepoError, match="checked out"):
        Repo.open(place).commit_files(branch, "HEAD", Path("h"), {"a.txt": b"x"}, "m")


def test_deleting_a_file_that_is_not_there_is_an_error(place):
    with pytest.raises(RepoError, match="no file"):
        Repo.open(place).commit_files("evolve/1", "HEAD", Path("h"), {"b.txt": None}, "m")


def test_without_a_user_name_a_commit_says_harness(place, tmp_path, monkeypatch):
    (tmp_path / "empty").write_text("[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "empty"))
    sha = Repo.open(place).commit_files("evolve/1", "HEAD", Path("h"), {"a.txt": b"x"}, "m")
    assert git(place, "log", "-1", "--format=%an <%ae> %cn", sha) == (
        "harness <harness@localhost> harness"
    )


def test_a_worktree_is_thrown_away_even_after_an_error(place):
    repo = Repo.open(place)
    seen = []

    def use():
        with repo.worktree("HEAD") as tree:
            seen.append((tree, (tree / "h" / "a.txt").read_text()))
            (tree / "h" / "junk").write_text("junk")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    [(kept, text)] = seen
    assert text == "a\n"
    assert not kept.exists()
    assert len(git(place, "worktree", "list").splitlines()) == 1


def test_the_log_of_a_folder_lists_its_commits_newest_first(place):
    (place / "other.txt").write_text("2")
    git(place, "commit", "-q", "-am", "elsewhere")
    (place / "h" / "a.txt").write_text("2")
    git(place, "commit", "-q", "-am", "sécond: with | signs")
    entries = Repo.open(place).log("HEAD", place / "h", 5)
    assert [e.subject for e in entries] == ["sécond: with | signs", "first"]
    assert entries[0].author == "Test Person <test@example.invalid>"
    assert entries[0].sha == git(place, "rev-parse", "HEAD")


def test_a_missing_object_is_reported_and_not_skipped(place):
    oid = hashlib.sha1(b"blob 2\0a\n").hexdigest()
    (place / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(RepoError, match="missing"):
        Repo.open(place).files("HEAD", Path("h"))
