"""Votes into grades: pure, so the rules are held for every panel there may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.judges.panel.submission import GRADES
from harness_cli.judges.panel.tally import Rule, decide, shared_findings, tally_rubrics
from harness_cli.records.verdict import Finding, RubricVote, Vote

METRIC = "effectiveness"


def votes(*grades, metric=METRIC):
    """One vote a grade; None is an unscored one."""
    return [
        Vote(voter=f"v{n}", unscored="silent" if g is None else None, scores={metric: g})
        for n, g in enumerate(grades)
    ]


@pytest.mark.parametrize(
    ("grades", "rule", "grade"),
    [
        ((1, 1, 0), Rule(), 1),
        ((1, 0.5, 0), Rule(), 0.5),
        ((1, 1, None), Rule(), 1),
        ((1, 0, None), Rule(), 0.5),
        ((1, 0.5, None), Rule(), None),
        ((1, 0.5, None), Rule(split="lower"), 0.5),
        ((1, 0.5, 0), Rule(split="unscored"), None),
        ((1, None, None), Rule(), None),
        ((1, None, None), Rule(quorum=1), 1),
        ((1, 1, 0.5), Rule(rule="unanimous"), 1),
        ((1, 1, 0.5), Rule(rule="unanimous", split="unscored"), None),
        ((1, 1, 1), Rule(rule="unanimous"), 1),
        ((1, 1, None, None), Rule(), None),
        ((1,), Rule(), 1),
        ((0, 0, 1, 1), Rule(), 0.5),
        ((0, 0, 0.5, 1, 1), Rule(), 0.5),
    ],
)
def test_majority_split_and_quorum(grades, rule, grade):
    assert decide(METRIC, votes(*grades), rule).grade == grade


def test_a_tie_on_accuracy_has_no_median_and_is_unscored_with_the_votes_shown():
    decision = decide("accuracy", votes(1, 0, metric="accuracy"), Rule())
    assert decision.grade is None
    assert "0 : 1" in decision.why


graded = st.lists(st.sampled_from([*GRADES[METRIC], None]), min_size=1, max_size=7)
rules = st.builds(
    Rule,
    rule=st.sampled_from(["majority", "unanimous"]),
    split=st.sampled_from(["median", "lower", "unscored"]),
)


@given(graded, rules)
def test_a_grade_is_a_label_between_the_votes_and_never_comes_from_silence(grades, rule):
    decision = decide(METRIC, votes(*grades), rule)
    known = [g for g in grades if g is not None]
    if decision.grade is None:
        assert decision.why
    else:
        assert decision.grade in GRADES[METRIC]
        assert min(known) <= decision.grade <= max(known)
        assert len(known) >= rule.needed(len(grades))


@given(graded, st.randoms(), rules)
def test_the_order_of_the_members_changes_nothing(grades, random, rule):
    shuffled = list(grades)
    random.shuffle(shuffled)
    assert decide(METRIC, votes(*grades), rule) == decide(METRIC, votes(*shuffled), rule)


@given(graded, rules)
def test_another_silent_member_never_turns_one_grade_into_another(grades, rule):
    before = decide(METRIC, votes(*grades), rule).grade
    after = decide(METRIC, votes(*grades, None), rule).grade
    assert after in (before, None)


def test_a_strict_majority_is_never_overruled():
    for one in GRADES[METRIC]:
        for other in GRADES[METRIC]:
            assert decide(METRIC, votes(one, one, other), Rule()).grade == one


def rubric(*passed):
    return [
        Vote(voter=f"v{n}", rubrics=() if p is None else (RubricVote(id="rubric:1", passed=p),))
        for n, p in enumerate(passed)
    ]


@pytest.mark.parametrize(
    ("passed", "rule", "outcome"),
    [
        ((True, True, False), Rule(), True),
        ((True, False, False), Rule(), False),
        ((True, False, None), Rule(), None),
        ((True, None, None), Rule(), None),
        ((True, True, None), Rule(), True),
        ((True, True, False), Rule(rule="unanimous"), None),
    ],
)
def test_rubrics_follow_the_same_rule(passed, rule, outcome):
    assert tally_rubrics(["rubric:1"], rubric(*passed), rule)["rubric:1"].passed is outcome


def test_findings_are_those_of_the_votes_that_prevailed():
    wrong = Finding(kind="wrong_price", detail="79", quote="79 yuan")
    mild = Vote(voter="a", scores={"accuracy": 1.0, "effectiveness": 1.0})
    strict = Vote(
        voter="b", scores={"accuracy": 0.0, "effectiveness": 1.0}, findings=(wrong, wrong)
    )
    assert shared_findings([mild, strict], {"accuracy": 1.0, "effectiveness": 1.0}) == ()
    assert shared_findings([mild, strict], {"accuracy": 0.0, "effectiveness": 1.0}) == (wrong,)
    assert shared_findings([mild, strict], {"accuracy": None, "effectiveness": None}) == ()
