"""Two replies before a panel in both orders: what is said only in one of them is a flip, no win."""

import asyncio
import json

import pytest
from judged_cases import make_item, make_trajectory
from judging_endpoint import JudgeEndpoint, calling, panel_project, saying, serving, turn_of
from test_panel import case_of

from harness_cli.errors import UsageError
from harness_cli.judges.panel.opening import open_pairwise
from harness_cli.records.config import JudgeConfig
from harness_cli.records.trajectory import StopReason

RIGHT, WRONG = "It is 89 yuan.", "It is 79 yuan."
READ = calling(("load_skill", {"skill": "rubric-preference"}))


def prefers(choose):
    """A judge that prefers what `choose(first reply, second reply)` says."""

    def answer(body):
        if turn_of(body) == 0:
            return READ
        case = case_of(body)
        side = choose(case["first"]["reply"]["text"], case["second"]["reply"]["text"])
        if side is None:
            return saying("hm")
        evidence = [{"ref": "first"}]
        return calling(
            ("submit_preference", {"preferred": side, "reason": side, "evidence": evidence})
        )

    return answer


def truth(first, second):
    return "first" if first == RIGHT else "second"


def taste(first, second):
    return "first"


def nothing(first, second):
    return "tie"


@pytest.fixture
def compared(tmp_path, world):
    def go(models, a=RIGHT, b=WRONG, **options):
        endpoint = JudgeEndpoint({name: prefers(choose) for name, choose in models.items()})

        async def one(project):
            judge = open_pairwise("final", JudgeConfig(panel=tuple(models)), project)
            try:
                first, second = make_trajectory(a, **options), make_trajectory(b)
                return await judge.compare(make_item(world), first, second, world)
            finally:
                await judge.close()

        with serving(endpoint) as url:
            project = panel_project(tmp_path / "p", url, models, {})
            return asyncio.run(one(project)), endpoint

    return go


def test_what_is_preferred_in_both_orders_wins(compared):
    found, endpoint = compared({"j": truth})
    assert (found.preferred, found.votes[0].flipped) == ("a", False)
    assert endpoint.calls["j"] == 4
    swapped = [case_of(b)["first"]["reply"]["text"] for b in endpoint.bodies]
    assert sorted(swapped) == sorted([RIGHT, RIGHT, WRONG, WRONG])
    names = {t["function"]["name"] for t in endpoint.bodies[0]["tools"]}
    assert "submit_preference" in names
    assert "submit_verdict" not in names


def test_the_second_run_can_win_as_well(compared):
    found, _ = compared({"j": truth}, a=WRONG, b=RIGHT)
    assert found.preferred == "b"


def test_a_taste_for_the_first_place_is_a_flip_and_a_tie(compared):
    found, _ = compared({"j": taste})
    assert (found.preferred, found.votes[0].flipped) == ("tie", True)


@pytest.mark.parametrize(
    ("models", "preferred"),
    [
        ({"x": truth, "y": truth, "z": taste}, "a"),
        ({"x": truth, "y": taste, "z": nothing}, "tie"),
        ({"x": truth, "y": truth, "z": lambda a, b: None}, "a"),
        ({"x": truth, "y": lambda a, b: None, "z": lambda a, b: None}, None),
    ],
)
def test_the_panel_decides_by_more_than_half_of_its_votes(compared, models, preferred):
    found, _ = compared(models)
    assert found.preferred == preferred
    assert bool(found.reason)


def test_equal_replies_are_a_tie_and_nobody_is_asked(compared):
    found, endpoint = compared({"j": taste}, b=RIGHT)
    assert found.preferred == "tie"
    assert not endpoint.calls


def test_a_pair_with_a_broken_rollout_is_unscored(compared):
    found, endpoint = compared({"j": taste}, stop=StopReason.ERROR, error="runtime: no")
    assert (found.preferred, found.reason) == (None, "runtime: no")
    assert not endpoint.calls


def test_neither_reply_says_whose_it_is(compared):
    _, endpoint = compared({"j": truth})
    text = json.dumps([b["messages"] for b in endpoint.bodies])
    assert "policy" not in json.dumps(case_of(endpoint.bodies[0]))
    assert "run" not in case_of(endpoint.bodies[0])
    assert "RUN_A" not in text


def test_the_grounded_judge_compares_nothing_and_says_so(tmp_path):
    project = panel_project(tmp_path / "p", "http://127.0.0.1:9/v1", ("a",), {})
    with pytest.raises(UsageError, match="grades single replies"):
        open_pairwise("grounded", JudgeConfig(kind="grounded"), project)
    with pytest.raises(UsageError, match="no member that could compare"):
        open_pairwise("final", JudgeConfig(panel=("grounded",)), project)
