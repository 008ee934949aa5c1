"""Decisions: by a script, in the file, at a terminal with the keys of `git add -p`."""

# ruff: noqa: E501  rows of tables read best on one line

import re
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from harness_cli.errors import BadFile, NeedsPerson, UnknownName
from harness_cli.evolution.ops import after, apply_ops
from harness_cli.evolution.proposal_file import (
    chosen_ops,
    hunks,
    new_proposal,
    read_proposal,
    write_proposal,
)
from harness_cli.evolution.review import (
    accept_by_script,
    decide,
    deciders,
    keep,
    need_decisions,
    pending,
)
from harness_cli.evolution.show_hunk import as_text, paint
from harness_cli.evolution.terminal_review import Terminal, review
from harness_cli.records.diagnosis import Case, Decision, Edit, Op

FILES = {"a.md": b"one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\n", "b.md": b"x\n"}


def proposal(*ops, **more):
    edits = (
        Edit(id="first", module="a.md", ops=ops or (Op(op="replace", path="a.md", search="two", text="TWO"),
                                                    Op(op="replace", path="a.md", search="four", text="FOUR")),
             rationale="numbers", predicted_fixes=("i-1",), classes=("c",), risks="few"),
        Edit(id="second", module="b.md", ops=(Op(op="write", path="b.md", text="y\n"),), rationale="letter"),
    )  # fmt: skip
    return new_proposal(
        edits, base="b" * 40, base_commit=None, diagnosis="run", proposer="p", **more
    )


class Reviewer:
    """Types the given keys; keeps what was shown."""

    def __init__(self, *keys, edited=None):
        self.keys, self.shown, self.edited = list(keys), [], edited

    def ask(self, question):
        self.shown.append(question)
        if not self.keys:
            raise EOFError
        return self.keys.pop(0) + "\n"

    def terminal(self):
        return Terminal(
            say=self.shown.append, ask=self.ask, edit=lambda text, name: self.edited, reviewer="ann"
        )

    @property
    def text(self):
        return "\n".join(self.shown)


def states(made):
    return [(name, op.decision.state) for name, _, op in hunks(made)]


def result(made):
    return after(FILES, apply_ops(FILES, chosen_ops(made)))


def test_y_n_q_decide_each_hunk_and_keep_who_when_and_why():
    done = review(proposal(), FILES, Reviewer("y", "n", "too loud", "q").terminal())
    assert states(done) == [("first#1", "accept"), ("first#2", "reject"), ("second", "pending")]
    no = done.edits[0].ops[1].decision
    assert (no.by, no.reason, no.script, no.at[:2]) == ("ann", "too loud", False, "20")
    assert result(done)["a.md"] == FILES["a.md"].replace(b"two", b"TWO")


def test_a_and_d_decide_the_rest_of_an_edit_and_no_more():
    assert [s for _, s in states(review(proposal(), FILES, Reviewer("a", "q").terminal()))] == [
        "accept",
        "accept",
        "pending",
    ]
    made = review(proposal(), FILES, Reviewer("d", "why", "y").terminal())
    assert [s for _, s in states(made)] == ["reject", "reject", "accept"]


def test_s_splits_a_hunk_into_changes_that_can_be_taken_alone():
    whole = Op(op="write", path="a.md", text="ONE\ntwo\nthree\nfour\nfive\nSIX\n")
    done = review(proposal(whole), FILES, Reviewer("s", "n", "r", "y", "q").terminal())
    assert [s for _, s in states(done)] == ["reject", "accept", "pending"]
    assert result(done)["a.md"] == FILES["a.md"].replace(b"one", b"ONE")
    single = Reviewer("s", "q")
    review(proposal(), FILES, single.terminal())
    assert "this hunk is one change" in single.text


def test_e_takes_what_the_editor_made_and_marks_it_modified():
    keys = Reviewer("e", "q", edited="one\nzwei\nthree\nfour\nfive\nsix\n")
    done = review(proposal(), FILES, keys.terminal())
    assert states(done)[0] == ("first#1", "modify")
    assert result(done)["a.md"] == FILES["a.md"].replace(b"two", b"zwei")
    gone = review(proposal(), FILES, Reviewer("e", "y", "q", edited=None).terminal())
    assert states(gone)[0] == ("first#1", "accept")
    same = review(
        proposal(),
        FILES,
        Reviewer("e", "q", edited="one\ntwo\nthree\nfour\nfive\nsix\n").terminal(),
    )
    assert states(same)[0] == ("first#1", "reject")


def test_cases_help_and_everything_a_reviewer_needs_is_shown():
    keys = Reviewer("c", "?", "x", "q")
    case = Case(item_id="i-1", step=2, comment="how many?", reply="Lovely.", why="w")
    review(proposal(), FILES, keys.terminal(), cases={"i-1": case})
    for word in ("why: numbers", "should fix: 1 item (c)", "risk: few", "-two", "+TWO", "i-1 (step 2)",
                 "viewer: how many?", "s - split"):  # fmt: skip
        assert word in keys.text


def test_a_hunk_that_a_rejection_made_impossible_is_rejected_by_itself():
    ops = (
        Op(op="replace", path="a.md", search="two", text="TWO"),
        Op(op="replace", path="a.md", search="TWO", text="2"),
    )
    done = review(proposal(*ops), FILES, Reviewer("n", "r", "q").terminal())
    assert [s for _, s in states(done)] == ["reject", "reject", "pending"]
    assert done.edits[0].ops[1].decision.script


def test_the_end_of_input_leaves_the_rest_undecided():
    assert pending(review(proposal(), FILES, Reviewer("y").terminal())) == ["first#2", "second"]


def test_two_reviewers_at_once_never_write_over_one_another(tmp_path):
    project = SimpleNamespace(root=tmp_path)
    path = tmp_path / "p.yaml"
    write_proposal(path, proposal())
    ann = Reviewer("y", "y", "q")
    asked = ann.ask

    def while_bob_decides(question):
        there = read_proposal(path)
        if pending(there) == ["first#2", "second"]:  # Ann's first decision is in the file
            no = Decision(state="reject", by="bob", at="t", reason="loud")
            write_proposal(path, decide(there, "first#2", no))
        return asked(question)

    terminal = Terminal(
        say=ann.shown.append,
        ask=while_bob_decides,
        edit=lambda text, name: None,
        reviewer="ann",
        keep=lambda seen, decided: keep(project, path, seen, decided),
    )
    done = review(read_proposal(path), FILES, terminal)
    assert [(s, op.decision.by) for (_, s), (_, _, op) in zip(states(done), hunks(done), strict=True)] == [
        ("accept", "ann"), ("reject", "bob"), ("pending", ""),
    ]  # fmt: skip
    assert read_proposal(path) == done
    assert "somebody else decided meanwhile" in ann.text


def test_a_script_accepts_all_or_some_and_is_recorded_as_one():
    done = accept_by_script(proposal(), "all", by="ci")
    assert pending(done) == []
    assert deciders(done) == ([], ["ci"])
    some = accept_by_script(proposal(), "first#2, second", by="ci")
    assert pending(some) == ["first#1"]
    with pytest.raises(UnknownName, match="second#1"):
        accept_by_script(proposal(), "second#1", by="ci")


def test_a_script_never_accepts_a_suggested_placement_unseen():
    placed = proposal(Op(op="replace", path="a.md", search="two", text="2", placed=0.8))
    assert pending(accept_by_script(placed, "all", by="ci")) == ["first"]
    assert pending(accept_by_script(placed, "first", by="ci")) == ["second"]
    assert "SUGGESTION" in "\n".join(as_text(placed, FILES, colour=False))


def test_what_a_person_rejected_in_the_file_is_not_accepted_by_all(tmp_path):
    path = tmp_path / "p.yaml"
    write_proposal(path, proposal())
    text = path.read_text().replace(
        "search: four", "decision: {state: reject, by: ann, reason: no}\n    search: four"
    )
    path.write_text(text)
    done = accept_by_script(read_proposal(path), "all", by="ci")
    assert [s for _, s in states(done)] == ["accept", "reject", "accept"]


def test_undecided_hunks_need_a_person_and_say_which_command_decides():
    with pytest.raises(NeedsPerson, match="first#1, first#2, second") as caught:
        need_decisions(proposal(), "harness edit review p.yaml")
    assert caught.value.exit_code == 3
    assert "harness edit review p.yaml" in caught.value.hint


def test_a_proposal_file_reads_back_as_it_was_written(tmp_path):
    path = tmp_path / "p.yaml"
    made = proposal(Op(op="json-pointer", path="x.yaml", pointer="/a", value={"b": [1, "两"]}))
    write_proposal(path, made)
    assert read_proposal(path) == made
    assert path.read_text().startswith("# A proposal to edit the harness.")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("rationale: numbers", "rational: numbers"), "did you mean `rationale`"),
        (("op: write", "op: wirte"), r"p\.yaml:\d+: Invalid enum"),
        (("id: second", "id: first"), "the edit id `first` stands twice"),
        (("schema: 1", "schema: 9"), "schema 9 is not known"),
    ],
)
def test_a_proposal_file_with_a_mistake_says_where(tmp_path, change, says):
    path = tmp_path / "p.yaml"
    write_proposal(path, proposal())
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(BadFile) as caught:
        read_proposal(path)
    assert re.search(says, f"{caught.value} {caught.value.hint}")


def test_control_characters_in_a_diff_cannot_paint_the_terminal():
    shown = paint("+ok\x1b[2Jgone\u202ecba\n-x", colour=True)
    assert "\\x1b[2Jgone\\u202ecba" in shown
    assert shown.startswith("\x1b[32m+ok")
    assert "\x1b" not in paint("+a\x1b[0m", colour=False)


def test_a_proposal_can_be_read_without_its_base():
    text = "\n".join(as_text(proposal(), None, colour=False))
    assert "replace a.md" in text
    assert "not at hand" in text


def test_each_change_of_state_is_a_new_value():
    made = proposal()
    accept_by_script(made, "all", by="ci")
    assert pending(made) == ["first#1", "first#2", "second"]
    assert msgspec.structs.asdict(made)["nonce"] == made.nonce


def test_a_proposal_of_schema_one_stays_readable():
    golden = Path(__file__).parents[1] / "golden" / "proposal.yaml"
    made = read_proposal(golden)
    assert [op.op for op in made.edits[0].ops] == [
        "replace", "set-frontmatter", "json-pointer", "unified-diff", "move", "delete", "write"]  # fmt: skip
    assert [op.decision.state for op in made.edits[0].ops][2:4] == ["accept", "reject"]
    assert made.edits[0].ops[6].placed == 0.9
