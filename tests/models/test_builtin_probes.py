"""What the policy makes of a harness it has never seen: thirty probes and variations."""

import random
from typing import Any

import pytest
from builtin_harness import BODIES, PROBES, SKILLS, Rollout, renamed_text, request, tools

from harness_cli.models.builtin.deciding import decide
from harness_cli.models.builtin.moves import reply_of
from harness_cli.models.builtin.similarity import Similarity
from harness_cli.models.builtin.vectors import open_vectors

FLOOR_SKILLS, FLOOR_TOOLS, FLOOR_CHINESE = 26, 25, 8
"""Of 30 (of 10 in Chinese). Measured when the policy was frozen: see docs/builtin.md."""


@pytest.fixture(scope="module")
def thinks() -> Any:
    similarity = Similarity(open_vectors())

    def decided(body: dict[str, Any]) -> dict[str, Any]:
        return reply_of(decide(body, similarity), body)["choices"][0]["message"]

    return decided


def outcome(thinks: Any, probe: tuple[Any, ...], **settings: Any) -> tuple[bool, bool]:
    """Whether the skill, and the tool with its arguments, are the expected ones."""
    comment, skill, tool, arguments = probe
    log, _ = Rollout(thinks).play(request(comment, **settings))
    skills = [a["name"] for n, a in log if n == "open_skill"]
    calls = [(n, a) for n, a in log if n != "open_skill"]
    right = [n for n, _ in calls] == ([tool] if tool else [])
    right = right and all(any(a.get(k) == v for _, a in calls) for k, v in arguments.items())
    return skills[:1] == [skill], right


def test_thirty_probes_reach_the_measured_floor(thinks: Any):
    outcomes = [outcome(thinks, probe) for probe in PROBES]
    chinese = [all(o) for o, p in zip(outcomes, PROBES, strict=True) if not p[0].isascii()]
    assert sum(skill for skill, _ in outcomes) >= FLOOR_SKILLS
    assert sum(tool for _, tool in outcomes) >= FLOOR_TOOLS
    assert (sum(chinese) >= FLOOR_CHINESE, len(chinese)) == (True, 10)


@pytest.mark.parametrize(
    ("comment", "reply"),
    [
        ("How much is #3?", "Money tree is 129 yuan."),
        ("3号多少钱", "发财树现在129元。"),
        ("how often should I water this one?", "Water Monstera once a week."),
        ("what does #2 cost and how often do I water it?",
         "Boston fern is 28.5 yuan. Water Boston fern twice a week."),
        ("which is better, #1 or #4?",
         "Snake plant is 39 yuan, Peace lily is 45 yuan; Snake plant is cheaper."),
        ("1号和3号哪个好养", "虎尾兰39元，发财树129元，虎尾兰更便宜。"),
        ("什么时候发货", "条款：shipping。"),
    ],
)  # fmt: skip
def test_replies_come_from_tool_results_by_the_skills_patterns(
    thinks: Any, comment: str, reply: str
):
    assert Rollout(thinks).play(request(comment))[1] == reply


def test_a_fact_the_result_does_not_have_is_said_to_be_missing(thinks: Any):
    def sheet_without_price(name: str, arguments: dict[str, Any]) -> str:
        return BODIES["plant-facts"] if name == "open_skill" else '{"name": "Money tree"}'

    rollout = Rollout(thinks)
    rollout.tool = sheet_without_price  # type: ignore[method-assign]
    assert rollout.play(request("How much is #3?"))[1] == "I don't have that detail on the sheet."


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        ({"current": 4}, 4),
        ({"current": 4, "host": "now let us look at link 2"}, 2),
        ({"current": None, "host": "大家看这款虎尾兰"}, 1),
        ({"current": 4, "history": "viewer: what about the money tree\nhost: It likes light."}, 3),
    ],
)
def test_this_one_is_found_in_host_words_history_and_what_is_presented(
    thinks: Any, settings: dict[str, Any], number: int
):
    log, _ = Rollout(thinks).play(request("how often should I water this one?", **settings))
    assert ("plant_sheet", {"link": number}) in log


def test_several_comments_are_each_answered_in_their_language(thinks: Any):
    body = request("", comments=("how much is #1", "6号多少钱"))
    log, reply = Rollout(thinks).play(body)
    assert [a for n, a in log if n == "plant_sheet"] == [{"link": 1}, {"link": 6}]
    assert "Snake plant is 39 yuan." in reply
    assert "迷你仙人掌现在12元。" in reply


def test_rewriting_a_skill_description_changes_the_routing(thinks: Any):
    comment = "when will my order ship?"
    before, _ = Rollout(thinks).play(request(comment))
    assert before[0] == ("open_skill", {"name": "parcel"})
    rewritten = {
        **SKILLS,
        "parcel": "Answers about pots and soil. 花盆和土。",
        "small-talk": SKILLS["small-talk"] + " Also says when an order ships. 发货时间。",
    }
    after, _ = Rollout(thinks).play(request(comment, skills=rewritten))
    assert after[0] == ("open_skill", {"name": "small-talk"})


def test_an_exclusion_in_a_description_moves_what_it_excludes(thinks: Any):
    comment = "is there a discount on my refund"
    plain = {**SKILLS, "which-one": SKILLS["which-one"] + " Also discounts on refunds."}
    before, _ = Rollout(thinks).play(request(comment, skills=plain))
    excluded = {
        **SKILLS,
        "which-one": SKILLS["which-one"] + " Not for discounts or refunds.",
        "parcel": SKILLS["parcel"] + " Also discounts on refunds.",
    }
    after, _ = Rollout(thinks).play(request(comment, skills=excluded))
    assert before[0] == ("open_skill", {"name": "which-one"})
    assert after[0] == ("open_skill", {"name": "parcel"})


def test_rewriting_a_tool_schema_changes_the_arguments(thinks: Any):
    offered = tools()
    parameters = offered[4]["function"]["parameters"]
    parameters["properties"]["topic"]["enum"] = ["dispatch", "give_back", "damage"]
    parameters["properties"]["topic"]["description"] = (
        "dispatch = when it ships; give_back = send back, refund; damage = arrived broken."
    )
    rollout = Rollout(thinks)
    rollout.tool = lambda name, arguments: (  # type: ignore[method-assign]
        BODIES["parcel"] if name == "open_skill" else '{"text": "Told."}'
    )
    log, _ = rollout.play(request("when will my order ship?", offered=offered))
    assert ("parcel_terms", {"topic": "dispatch"}) in log


def permuted(names: list[str], seed: int) -> dict[str, str]:
    """Each name to another one of the same kind, none to itself where that can be."""
    order = names[:]
    random.Random(seed).shuffle(order)
    turned = order[1:] + order[:1]
    return dict(zip(order, turned, strict=True))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_names_permuted_consistently_give_the_same_score(thinks: Any, seed: int):
    """Names carry no meaning of their own: only what the harness says under them counts."""
    skills = permuted(list(SKILLS), seed)
    offered = permuted([t["function"]["name"] for t in tools()], seed)
    names = {**skills, **offered}
    plain = mixed = 0
    for comment, skill, tool, _ in PROBES:
        body = request(comment)
        log, reply = Rollout(thinks).play(body)
        other = {
            "messages": [
                {**m, "content": renamed_text(m["content"], skills)} for m in body["messages"]
            ],
            "tools": renamed_tools(body["tools"], names),
            "seed": 0,
        }
        other_log, other_reply = Rollout(thinks, **names).play(other)
        expected = [skill, tool] if tool else [skill]
        plain += named(log) == expected
        mixed += named(other_log) == [names[n] for n in expected]
        if named(other_log) == [names[n] for n in named(log)]:
            assert other_reply == reply
    assert abs(plain - mixed) <= 1


def named(log: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The skill loaded first, then the tools called."""
    skills = [a["name"] for n, a in log if set(a) == {"name"}]
    return skills[:1] + [n for n, a in log if set(a) != {"name"}]


def renamed_tools(offered: list[dict[str, Any]], names: dict[str, str]) -> list[dict[str, Any]]:
    """Definitions under other names, the loader's enum with them."""
    found = []
    for definition in offered:
        function = dict(definition["function"])
        function["name"] = names[function["name"]]
        properties = dict(function["parameters"]["properties"])
        if "name" in properties and "enum" in properties["name"]:
            enum = [names[n] for n in properties["name"]["enum"]]
            properties["name"] = {**properties["name"], "enum": enum}
        function["parameters"] = {**function["parameters"], "properties": properties}
        found.append({"type": "function", "function": function})
    return sorted(found, key=lambda t: t["function"]["name"])
