"""Known classes first, then clusters: stable, named, sized, with cases that cite their steps."""

# ruff: noqa: E501  rows of tables read best on one line

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from failed_rollouts import call, evidence, skill

from harness_cli.commands._diagnosis import show_diagnosis
from harness_cli.errors import BadFile
from harness_cli.evolution.classes import compile_rule, load_classes, parse_class
from harness_cli.evolution.diagnose import Subject, diagnose, gather
from harness_cli.evolution.mining import contrast, fisher, matches, phrases_of, plain
from harness_cli.records.canonical import canonical_json
from harness_cli.records.diagnosis import Cluster, FailureClass
from harness_cli.records.item import Expect, ExpectedTool
from harness_cli.records.trajectory import StopReason

SUBJECT = Subject("run-1", "0" * 40, "set")
STOCK = [
    "how many {} are left",
    "is {} still in stock",
    "any {} left?",
    "stock of {} please",
    "{} sold out yet?",
]
BYE = [
    "my {} broke, I want my money back",
    "how do I return the {}",
    "return policy for {}?",
    "refund the {}",
]
HELLO = ["hello {} host", "hi there, {}", "good evening {}", "love the {} you wear"]
THINGS = ["mug", "lamp", "chair", "scarf", "kettle", "blanket", "pan", "towel"]


def run_of(n=96):
    """A third misses a tool call, a third loads another skill, a third passes."""
    draw = random.Random(3)
    for i in range(n):
        thing = draw.choice(THINGS)
        if i % 3 == 0:
            expect = Expect(
                skills=("item-qa",), tools=(ExpectedTool(name="get_inventory"),), answers=("stock",)
            )
            yield evidence(f"s-{i:03}", draw.choice(STOCK).format(thing), calls=[skill("item-qa")],
                           reply="It is a lovely one.", expect=expect)  # fmt: skip
        elif i % 3 == 1:
            expect = Expect(skills=("aftersale",), answers=("returns",))
            yield evidence(f"r-{i:03}", draw.choice(BYE).format(thing), calls=[skill("item-qa")],
                           reply="It is made of steel.", expect=expect, category="after-sales")  # fmt: skip
        else:
            yield evidence(f"h-{i:03}", draw.choice(HELLO).format(thing), calls=[skill("greet")], reply="Welcome!",
                           state="passed", expect=Expect(skills=("greet",)), category="chat")  # fmt: skip


def test_two_failure_modes_come_out_as_two_systematic_clusters_with_cases():
    made = diagnose(gather(run_of()), SUBJECT)
    assert [c.id for c in made.clusters] == [
        "tool-not-called-get-inventory",
        "wrong-skill-item-qa-aftersale",
    ]
    assert [c.size for c in made.clusters] == [32, 32]
    assert (made.failures, made.of, made.unexplained) == (64, 96, 0.0)
    stock, returns = made.clusters
    assert stock.systematic
    assert "get_inventory" in stock.label
    assert stock.suspected_modules == ("skills/item-qa/SKILL.md", "tools/get_inventory.yaml")
    assert returns.suspected_modules[:2] == ("skills/aftersale/SKILL.md", "skills/item-qa/SKILL.md")
    assert all(case.step is not None for c in made.clusters for case in c.cases)
    assert "return" in " ".join(returns.terms)
    assert made.advice["action"] == "continue"


def test_the_same_run_gives_the_same_bytes_in_any_order_and_process():
    rows = list(run_of())
    first = canonical_json(diagnose(gather(rows), SUBJECT))
    random.Random(1).shuffle(rows)
    assert canonical_json(diagnose(gather(rows), SUBJECT)) == first
    code = (
        "from test_diagnose import *; import sys;"
        "sys.stdout.write(canonical_json(diagnose(gather(run_of()), SUBJECT)).decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, check=True
    )
    assert done.stdout == first


def test_known_classes_take_their_failures_first_and_leave_the_rest():
    known = FailureClass(id="stock-unasked", name="Stock not looked up", definition="d", side="harness",
                         decision_rule="tool_not_called:get_inventory and category:product-qa")  # fmt: skip
    made = diagnose(gather(run_of()), SUBJECT, classes=[known])
    named = {c.id: c for c in made.clusters}
    assert named["stock-unasked"].class_id == "stock-unasked"
    assert named["stock-unasked"].size == 32
    assert named["wrong-skill-item-qa-aftersale"].class_id is None


def test_a_failure_belongs_to_the_class_of_its_cause_not_of_what_followed():
    """`wrong_skill` ranks before `tool_not_called`: of a failure with both it is the cause."""
    expect = Expect(skills=("aftersale",), tools=(ExpectedTool(name="get_policy"),))
    rows = [
        evidence(f"b-{i}", "x", calls=[skill("item-qa")], reply="y", expect=expect)
        for i in range(6)
    ]
    classes = [
        FailureClass(id="a-lookup", name="n", definition="d", facts="tool_not_called:*"),
        FailureClass(id="b-skill", name="n", definition="d", facts="wrong_skill:*"),
        FailureClass(
            id="c-narrow", name="n", definition="d", facts="wrong_skill:* and category:chat"
        ),
    ]
    assert [c.id for c in diagnose(gather(rows), SUBJECT, classes=classes).clusters] == ["b-skill"]
    chat = [
        evidence(f"b-{i}", "x", calls=[skill("item-qa")], reply="y", expect=expect, category="chat")
        for i in range(6)
    ]
    assert [c.id for c in diagnose(gather(chat), SUBJECT, classes=classes).clusters] == ["c-narrow"]


def test_the_shipped_classes_are_read_and_each_decides_by_facts():
    folder = Path(__file__).parents[2] / "harness_repo"
    classes = load_classes(folder)
    assert len(classes) >= 9
    assert all(compile_rule(c.facts) is not None for c in classes)


def test_a_class_told_in_prose_takes_what_is_worded_alike():
    known = FailureClass(id="returns", name="Return and refund", side="policy", decision_rule="The viewer wants it back.",
                         definition="wrong skill on returns", examples=("how do I return the mug", "refund the lamp"))  # fmt: skip
    made = diagnose(gather(run_of()), SUBJECT, classes=[known])
    found = next(c for c in made.clusters if c.id == "returns")
    assert found.side == "policy"
    assert {i[:2] for i in found.item_ids} == {"r-"}
    assert found.size >= 8


def test_few_and_unlike_failures_are_sparse_and_advise_to_stop():
    rows = [evidence(f"p-{i}", "hi", state="passed") for i in range(60)]
    rows += [
        evidence("a", "one", calls=[call("t")] * 4, reply="x"),
        evidence("b", "two", stop=StopReason.TIMEOUT),
        evidence("c", "three", reply="", state="unscored"),
    ]
    made = diagnose(gather(rows), SUBJECT)
    assert made.clusters == ()
    assert made.unexplained == 1.0
    assert made.advice["action"] == "stop"


def test_a_large_cluster_on_another_side_calls_for_no_edit():
    rows = [
        evidence(f"t-{i}", f"q {i}", calls=[call("t", {"n": i}, ok=False)], reply="x")
        for i in range(20)
    ]
    made = diagnose(gather(rows), SUBJECT)
    assert [(c.side, c.systematic) for c in made.clusters] == [("tool", True)]
    assert made.advice["action"] == "stop"


def test_cluster_ids_live_on_when_most_items_stay():
    first = diagnose(gather(run_of()), SUBJECT)
    import msgspec

    renamed = msgspec.structs.replace(
        first, clusters=tuple(msgspec.structs.replace(c, id=f"was-{c.id}") for c in first.clusters)
    )
    again = diagnose(gather(list(run_of())[:90]), SUBJECT, previous=renamed)
    assert {c.id for c in again.clusters} == {c.id for c in renamed.clusters}


def test_a_run_without_failures_is_a_diagnosis_too():
    made = diagnose(gather([evidence("a", "x", state="passed")]), SUBJECT)
    assert (made.failures, made.of, made.unexplained) == (0, 1, 0.0)


@pytest.mark.parametrize("sizes", [(33, 7), (1, 1, 1), (5, 2, 1), (199, 1), ()])
def test_the_shares_that_are_shown_add_up_to_all_failures(sizes, capsys):
    n = sum(sizes)
    made = diagnose(gather([evidence("a", "x", state="passed")]), SUBJECT)
    found = tuple(
        Cluster(id=f"c{i}", label="x", size=size, share=size / n, systematic=not i, side="policy")
        for i, size in enumerate(sizes)
    )
    made = msgspec.structs.replace(made, failures=n, of=n + 1, clusters=found)
    show_diagnosis(made, as_json=False, quiet=True)
    said = capsys.readouterr().out
    shown = re.findall(r"(?:systematic|long tail|unexplained): (\d+)%", said)
    assert sum(map(int, shown)) == (100 if n else 0), said


@pytest.mark.parametrize(
    ("rule", "terms", "holds"),
    [
        ("loop:*", {"loop:search"}, True),
        ("loop", {"loop", "loop:search"}, True),
        ("a and not b", {"a"}, True),
        ("a and not b", {"a", "b"}, False),
        ("a or b and c", {"a"}, True),
        ("(a or b) and c", {"a"}, False),
        ("wrong_skill:chat>item-qa", {"wrong_skill:chat>item-qa"}, True),
        ("failed:accuracy", {"failed:accuracy"}, True),
    ],
)
def test_decision_rules_hold_or_not(rule, terms, holds):
    assert compile_rule(rule)(frozenset(terms)) is holds


@pytest.mark.parametrize("prose", ["", "The reply names a price.", "a and", "(a", "a b", "not"])
def test_prose_is_no_rule(prose):
    assert compile_rule(prose) is None


def test_a_class_file_is_read_with_its_examples(tmp_path):
    folder = tmp_path / "failure_classes"
    folder.mkdir()
    (folder / "loop.md").write_text(
        "---\nid: loop\nname: Repeats itself\ndefinition: The same call again.\n"
        "decision_rule: loop\nside: policy\nexamples: [a, b]\n---\nMore.\n"
    )
    (loop,) = load_classes(tmp_path)
    assert (loop.side, loop.examples, loop.body) == ("policy", ("a", "b"), "More.\n")
    assert load_classes(tmp_path / "nowhere") == ()


def test_a_class_file_with_a_wrong_id_or_field_names_the_file():
    with pytest.raises(BadFile, match=r"failure_classes/a\.md"):
        parse_class(b"---\nid: b\nname: x\ndefinition: y\n---\n", "failure_classes/a.md")
    with pytest.raises(BadFile, match="sides"):
        parse_class(
            b"---\nid: a\nname: x\ndefinition: y\nsides: tool\n---\n", "failure_classes/a.md"
        )


def test_phrases_tell_two_sets_apart_in_both_languages():
    asked = [
        "is it still in stock",
        "still in stock?",
        "what is still in stock",
        "库存还有吗",
        "还有库存吗",
        "库存多少",
    ]
    other = ["what is the price", "is it on sale", "这个多少钱", "价格多少"] * 4
    found = {p.text for p in contrast(map(plain, asked), map(plain, other))}
    assert {"still in stock", "库存"} <= found
    assert not {"is", "what", "多少", "在", "is it"} & found


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("When will link 3 be sent?", "when will … be sent?"),
        ("when will the Speed Jump Rope be sent", "when will … be sent"),
        ("when will it be sent", "when will … be sent"),
        ("how loud is this one", "how loud is …"),
        ("3号链接多少钱", "…多少钱"),
        ("晴雨伞多少钱", "…多少钱"),
        ("这款怎么洗", "…怎么洗"),
    ],
)
def test_what_is_asked_about_becomes_a_slot(text, made):
    assert plain(text, {"speed", "jump", "rope", "晴雨伞"}) == made


@pytest.mark.parametrize(
    ("phrase", "text", "hit"),
    [
        ("still in stock", "Is the mug still  in stock??", True),
        ("in stock", "an instock thing", False),
        ("will … be sent", "when will the red kettle be sent", True),
        ("will … be sent", "when will be sent", False),
        ("host's voice", "the host’s voice is nice", True),
        ("库存", "库存还有吗", True),
    ],
)
def test_a_phrase_is_found_again_in_a_comment(phrase, text, hit):
    assert matches([phrase], text) is hit


def test_phrases_hold_no_numbers_no_bare_function_words_and_no_open_slots():
    found = phrases_of(plain("can you tell me when will link 3 be sent, it costs 89 这个怎么卖"))
    assert "will … be sent" in found
    assert not any(
        any(ch.isdigit() for ch in p) or p.startswith("…") or p.endswith("…") for p in found
    )
    assert not {"can you", "me when", "怎么"} & found


def test_fisher_is_the_exact_tail():
    """Of 18 texts 3 hold a phrase, all among the first 6: C(6,3) / C(18,3) = 20 / 816."""
    assert fisher(3, 6, 0, 12) == pytest.approx(20 / 816)
    assert fisher(0, 6, 3, 12) == pytest.approx(1.0)
    assert fisher(2, 4, 1, 4) == pytest.approx((6 * 4 + 4) / 56)


def test_a_diagnosis_survives_its_json():
    from harness_cli.records.diagnosis import Diagnosis
    from harness_cli.records.reader import parse_json

    made = diagnose(gather(run_of()), SUBJECT)
    assert parse_json(json.dumps(json.loads(canonical_json(made))), Diagnosis, name="d") == made
