"""Edits chosen by trial: what is thought of, what is kept, and what the proposal says of it."""

import asyncio
import json
import subprocess
import sys

import pytest
from failed_rollouts import evidence, skill
from small_shop import FILES

from harness_cli.errors import UsageError
from harness_cli.evolution.diagnose import Subject, diagnose, gather
from harness_cli.evolution.ops import after, apply_ops
from harness_cli.evolution.propose.asking import asking_edits, asks_back
from harness_cli.evolution.propose.chosen import choose
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.lifting import bullets, fitting, lifted_edits
from harness_cli.evolution.propose.narrowing import narrowed_edits, parts_of, without
from harness_cli.evolution.propose.routing import kept_out_edits
from harness_cli.harness.load import state_from_files
from harness_cli.records.diagnosis import Edit, Op
from harness_cli.records.item import Expect
from harness_cli.store.tree import FILE, Entry

ASKING = (
    "\n## Reply patterns\n\n- **clarify**: which one is meant\n  - en: Which link do you mean?\n"
    "  - zh: 您说的是几号链接呀？\n- **price**: what it costs\n  - en: It is {price}, fine?\n"
)
TELLING = "\n## Reply patterns\n\n- **price**: what it costs\n  - en: It is {price} yuan.\n"
BODY = FILES["skills/aftersale/SKILL.md"].replace(
    "- Orders that were placed.",
    "- The parcel is late or lost.\n- Something arrived broken,\n  or torn.",
)


def texts(changed=None):
    return {p: t for p, t in {**FILES, **(changed or {})}.items() if t is not None}


def ground(rows, changed=None):
    files = {path: text.encode() for path, text in texts(changed).items()}
    state = state_from_files({p: Entry(FILE, d) for p, d in files.items()})
    material = gather(rows)
    made = diagnose(material, Subject("run-1", state.id, "set"))
    return Ground(made, material.failures, material.seen, state, state.files)


def wrong(loaded, right, comments, **fields):
    wanted = Expect(skills=(right,), **fields)
    for i, comment in enumerate(comments):
        yield evidence(f"f-{i}", comment, calls=[skill(loaded)], reply="It is blue.", expect=wanted)
    for i in range(6):
        yield evidence(f"p-{i}", f"hello {i}", state="passed", calls=[skill("greet")], reply="Hi")


LATE = [
    "my parcel is late",
    "the parcel got lost",
    "no parcel for days",
    "parcel late again",
    "a lost parcel",
]


def made(where, edit):
    return after(where.files, apply_ops(where.files, edit.ops))


def test_what_a_skill_says_in_its_body_is_lifted_into_its_description():
    where = ground(wrong("item-qa", "aftersale", LATE), {"skills/aftersale/SKILL.md": BODY})
    found = {e.id: e for e in lifted_edits(where) if e}
    assert "lift-use-1-of-aftersale" in found
    edit = found["lift-use-2-of-aftersale"]
    text = made(where, edit)["skills/aftersale/SKILL.md"].decode()
    state = state_from_files({p: Entry(FILE, d) for p, d in made(where, edit).items()})
    assert "Something arrived broken, or torn." in state.skill("aftersale").description
    assert text.count("broken") == 2  # said in both places, taken from neither
    assert set(edit.predicted_fixes) == {"f-0", "f-1", "f-2", "f-3", "f-4"}


@pytest.mark.parametrize(
    ("sentence", "room", "kept"),
    [
        ("short", 10, "short"),
        (
            "one part that is long enough, another part too",
            40,
            "one part that is long enough.",
        ),
        ("nothing that can be cut anywhere at all", 20, ""),
    ],
)
def test_a_sentence_is_cut_at_a_whole_part(sentence, room, kept):
    assert fitting(sentence, room) == kept


def test_bullets_are_read_over_their_lines_and_to_the_end_of_their_section():
    body = "# A\n\n## When to use\n\n- one\n  more\n- two\n\n## Rules\n\n- three\n"
    assert bullets(body, "when to use") == ["one more", "two"]
    assert bullets(body, "Examples") == []


def test_a_skill_that_guesses_gets_the_words_to_ask_back():
    rows = wrong("item-qa", "greet", LATE, answers=("clarify",))
    where = ground(
        rows,
        {
            "skills/item-qa/SKILL.md": FILES["skills/item-qa/SKILL.md"] + TELLING,
            "skills/greet/SKILL.md": FILES["skills/greet/SKILL.md"] + ASKING,
        },
    )
    (edit,) = [e for e in asking_edits(where) if e]
    text = made(where, edit)["skills/item-qa/SKILL.md"].decode()
    assert asks_back(text) == [(("en", "Which link do you mean?"), ("zh", "您说的是几号链接呀？"))]
    assert text.index("It is {price} yuan.") < text.index("Which link")
    assert not any("parcel" in (op.text or "") for op in edit.ops)  # nothing of the comments


@pytest.mark.parametrize("mine", [ASKING, ""], ids=["asks already", "has no patterns"])
def test_no_words_are_borrowed_where_they_are_there_or_have_no_place(mine):
    rows = wrong("item-qa", "greet", LATE, answers=("clarify",))
    changed = {
        "skills/item-qa/SKILL.md": FILES["skills/item-qa/SKILL.md"] + mine,
        "skills/greet/SKILL.md": FILES["skills/greet/SKILL.md"] + ASKING,
    }
    assert [e for e in asking_edits(ground(rows, changed)) if e] == []


def test_a_part_that_draws_the_wrong_comments_is_taken_out_alone():
    before = FILES["skills/item-qa/SKILL.md"].replace(
        "description: >-\n  Questions about a product.",
        'description: >-\n  Questions about a product, "where is my\n  parcel", and its price.',
    )
    where = ground(wrong("item-qa", "aftersale", LATE), {"skills/item-qa/SKILL.md": before})
    (edit,) = [e for e in narrowed_edits(where) if e]
    text = made(where, edit)["skills/item-qa/SKILL.md"].decode()
    assert "parcel" not in text.split("---")[1]
    assert "Questions about a product," in text
    assert "and its price." in text
    state_from_files({p: Entry(FILE, d) for p, d in made(where, edit).items()})


def test_a_part_that_stands_twice_is_left():
    text = "---\nname: x\ndescription: late, early\nlicense: late\n---\n\nlate\n"
    assert parts_of("late, “early”；晚到") == ["late", "early", "晚到"]
    assert without(text, "skills/x/SKILL.md", "late") is None
    assert without(text, "skills/x/SKILL.md", "early").search == "early"


def test_a_skill_is_told_what_is_another_ones():
    where = ground(wrong("item-qa", "aftersale", LATE), {"skills/aftersale/SKILL.md": BODY})
    edit = next(e for e in kept_out_edits(where) if e)
    state = state_from_files({p: Entry(FILE, d) for p, d in made(where, edit).items()})
    assert "Not for the parcel is late or lost" in state.skill("item-qa").description


class Table:
    """A policy as a table: what each item is worth by the words that a file holds."""

    def __init__(self, rules, left=10_000):
        self.rules, self.left, self.spent, self.asked = rules, left, 0, []

    async def worth(self, changes, items):
        if len(items) > self.left:
            raise UsageError("over")
        said = " ".join((d or b"").decode() for d in changes.values())
        self.left -= len(items)
        self.spent += len(items)
        self.asked.append(set(items))
        return {
            i: next((v for word, v in self.rules.get(i, ()) if word in said), WORTH[i])
            for i in items
        }


WORTH = {**{f"f-{i}": 0.0 for i in range(4)}, **{f"p-{i}": 1.0 for i in range(6)}}


def idea(word, *fixes):
    op = Op(op="write", path=f"hooks/{word}.yaml", text=hook(word))
    return Edit(id=word, module=op.path, ops=(op,), rationale="Because.", predicted_fixes=fixes)


def hook(word):
    return (
        f"schema: 1\nname: {word}\nevent: before_reply\nchecks:\n  - check: length\n"
        "    with: {max_chars: 900}\naction: retry\nmessage: '{reason}'\n"
    )


def chosen(rules, ideas, *, left=10_000, most=8):
    where = ground(wrong("item-qa", "aftersale", LATE))
    table = Table(rules, left)
    kept, dropped = asyncio.run(choose(table, where, WORTH, ideas, most=most))
    return table, kept, dict(dropped)


def test_what_gains_is_kept_strongest_first_with_what_was_seen():
    rules = {
        "f-0": [("alpha", 1.0)],
        "f-1": [("beta", 1.0)],
        "f-2": [("beta", 1.0)],
        "p-0": [("beta", 0.5)],
    }
    _, kept, _ = chosen(rules, [idea("alpha", "f-0"), idea("beta", "f-1", "f-2", "f-3")])
    assert [e.id for e in kept] == ["beta", "alpha"]
    assert kept[0].predicted_fixes == ("f-1", "f-2")  # f-3 was promised and did not come
    assert "worse when tried: p-0" in kept[0].risks
    assert "2 better, 1 worse" in kept[0].rationale
    assert kept[1].risks == "no tried item got worse"


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({}, "gained nothing"),
        ({"f-0": [("alpha", 1.0)], "p-5": [("alpha", 0.0)]}, "gained nothing"),
        (
            {
                "f-0": [("alpha", 1.0)],
                "f-1": [("beta", 1.0), ("alpha", 0.0)],
                "f-2": [("beta", 1.0)],
            },
            "",
        ),
    ],
    ids=["nothing", "as much lost as won", "won"],
)
def test_what_gains_nothing_is_not_proposed(rules, why):
    _, kept, dropped = chosen(rules, [idea("alpha", "f-0")])
    assert bool(kept) is (not why)
    assert why in dropped.get("alpha", "")


def test_an_edit_that_only_repeats_what_another_gained_is_dropped():
    rules = {"f-0": [("beta", 1.0), ("alpha", 1.0)], "f-1": [("beta", 1.0)]}
    _, kept, dropped = chosen(rules, [idea("alpha", "f-0"), idea("beta", "f-0", "f-1")])
    assert [e.id for e in kept] == ["beta"]
    assert "on top of the others" in dropped["alpha"]


@pytest.mark.parametrize(
    ("left", "word"), [(0, "budget of trials is spent"), (15, "not tried with the others")]
)
def test_the_choice_ends_where_the_budget_ends(left, word):
    table, kept, dropped = chosen({"f-0": [("alpha", 1.0)]}, [idea("alpha", "f-0")], left=left)
    assert kept == ()
    assert word in dropped["alpha"]
    assert table.left >= 0


def test_at_most_so_many_edits_are_kept():
    rules = {f"f-{i}": [(w, 1.0)] for i, w in enumerate(("alpha", "beta", "gamma"))}
    ideas = [idea(w, f"f-{i}") for i, w in enumerate(("alpha", "beta", "gamma"))]
    _, kept, dropped = chosen(rules, ideas, most=2)
    assert len(kept) == 2
    assert list(dropped.values()) == ["beyond the budget of 2 edits"]


def test_an_edit_that_breaks_the_harness_is_no_idea():
    class Strict(Table):
        async def worth(self, changes, items):
            where = ground([])
            files = after(where.files, changes)
            state_from_files({p: Entry(FILE, d) for p, d in files.items()})
            return await super().worth(changes, items)

    bad = Edit(
        id="bad",
        module="hooks/x.yaml",
        ops=(Op(op="write", path="hooks/x.yaml", text="schema: 1\n"),),
        rationale="",
        predicted_fixes=("f-0",),
    )
    where = ground(wrong("item-qa", "aftersale", LATE))
    kept, dropped = asyncio.run(choose(Strict({}), where, WORTH, [bad]))
    assert kept == ()
    assert "no valid harness" in dict(dropped)["bad"]


def harness(folder, *words):
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_trials_are_rolled_out_with_the_policy_of_the_run_and_write_nothing(tmp_path):
    harness(tmp_path, "init", "shop", "--quiet")
    shop = tmp_path / "shop"
    harness(shop, "eval", "live_stream_qa", "--limit", "70", "--quiet")
    runs = sorted(p.name for p in (shop / ".harness" / "runs").iterdir())
    done = harness(shop, "edit", "--trials", "400", "--plan-only", "--json", "-o", "p.yaml")
    proposal = json.loads(done.stdout)["proposal"]
    assert proposal["edits"], done.stderr
    assert all("Tried on" in edit["rationale"] for edit in proposal["edits"])
    assert sorted(p.name for p in (shop / ".harness" / "runs").iterdir()) == runs
    refs = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)"],
        cwd=shop,
        capture_output=True,
        text=True,
        check=True,
    )
    assert refs.stdout.split() == ["refs/heads/main"]
