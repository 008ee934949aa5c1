"""The shipped harness fits the world it is shipped with: skills, slots, lengths, prompts, hooks."""

import asyncio
import re
from pathlib import Path

import pytest

from harness_cli.errors import ToolError
from harness_cli.harness.check import check_files
from harness_cli.harness.load import state_from_files
from harness_cli.harness.prompts import render
from harness_cli.harness.tokens import estimate
from harness_cli.harness.tools import argument_errors, offered
from harness_cli.models.scripted import ScriptedPolicy, tool_reply
from harness_cli.records.harness import HOOK_EVENTS, Tool
from harness_cli.records.request import Comment, Request, Room
from harness_cli.records.trajectory import Route
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.marketing import Marketing
from harness_cli.simulator.sandbox import SandboxExecutor
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.tree import Entry

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "harness_repo"
WORLD = read_catalogue(ROOT / "evalsets" / "catalogue")
FILES = {
    p.relative_to(HARNESS).as_posix(): Entry("100644", p.read_bytes())
    for p in sorted(HARNESS.rglob("*"))
    if p.is_file()
}
STATE = state_from_files(FILES)
SKILLS = {s.name: s for s in STATE.skills}
REPLY = {
    "item-qa": "item_qa", "chillchat": "chillchat", "aftersale": "aftersale",
    "clarification": "clarification", "faq-reply": "faq_reply",
    "general-discount": "general_discount", "refusal": "refusal",
    "change-order": "change_order", "thanks": "thanks", "greet": "greet",
}  # fmt: skip
STRATEGY = {
    f"tool-strategy-{name}": f"tool_strategy_{name}"
    for name in ("benefit", "compare", "multi", "switch")
}
SECTIONS = ["When to use", "Do not use", "Rules", "Tools", "Reply patterns", "Examples"]
PATTERN = re.compile(
    r"^- \*\*(?P<key>\w+)\*\*: .+\n  - en: (?P<en>.+)\n  - zh: (?P<zh>.+)$", re.MULTILINE
)
SLOT = re.compile(r"\{([a-z_.]+)\}")
ROOMS = [r.id for r in WORLD.rooms]
PUBLIC = 3
"""Rooms are tried in this number; the others hold products of the same kinds."""


def patterns(skill: str) -> list[tuple[str, str, str]]:
    found = [(m["key"], m["en"], m["zh"]) for m in PATTERN.finditer(SKILLS[skill].body)]
    assert len(found) == SKILLS[skill].body.count("\n- **")
    return found


def slot(result: dict, path: str) -> object:
    for step in path.split("."):
        result = result[step]
    return result


def request(room: str) -> Request:
    return Request(room=Room(id=room, current_link=1, products=WORLD.room(room).products))


def results(room: str) -> list[dict]:
    """What the tools say of every link of a room, each way a skill calls them."""
    made, sandbox, marketing = request(room), SandboxExecutor(WORLD), Marketing(WORLD)
    links = range(1, len(made.room.products) + 1)
    calls: list[tuple[str, dict]] = [("get_room_status", {})]
    for n in links:
        product = WORLD.product(made.room.products[n - 1])
        calls += [("get_inventory", {"link_id": n, "variant": v}) for v in product.variants]
        calls += [("get_inventory", {"link_id": n}), ("change_presentation_order", {"link_id": n})]
        calls += [("select_product_image", {"link_id": n})]
        calls += [
            ("get_product_info_by_link_id", {"link_id": n, "attribute": a.name})
            for a in product.attributes
        ]
        calls += [("search_product_by_keyword", {"keyword": product.keywords[0]})]
        calls += [("compare_products", {"link_ids": [n, m]}) for m in links if m > n]
    calls += [("get_order_policy", {"topic": p.topic}) for p in WORLD.policies]
    calls += [("get_faq", {"query": f.question}) for f in WORLD.faq if f.product is None]
    told = [asyncio.run(sandbox.call(Tool(name=t), a, made)).structured for t, a in calls]
    for n in links:
        told += [marketing.answer("calculate_optimal_promotion", {"link_id": n}, room)]
    for tool in ("get_campaign_conditions", "get_buyer_benefits"):
        told.append(marketing.answer(tool, {}, room))
    return told


@pytest.fixture(scope="module")
def told() -> list[dict]:
    return [result for room in ROOMS[:PUBLIC] for result in results(room)]


def test_the_linter_finds_nothing_wrong():
    assert [f for f in check_files(FILES) if f.level == "error"] == []


def test_the_fourteen_skills_of_table_13_keep_the_reports_names():
    names = {n: s.metadata["harness.report-name"] for n, s in SKILLS.items()}
    assert names == {**REPLY, **STRATEGY}
    assert {n for n, s in SKILLS.items() if s.kind == "reply"} == set(REPLY)
    assert {n for n, s in SKILLS.items() if s.kind == "strategy"} == set(STRATEGY)


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_a_skill_is_a_module_with_its_sections_in_both_languages(name):
    skill = SKILLS[name]
    lines = FILES[skill.path].data.decode().count("\n")
    assert 60 <= lines <= 150
    assert re.findall(r"^## (.+)$", skill.body, re.MULTILINE) == SECTIONS
    assert re.search(r"[\u4e00-\u9fff]", skill.description)
    examples = skill.body.partition("## Examples")[2]
    assert len(re.findall(r"^Viewer", examples, re.MULTILINE)) >= 3
    assert re.search(r"Viewer.*: .*[\u4e00-\u9fff]", examples)
    rules = skill.body.partition("## Rules")[2].partition("## Tools")[0]
    assert rules.count("\n- ") >= 8


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_tools_a_skill_speaks_of_exist_and_are_allowed(name):
    skill = SKILLS[name]
    tools = {t.name for t in STATE.all_tools()}
    section = skill.body.partition("## Tools")[2].partition("\n## ")[0]
    spoken = re.findall(r"^- `(\w+)`", section, re.MULTILINE)
    assert set(spoken) <= tools
    assert set(skill.allowed_tools) <= tools
    assert set(skill.metadata.get("harness.tools", "").split()) == set(skill.allowed_tools)


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_every_slot_of_a_reply_pattern_is_a_field_of_a_tool_result(name, told):
    for key, english, chinese in patterns(name):
        for text in (english, chinese):
            slots = SLOT.findall(text)
            fitting = [r for r in told if _has(r, slots)]
            assert fitting, f"{name}: {key}: {text}"


def _has(result: dict, slots: list[str]) -> bool:
    try:
        return all(slot(result, s) is not None for s in slots)
    except (KeyError, TypeError):
        return False


def test_a_filled_pattern_is_short_enough_to_be_said(told):
    limit = STATE.pipelines["default"].constraints["reply_length"].value
    for name in SKILLS:
        for key, english, chinese in patterns(name):
            for text in (english, chinese):
                slots = SLOT.findall(text)
                for result in told:
                    if _has(result, slots):
                        said = SLOT.sub(lambda m, r=result: str(slot(r, m[1])), text)
                        assert len(said) <= limit, f"{name}: {key}: {said}"


def test_the_default_prompt_is_of_shipped_size_and_names_every_skill_and_link():
    made = render(STATE, _asked("room-beauty"), WORLD)
    system = made[0]["content"]
    assert len(system.encode()) >= 8 * 1024
    assert all(f"- {name}: " in system for name in SKILLS)
    assert all(f"link {n}: " in system for n in range(1, 13))


def test_prices_and_stock_are_not_in_the_prompt():
    for room in ROOMS:
        system = render(STATE, _asked(room), WORLD)[0]["content"]
        listed = system.partition("# Products of this room")[2].partition("\n# ")[0]
        for product_id in WORLD.room(room).products:
            product = WORLD.product(product_id)
            row = next(line for line in listed.splitlines() if f": {product.name} /" in line)
            rest = row.partition(product.name)[2].replace(product.zh_name, "")
            assert not re.search(rf"\b{int(product.price)}\b", rest)


def test_the_compact_prompt_fits_a_context_of_8192_with_all_tools():
    import json

    asked = _asked("room-family")
    words = sum(estimate(m["content"]) for m in render(STATE, asked, WORLD, pipeline="compact"))
    tools = estimate(json.dumps(offered(STATE), ensure_ascii=False))
    assert words < 1500
    assert words + tools + 2048 < 8192


@pytest.mark.parametrize("pipeline", sorted(STATE.pipelines))
def test_every_pipeline_leaves_a_round_for_the_retry_that_a_hook_asks_for(pipeline):
    slip = "It is **69** yuan."  # markup, which a hook has said again
    policy = ScriptedPolicy(
        [
            tool_reply(("load_skill", {"skill": "item-qa"})),
            tool_reply(("get_product_info_by_link_id", {"link_id": 1})),
            slip,
            "It is in the room as link 1.",
        ]
    )
    agent = Agent(
        state=STATE,
        policy=policy,
        executors={"sandbox": SandboxExecutor(WORLD)},
        world=WORLD,
        pipeline=pipeline,
    )
    done = asyncio.run(rollout(_asked("room-beauty"), agent, request_id="r"))
    assert (done.route, done.reply) == (Route.NORMAL, "It is in the room as link 1.")
    assert "output-format" in {h.hook for step in done.steps for h in step.hooks}


def _asked(room: str) -> Request:
    return Request(
        comments=(Comment(viewer="v1", text="hi"),),
        room=Room(id=room, current_link=1, products=WORLD.room(room).products),
    )


def test_hooks_stand_at_every_moment_that_has_a_built_in_check():
    assert {h.event for h in STATE.hooks} >= set(HOOK_EVENTS) - {"before_model"}
    checks = {c.check for h in STATE.hooks for c in h.checks}
    assert checks >= {
        "request_valid", "malformed_output", "parallel_mutations", "repeat_call", "loop_stop",
        "arguments_schema", "tool_result_schema", "reply_skill_required", "tool_required",
        "grounded_claims", "unsupported_promise", "ai_identity", "output_format", "length",
        "forbid_pattern",
    }  # fmt: skip


def test_constraints_lie_in_their_ranges_and_the_round_limit_is_four():
    for pipeline in STATE.pipelines.values():
        for constraint in pipeline.constraints.values():
            assert constraint.range[0] <= constraint.value <= constraint.range[1]
    assert STATE.pipelines["default"].constraints["max_rounds"].value == 4


def test_sandbox_tools_and_shipped_schemas_name_the_same_operations():
    sandboxed = {t.operation for t in STATE.tools if t.executor == "sandbox"}
    assert sandboxed == set(SandboxExecutor(WORLD).operations)
    assert {t.name for t in STATE.tools if t.executor == "builtin"} == {"load_skill", "refuse"}


@pytest.mark.parametrize(
    ("tool", "arguments", "fine"),
    [
        ("get_product_info_by_link_id", {"link_id": 3}, True),
        ("get_product_info_by_link_id", {"link_id": "3"}, False),
        ("get_product_info_by_link_id", {}, False),
        ("compare_products", {"link_ids": [1]}, False),
        ("get_order_policy", {"topic": "returns"}, True),
        ("get_order_policy", {"topic": "weather"}, False),
        ("change_presentation_order", {"link_id": 2, "position": "later"}, False),
        ("refuse", {"reason": "injection"}, True),
        ("get_room_status", {"room": 1}, False),
    ],
)
def test_schemas_accept_and_refuse_what_they_should(tool, arguments, fine):
    found = next(t for t in STATE.all_tools() if t.name == tool)
    assert (argument_errors(found, arguments) == []) is fine


def test_every_policy_topic_of_the_schema_is_in_the_catalogue():
    tool = next(t for t in STATE.tools if t.name == "get_order_policy")
    topics = tool.input_schema["properties"]["topic"]["enum"]
    assert set(topics) == {p.topic for p in WORLD.policies}
    with pytest.raises(ToolError):
        asyncio.run(
            SandboxExecutor(WORLD).call(
                Tool(name="get_order_policy"), {"topic": "weather"}, request("room-home")
            )
        )
