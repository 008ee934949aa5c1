"""Credit of hunks: by outcomes against noise, and by leaving one out."""

import asyncio

import msgspec
import pytest
from small_shop import git, make_shop, run_shop

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.evolution.apply import apply
from harness_cli.evolution.credit import Flips, Outcome, credit, flips_of, left_out, outcomes
from harness_cli.evolution.crediting import credited, find_around
from harness_cli.evolution.proposal_file import hunks, new_proposal
from harness_cli.evolution.prune import prune
from harness_cli.evolution.review import accept_by_script
from harness_cli.records.diagnosis import Decision, Edit, Op, Proposal
from harness_cli.records.noise import Noise
from harness_cli.records.run import EvalsetRef
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.noise import noise_of
from harness_cli.store.runs import RunStore

YES = Decision(state="accept", by="a", at="t")
QUIET = Flips(runs=("a", "b"), gained=0, failing=200, lost=0, passing=800)
LOUD = Flips(runs=("a", "b"), gained=60, failing=200, lost=60, passing=200)


def op(path: str) -> Op:
    return Op(op="replace", path=path, search="x", text="y", decision=YES)


def proposal(*edits: Edit) -> Proposal:
    return new_proposal(edits, base="b", base_commit=None, diagnosis="d", proposer="p")


def edit(name: str, skill: str, *fixes: str) -> Edit:
    path = f"skills/{skill}/SKILL.md"
    return Edit(id=name, module=path, ops=(op(path),), rationale="r", predicted_fixes=fixes)


def seen(**passed: bool) -> dict[str, Outcome]:
    """`s_1=True` is an item that goes through skill `s`."""
    return {k: Outcome(passed=v, through=frozenset({k.split("_")[0]})) for k, v in passed.items()}


@pytest.mark.parametrize(
    ("before", "after", "noise", "mark"),
    [
        # 3 of 3 fixed; at 0 of 200 flips Wilson's bound is 1.3 %: p = 0.013³
        ({"s_1": 0, "s_2": 0, "s_3": 0}, {"s_1": 1, "s_2": 1, "s_3": 1}, QUIET, "helped"),
        # the same beside a policy that flips a third of what fails: 0.36³ = 0.046
        ({"s_1": 0, "s_2": 0}, {"s_1": 1, "s_2": 1}, LOUD, "cannot tell"),
        # two of two passing items broke
        ({"s_1": 0, "s_2": 1, "s_3": 1}, {"s_1": 0, "s_2": 0, "s_3": 0}, QUIET, "hurt"),
        ({"s_1": 0, "s_2": 1}, {"s_1": 0, "s_2": 1}, QUIET, "cannot tell"),
        # 1 fixed, 1 broken, both beyond noise
        ({"s_1": 0, "s_2": 1}, {"s_1": 1, "s_2": 0}, QUIET, "cannot tell"),
        # without A/A: five of five is p = 1/32
        (
            dict.fromkeys(("s_1", "s_2", "s_3", "s_4", "s_5"), 0),
            dict.fromkeys(("s_1", "s_2", "s_3", "s_4", "s_5"), 1),
            None,
            "helped",
        ),
        ({"s_1": 0, "s_2": 0}, {"s_1": 1, "s_2": 1}, None, "cannot tell"),
    ],
)
def test_a_hunk_is_marked_by_its_promised_and_its_risked_items(before, after, noise, mark):
    fixes = [k for k, v in before.items() if not v]
    (found,) = credit(proposal(edit("e", "s", *fixes)), seen(**before), seen(**after), noise)
    assert found.mark == mark, found.why


def test_an_item_that_two_edits_promised_is_no_evidence_for_one_of_them():
    both = proposal(edit("one", "s", "s_1", "s_2"), edit("two", "t", "s_1", "s_2"))
    before, after = seen(s_1=False, s_2=False), seen(s_1=True, s_2=True)
    first, second = credit(both, before, after, QUIET)
    assert (first.mark, second.mark) == ("cannot tell", "cannot tell")
    assert first.shared_with == ("two",)
    assert first.fixed == ("s_1", "s_2")


def test_items_that_go_elsewhere_are_no_risk_of_a_hunk():
    before, after = seen(s_1=False, t_1=True, t_2=True), seen(s_1=False, t_1=False, t_2=False)
    (found,) = credit(proposal(edit("e", "s", "s_1")), before, after, QUIET)
    assert found.broken == ()
    assert found.mark == "cannot tell"


def test_rejected_hunks_get_no_credit():
    no = msgspec.structs.replace(op("skills/s/SKILL.md"), decision=Decision(state="reject", by="a"))
    lost = Edit(id="e", module="skills/s/SKILL.md", ops=(no,), rationale="r")
    assert credit(proposal(lost), seen(s_1=False), seen(s_1=True), QUIET) == ()


def test_leaving_out_counts_what_passes_with_the_hunk_only():
    (found,) = credit(proposal(edit("e", "s", "s_1")), seen(s_1=False), seen(s_1=True), LOUD)
    with_it = seen(s_1=True, s_2=True, s_3=True, s_4=False)
    without = seen(s_1=False, s_2=False, s_3=True, s_4=False)
    after = left_out(found, with_it, without, QUIET)
    assert after.left_out == {"items": 4, "earned": 2, "cost": 0}
    assert after.mark == "helped"


def test_a_noise_floor_is_read_as_flips_in_both_directions():
    # two runs over three items, of which two changed sides: 3 of 6 passed
    metric = noise_of("pass", [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
    ref = EvalsetRef(name="e", split="dev", digest="d", n=3)
    told = {"evalset": ref, "policy_id": "p", "harness_id": "h", "judge_id": "j"}
    found = flips_of(Noise(runs=("x", "y"), metrics=(metric,), **told))
    assert (found.gained, found.failing, found.lost, found.passing) == (2, 2, 2, 4)
    assert flips_of(Noise(runs=("x", "y"), **told)) is None


def test_repeats_of_an_item_are_one_outcome():
    rows = [
        ItemResult(item_id="i", category="c", state=state, repeat=n, hooks_fired=("h:retry",))
        for n, state in enumerate(("passed", "failed", "errored"))
    ]
    (found,) = outcomes(rows).values()
    assert not found.passed
    assert found.through == {"h"}


def made(project, ops, fixes):
    """A proposal of two edits on the shop, bound to its newest run."""
    run = RunStore(project.runs).newest()
    edits = tuple(
        Edit(id=f"e{n}", module=o.path, ops=(o,), rationale="r", predicted_fixes=f)
        for n, (o, f) in enumerate(zip(ops, fixes, strict=True), 1)
    )
    config = run.config()
    return new_proposal(
        edits, base=config.harness_id, base_commit=config.harness_commit, diagnosis=run.id,
        proposer="test",
    )  # fmt: skip


def test_credit_in_a_project_marks_by_runs_resumes_and_feeds_prune(tmp_path):
    project = make_shop(tmp_path)
    with pytest.raises(UnknownName, match="no proposal was applied"):
        find_around(project, None)
    run_shop(project)
    run_shop(project)  # the A/A pair
    hook = Op(
        op="write", path="hooks/no-hello.yaml",
        text="schema: 1\nname: no-hello\nevent: before_reply\nchecks:\n"
        "  - check: forbid_pattern\n    with: {patterns: [Hello]}\naction: suppress\n",
    )  # fmt: skip
    rule = Op(op="replace", path="skills/aftersale/SKILL.md", search="Orders that were placed.",
              text="Orders placed before.", expected_count=2)  # fmt: skip
    wanted = accept_by_script(made(project, (hook, rule), ((), ("returns-01",))), "all", by="t")
    applied = apply(project, wanted)
    with pytest.raises(UsageError, match="not measured yet"):
        find_around(project, None)
    run_shop(project, harness=applied.branch)
    around = find_around(project, wanted.id)
    said: list[str] = []
    report = asyncio.run(credited(project, around, budget=100, say=said.append))
    assert report.noise is not None
    assert report.noise.gained == 0
    first, second = report.credits
    assert first.mark == "hurt", first.why
    assert first.left_out == {"items": 18, "earned": 0, "cost": 18}
    assert second.mark == "cannot tell"
    assert second.left_out == {"items": 19, "earned": 0, "cost": 0}
    runs = len(RunStore(project.runs).list())
    again = asyncio.run(credited(project, around, budget=100, say=said.append))
    assert again.credits == report.credits
    assert len(RunStore(project.runs).list()) == runs, "runs with a hunk left out are kept"
    assert RunStore(project.runs).newest().id == around.after.id, "and are nobody's newest"
    pruning, notes = prune(project)
    assert notes == []
    assert {o.path for _, _, o in hunks(pruning)} == {hook.path, rule.path}
    gone = apply(project, accept_by_script(pruning, "all", by="t"))
    assert gone.harness_id == around.before.config().harness_id
    assert prune(project)[0].edits == (), "what was taken out is not proposed again"


def test_a_budget_that_is_too_small_spends_nothing(tmp_path):
    project = make_shop(tmp_path)
    run_shop(project)
    rule = Op(op="replace", path="skills/greet/SKILL.md", search="says hello", text="greets",
              expected_count=2)  # fmt: skip
    wanted = accept_by_script(made(project, (rule,), (("stock-00",),)), "all", by="t")
    applied = apply(project, wanted)
    run_shop(project, harness=applied.branch)
    report = asyncio.run(
        credited(project, find_around(project, None), budget=0, say=lambda words: None)
    )
    assert report.spent == 0
    assert report.credits[0].left_out is None
    assert prune(project)[0].edits == (), "no evidence is not evidence against"


HOOK = (
    "schema: 1\nname: {}\nevent: before_reply\nchecks:\n  - check: {}\n    with: {}\naction: {}\n"
)


def hook_op(name, check, settings, action="retry"):
    text = HOOK.format(name, check, settings, action)
    return Op(op="write", path=f"hooks/{name}.yaml", text=text)


def test_new_hooks_are_tried_on_recorded_rollouts_before_the_commit(tmp_path):
    project = make_shop(tmp_path)
    run_shop(project)
    hook = hook_op("no-hello", "forbid_pattern", "{patterns: [Hello]}")
    wanted = accept_by_script(made(project, (hook,), ((),)), "all", by="t")
    (tried,) = apply(project, wanted).rehearsed
    assert (tried.stepped_in_passing, tried.passing) == (18, 18)
    assert (tried.stepped_in_failing, tried.failing) == (0, 36)


def test_a_hook_that_fails_on_recorded_rollouts_is_not_committed(tmp_path):
    project = make_shop(tmp_path)
    run_shop(project)

    script = "import sys; sys.exit('no decision')\n"
    ops = (
        Op(op="write", path="hooks/breaks.py", text=script),
        Op(op="write", path="hooks/breaks.yaml",
           text="schema: 1\nname: breaks\nevent: before_reply\n"
           "command: ['{python}', hooks/breaks.py]\n"),
    )  # fmt: skip
    wanted = accept_by_script(made(project, ops, ((), ())), "all", by="t")
    head = git(tmp_path, "for-each-ref")
    with pytest.raises(BadFile, match="hook `breaks` fails on a recorded event"):
        apply(project, wanted, allow_code=True)
    assert git(tmp_path, "for-each-ref") == head


def test_proposals_without_hooks_or_without_their_run_are_not_tried(tmp_path):
    project = make_shop(tmp_path)
    run_shop(project)
    rule = Op(op="replace", path="skills/greet/SKILL.md", search="says hello", text="greets",
              expected_count=2)  # fmt: skip
    assert (
        apply(project, accept_by_script(made(project, (rule,), ((),)), "all", by="t")).rehearsed
        == ()
    )
