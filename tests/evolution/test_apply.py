"""One commit on `evolve/<n>`, or nothing: on real repositories, dirty, nested, moved, reused."""

import os
import shutil
import signal
import subprocess
import sys

import msgspec
import pytest
from small_shop import git, make_shop

from harness_cli.errors import BadFile, NeedsPerson, Stale, UsageError
from harness_cli.evolution.apply import apply, is_stale, refuse_stale
from harness_cli.evolution.by_hand import edit_by_hand
from harness_cli.evolution.paths import Refused
from harness_cli.evolution.proposal_file import new_proposal
from harness_cli.evolution.review import accept_by_script
from harness_cli.harness.load import load_state
from harness_cli.records.diagnosis import Decision, Edit, Op
from harness_cli.store.project import Project

# ruff: noqa: E501  rows of tables read best on one line

SKILL = "skills/greet/SKILL.md"
GOOD = Op(
    op="replace",
    path=SKILL,
    search="- A viewer says hello.",
    text="- A viewer says hello or good night.",
)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return make_shop(tmp_path_factory.mktemp("shop") / "shop").root


@pytest.fixture
def shop(template, tmp_path):
    shutil.copytree(template, tmp_path / "shop", symlinks=True)
    return Project.find(tmp_path / "shop")


def proposal(project, *ops, accept=True, rev="HEAD"):
    state = load_state(project, rev)
    edits = tuple(
        Edit(id=f"e{i}", module=op.path, ops=(op,), rationale=f"because {i}")
        for i, op in enumerate(ops)
    )
    made = new_proposal(
        edits, base=state.id, base_commit=state.commit, diagnosis="run-1", proposer="test"
    )
    return accept_by_script(made, "all", by="ci") if accept else made


def snapshot(root):
    """Everything a user could notice: refs, HEAD, index, files."""
    repo = root if (root / ".git").exists() else root / "harness_repo"
    files = {
        p: p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and not p.is_symlink() and ".git/" not in str(p)
    }
    return (
        git(repo, "for-each-ref"),
        git(repo, "status", "--porcelain"),
        git(repo, "rev-parse", "HEAD"),
        files,
    )


def test_a_confirmed_proposal_is_one_commit_that_loads_and_says_where_it_comes_from(shop):
    before = snapshot(shop.root)
    made = apply(shop, proposal(shop, GOOD))
    assert made.branch == "evolve/1"
    assert made.files == (SKILL,)
    state = load_state(shop, "evolve/1")
    assert (state.id, state.commit) == (made.harness_id, made.commit)
    assert "good night" in state.skill("greet").body
    message = git(shop.root, "log", "-1", "--format=%B", "evolve/1")
    assert "- e0: because 0" in message
    trailers = git(shop.root, "log", "-1", "--format=%(trailers:only)", "evolve/1").splitlines()
    assert [t.split(":")[0] for t in trailers] == [
        "Proposal",
        "Diagnosis",
        "Base",
        "Proposer",
        "Accepted-by-script",
    ]
    after = snapshot(shop.root)
    assert (after[1], after[2]) == (before[1], before[2])
    subprocess.run(["sh", "-c", made.undo], cwd=shop.root, check=True, capture_output=True)
    assert snapshot(shop.root)[0] == before[0]


def test_a_dirty_tree_and_index_stay_exactly_as_they_are(shop):
    made = proposal(shop, GOOD)
    (shop.harness / SKILL).write_text("half written")
    (shop.harness / "new.md").write_text("untracked")
    git(shop.root, "add", "harness_repo/new.md")
    before = snapshot(shop.root)
    apply(shop, made)
    after = snapshot(shop.root)
    assert after[1:3] == before[1:3]
    assert {p: d for p, d in after[3].items() if ".harness" not in str(p)} == before[3]


def test_stages_build_on_one_another_and_get_their_own_numbers(shop):
    first = apply(shop, proposal(shop, GOOD))
    second = proposal(
        shop, Op(op="replace", path=SKILL, search="good night", text="good day"), rev="evolve/1"
    )
    made = apply(shop, second)
    assert made.branch == "evolve/2"
    assert git(shop.root, "rev-parse", "evolve/2^") == first.commit


def test_a_proposal_is_good_for_one_use(shop):
    made = proposal(shop, GOOD)
    apply(shop, made)
    git(shop.root, "branch", "-D", "evolve/1")
    with pytest.raises(Stale, match="applied before") as caught:
        apply(shop, made)
    assert caught.value.exit_code == 12
    assert is_stale(shop, made) == "it was applied before"


KILLED_AT = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "subprocess.Popen"}


def apply_until(project, made, stop):
    """Apply in a process that kills itself before its `stop`th step; True when it came through."""
    child = os.fork()
    if child == 0:
        steps = 0

        def step(event, args):
            nonlocal steps
            reads = event == "open" and not (isinstance(args[0], str) and args[2] & os.O_CREAT)
            if event in KILLED_AT and not reads:
                steps += 1
                if steps == stop:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(step)
        apply(project, made)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_kill_9_at_any_step_leaves_one_commit_or_none_and_a_proposal_that_says_which(shop):
    made, stop, seen = proposal(shop, GOOD), 1, set()
    while not apply_until(shop, made, stop):
        git(shop.root, "fsck", "--strict")
        branches = git(shop.root, "branch", "--list", "evolve/*", "--format=%(refname:short)")
        assert branches.split() in ([], ["evolve/1"])
        seen.add(bool(branches))
        if branches:  # the branch moved: the proposal is spent, recorded or not
            with pytest.raises(Stale, match=r"applied before, as .* on `evolve/1`"):
                apply(shop, made)
            git(shop.root, "branch", "-D", "evolve/1")
            shutil.rmtree(shop.root / ".harness" / "applied")
        elif stop % 5 == 0:
            assert apply(shop, made).branch == "evolve/1"
            git(shop.root, "branch", "-D", "evolve/1")
            shutil.rmtree(shop.root / ".harness" / "applied")
        else:
            assert is_stale(shop, made) is None
        stop += 1
    assert seen == {True, False}


def test_two_proposals_applied_at_the_same_time_become_two_branches(shop):
    other = msgspec.structs.replace(GOOD, text="- A viewer says hello or hi.")
    children = []
    for made in (proposal(shop, GOOD), proposal(shop, other)):
        children.append(os.fork())
        if children[-1] == 0:
            apply(shop, made)
            os._exit(0)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    branches = git(shop.root, "branch", "--list", "evolve/*", "--format=%(refname:short)")
    assert branches.split() == ["evolve/1", "evolve/2"]


def test_a_proposal_whose_application_failed_can_be_used_again(shop):
    made = proposal(shop, GOOD)
    lock = shop.root / ".git/refs/heads/evolve"
    lock.write_text("in the way")
    with pytest.raises(Exception, match="evolve"):
        apply(shop, made)
    lock.unlink()
    assert apply(shop, made).branch == "evolve/1"


def test_a_base_that_moved_is_stale_before_anyone_is_asked(shop):
    made = proposal(shop, GOOD)
    (shop.harness / "fallback.md").write_text("Changed since.\n")
    git(shop.root, "commit", "-qam", "moved on")
    before = snapshot(shop.root)
    for act in (apply, refuse_stale):
        with pytest.raises(Stale, match="no branch's newest harness"):
            act(shop, made)
    assert "newest harness" in is_stale(shop, made)
    assert snapshot(shop.root) == before


def test_a_commit_beside_the_harness_does_not_make_a_proposal_stale(shop):
    made = proposal(shop, GOOD)
    (shop.root / "notes.md").write_text("x")
    git(shop.root, "add", "notes.md")
    git(shop.root, "commit", "-qm", "notes")
    applied = apply(shop, made)
    assert git(shop.root, "rev-parse", "evolve/1^") == git(shop.root, "rev-parse", "HEAD")
    assert applied.harness_id != made.base


def test_a_base_that_was_never_committed_is_refused(shop):
    made = msgspec.structs.replace(proposal(shop, GOOD), base="0" * 40, base_commit=None)
    with pytest.raises(Stale, match="never committed"):
        apply(shop, made)


HOOK = "schema: 1\nname: h\nevent: before_reply\nchecks: []\ncommand: [sh, -c, id]\naction: deny\n"


@pytest.mark.parametrize(
    ("op", "error", "says"),
    [
        (Op(op="set-frontmatter", path=SKILL, key="name", value="Not A Name"), BadFile, "would break the harness"),
        (Op(op="write", path="prompts/pipeline.yaml", text="blocks: 3\n"), BadFile, "prompts/pipeline.yaml"),
        (Op(op="delete", path="prompts/blocks/base.md"), BadFile, "would break the harness"),
        (Op(op="json-pointer", path="prompts/pipeline.yaml", pointer="/constraints/reply_length/value", value=9000),
         BadFile, "would break the harness"),
        (Op(op="replace", path=SKILL, search="- ", text="* "), BadFile, "expected 1"),
        (Op(op="replace", path=SKILL, search="- Never promise an effect.", text="- Promise."), Refused, "harness:protected"),
        (Op(op="write", path="judges/final/fallback.md", text="y"), Refused, "is protected"),
        (Op(op="write", path="../gates.yaml", text="y"), Refused, "`..`"),
        (Op(op="write", path="gates.yaml", text="gates: []\n"), Refused, "'gates.yaml' is protected"),
        (Op(op="write", path="Harness.YAML", text="policy: x\n"), Refused, "is protected"),
        (Op(op="write", path="evalsets/x/items.jsonl", text="{}\n"), Refused, "is protected"),
        (Op(op="write", path="hooks/h.yaml", text=HOOK), Refused, "command of a hook"),
        (Op(op="write", path=SKILL, text=""), Refused, "harness:protected"),
        (Op(op="replace", path=SKILL, search="# greet", text="# greet"), UsageError, "changes nothing"),
    ],
)  # fmt: skip
def test_what_may_not_be_or_does_not_fit_is_refused_and_nothing_is_written(shop, op, error, says):
    made = proposal(shop, GOOD, op) if error is not UsageError else proposal(shop, op)
    before = snapshot(shop.root)
    with pytest.raises(error) as caught:
        apply(shop, made)
    assert says in str(caught.value)
    assert snapshot(shop.root) == before
    assert is_stale(shop, made) is None


def test_links_in_the_harness_are_refused(shop, tmp_path):
    made = proposal(shop, GOOD)
    target = shop.harness / SKILL
    os.link(target, tmp_path / "second-name")
    with pytest.raises(Refused, match="hard link"):
        apply(shop, made)
    (tmp_path / "second-name").unlink()
    target.unlink()
    target.symlink_to("/etc/hostname")
    with pytest.raises(Refused, match="symbolic link"):
        apply(shop, made)


def test_undecided_hunks_wait_for_a_person_and_rejected_ones_are_left_out(shop):
    other = Op(op="write", path="fallback.md", text="Two short sentences.\n")
    with pytest.raises(NeedsPerson, match="2 hunks"):
        apply(shop, proposal(shop, GOOD, other, accept=False))
    no = msgspec.structs.replace(other, decision=Decision(state="reject", by="ann", at="2026"))
    yes = msgspec.structs.replace(GOOD, decision=Decision(state="accept", by="ann", at="2026"))
    made = apply(shop, proposal(shop, yes, no, accept=False))
    assert made.files == (SKILL,)
    assert "Reviewed-by: ann" in git(shop.root, "log", "-1", "--format=%B", "evolve/1")


def test_a_command_hook_is_admitted_when_code_is(shop):
    op = Op(op="write", path="hooks/h.yaml", text=HOOK.replace("checks: []\n", ""))
    assert apply(shop, proposal(shop, op), allow_code=True).files == ("hooks/h.yaml",)


def test_a_harness_that_is_its_own_repository(tmp_path):
    shop = make_shop(tmp_path / "shop", own_repository=True)
    outer = git(shop.root, "for-each-ref")
    made = apply(shop, proposal(shop, GOOD))
    assert made.undo == "git -C harness_repo branch -D evolve/1"
    assert load_state(shop, "evolve/1").id == made.harness_id
    assert git(shop.root, "for-each-ref") == outer
    subprocess.run(["sh", "-c", made.undo], cwd=shop.root, check=True, capture_output=True)


def test_a_project_in_a_linked_worktree(shop, tmp_path):
    git(shop.root, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    linked = Project.find(tmp_path / "linked")
    assert apply(linked, proposal(linked, GOOD)).branch == "evolve/1"
    assert "evolve/1" in git(shop.root, "branch", "--list", "evolve/*")


def test_an_edit_after_a_sealed_split_was_opened_is_marked(shop):
    log = shop.evalsets / "seal.log.jsonl"
    log.write_text(
        '{"at":"2026","by":"ann","why":"w","evalset":"shop","split":"test","digest":"d"}\n'
    )
    apply(shop, proposal(shop, GOOD))
    assert "After-opening: shop/test" in git(
        shop.root, "log", "-1", "--format=%(trailers:only)", "evolve/1"
    )


def test_a_nonce_is_never_a_path(shop):
    made = msgspec.structs.replace(proposal(shop, GOOD), nonce="../../outside")
    with pytest.raises(BadFile, match="nonce"):
        apply(shop, made)


def test_edits_by_hand_become_a_proposal_of_what_changed(shop):
    def edit(folder):
        assert folder != shop.harness
        (folder / SKILL).write_text((folder / SKILL).read_text().replace("says hello", "says hi"))
        (folder / "skills/new").mkdir()
        (folder / "skills/new/SKILL.md").write_text(
            "---\nname: new\ndescription: New things.\n---\n# New\n"
        )
        (folder / "tools/refuse.yaml").unlink()

    before = snapshot(shop.root)
    made = edit_by_hand(shop, edit, by="ann")
    assert {op.path: op.op for e in made.edits for op in e.ops} == {
        SKILL: "unified-diff", "skills/new/SKILL.md": "write", "tools/refuse.yaml": "delete"}  # fmt: skip
    assert snapshot(shop.root) == before
    apply(shop, made)
    state = load_state(shop, "evolve/1")
    assert state.skill("new") is not None
    assert "says hi" in state.skill("greet").body
    assert edit_by_hand(shop, lambda _: None, by="ann") is None


def test_edits_by_hand_of_protected_files_are_refused_like_any_other(shop):
    def edit(folder):
        (folder / "judges/final/fallback.md").write_text("be generous\n")

    with pytest.raises(Refused, match="is protected"):
        apply(shop, edit_by_hand(shop, edit, by="ann"))


def test_a_judge_is_edited_alone_and_only_itself(shop):
    def edit(folder):
        (folder / "judges/final/fallback.md").write_text("be fair\n")
        (folder / SKILL).write_text((folder / SKILL).read_text().replace("hello", "hi"))

    made = edit_by_hand(shop, edit, by="ann", judge="final")
    with pytest.raises(Refused, match="outside the judge `final`"):
        apply(shop, made, judge="final")
