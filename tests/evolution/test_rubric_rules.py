"""The proposers for a judge: rules that are known beforehand, a model's edits inside its folder."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from harness_cli.evolution.failure import Failure, Observation, Seen
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.llm import prompt_of, propose_with_model
from harness_cli.evolution.propose.rubrics import ANCHOR, RULES, propose_rules, rubric_of
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.diagnosis import Cluster, Diagnosis

EFFECTIVENESS = "judges/final/skills/rubric-effectiveness/SKILL.md"
ACCURACY = "judges/final/skills/rubric-accuracy/SKILL.md"
TEXT = f"# Rubric\n\n- One rule.\n\n{ANCHOR}\n- One example.\n"


def failure(number, key, comment="how many of these are left now"):
    kind, _, detail = key.partition(":")
    return Failure(
        seen=Seen(item_id=f"i{number}", category="product-qa", state="failed", comment=comment),
        reply="Yes, it is still available.",
        observations=(Observation(kind=kind, detail=detail, side="judge"),),
        failed_metrics=("effectiveness",),
    )


def ground(*keys, systematic=True, text=TEXT):
    failures = [failure(n, key) for n, key in enumerate(keys)]
    clusters = tuple(
        Cluster(
            id=key.replace(":", "-"), label=key, size=5, share=0.5, systematic=systematic,
            side="judge", item_ids=tuple(f.item_id for f in failures if f.leading.key == key),
        )
        for key in dict.fromkeys(keys)
    )  # fmt: skip
    made = Diagnosis(
        run="judge-final", harness_id="t", evalset="judge_calibration",
        failures=len(failures), of=100, clusters=clusters, unexplained=0.0,
    )  # fmt: skip
    return Ground(
        diagnosis=made,
        failures=failures,
        seen=[f.seen for f in failures],
        state=SimpleNamespace(id="t", commit="c", dirty=False),
        files={EFFECTIVENESS: text.encode(), ACCURACY: TEXT.encode()},
        judge="final",
    )


def test_a_systematic_cluster_gets_the_rule_of_its_leading_fact_before_the_examples():
    found = propose_rules(ground(*["lenient:partial"] * 5))
    (edit,) = found.edits
    assert (edit.module, edit.classes) == (EFFECTIVENESS, ("lenient-partial",))
    assert edit.predicted_fixes == ("i0", "i1", "i2", "i3", "i4")
    (op,) = edit.ops
    assert op.text == f"- {RULES['lenient:partial'].text}\n\n{ANCHOR}"


def test_two_rules_for_one_rubric_apply_one_after_the_other():
    keys = [*["lenient:partial"] * 5, *["lenient:missed_comment"] * 5]
    assert len(propose_rules(ground(*keys)).edits) == 2


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (ground(*["lenient:partial"] * 5, systematic=False), "not systematic"),
        (ground(*["ungraded:accuracy"] * 5), "no rule is known"),
        (
            ground(*["lenient:partial"] * 5, text=TEXT + RULES["lenient:partial"].text),
            "says so already",
        ),
        (ground(*["lenient:partial"] * 5, text="# No section\n"), "no one section"),
    ],
)
def test_what_is_not_proposed_says_why(made, why):
    found = propose_rules(made)
    assert found.edits == ()
    assert why in found.dropped[0][1]


def test_every_rule_is_for_a_rubric_that_the_shipped_judge_has_and_is_short():
    for key, rule in RULES.items():
        assert key.partition(":")[0] in ("lenient", "strict")
        assert rubric_of([EFFECTIVENESS, ACCURACY], rule.metric)
        assert len(rule.text) < 400


def answer(path, text):
    return json.dumps(
        {
            "edits": [
                {
                    "id": "stricter", "module": path, "rationale": "too mild",
                    "classes": ["lenient-partial"], "predicted_fixes": ["i1"], "risks": "none",
                    "ops": [{"op": "replace", "path": path, "search": ANCHOR, "text": text}],
                }
            ]
        }
    )  # fmt: skip


def proposed(said):
    made = ground(*["lenient:partial"] * 5)
    return asyncio.run(propose_with_model(ScriptedPolicy([said]), made))


def test_a_models_edit_of_the_judge_is_taken():
    found = proposed(answer(EFFECTIVENESS, f"- Half an answer is half a grade.\n\n{ANCHOR}"))
    assert [e.module for e in found.edits] == [EFFECTIVENESS]


@pytest.mark.parametrize(
    "path",
    [
        "skills/greet/SKILL.md",
        "judges/other/skills/rubric-effectiveness/SKILL.md",
        "failure_classes/x.md",
    ],
)
def test_a_models_edit_outside_the_judge_is_dropped(path):
    found = proposed(answer(path, ANCHOR))
    assert found.edits == ()
    assert "outside the judge" in found.dropped[0][1]


def test_a_models_edit_that_copies_a_case_is_dropped():
    copied = f"- When asked how many of these are left name the number.\n\n{ANCHOR}"
    found = proposed(answer(EFFECTIVENESS, copied))
    assert found.edits == ()
    assert "word for word" in found.dropped[0][1]


def test_the_model_is_told_that_it_edits_a_judge():
    text = prompt_of(ground(*["lenient:partial"] * 5))
    assert "harness of a judge" in text
    assert EFFECTIVENESS in text
