"""Augmented states: five dimensions, coupled names, one seed one state, nothing else touched."""

import asyncio
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hsa import EVALSETS, FULL, base, dev_items, files, golds, grounds, only, oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.augmentation import states
from harness_cli.augmentation.distance import distance, edits
from harness_cli.augmentation.golds import GivenResults, Gold, gold_faults, played, script
from harness_cli.augmentation.paraphrases import Book, texts_of, written
from harness_cli.augmentation.preserving import augment_preserving
from harness_cli.augmentation.renaming import Renaming
from harness_cli.augmentation.states import NoState, augment, rebuilt
from harness_cli.errors import ToolError, UsageError
from harness_cli.evaluation.agents import open_executors
from harness_cli.harness.check import check_files
from harness_cli.harness.load import loaded
from harness_cli.harness.tools import offered
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.augmentation import DIMENSIONS, Dimension, Paraphrase, Recipe
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.trajectory import HookEvent, Step, ToolCall, ToolResult, Trajectory
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.store.tree import tree_id

OTHERS = {
    "skill_identifiers": ("skills/", "failure_classes/", "prompts/", "tools/", "hooks/"),
    "skill_content": ("skills/",),
    "tool_definitions": ("tools/", "skills/", "hooks/", "prompts/", "failure_classes/"),
    "system_prompt": ("prompts/",),
    "hook_variants": ("hooks/", "failure_classes/"),
}
"""Dimension → the folders that it and the names it changes may reach."""


def test_the_same_seed_gives_the_same_tree_and_another_one_another():
    one, two = augment(files(), FULL, 7), augment(base(), FULL, 7)
    assert one.state.id == tree_id(
        {p: e for p, e in one.files.items() if not p.startswith(("judges/", "failure_classes/"))}
    )
    assert one.state.id == two.state.id, "from files and from a loaded state"
    assert one.map == msgspec.structs.replace(two.map)
    assert augment(files(), FULL, 8).state.id != one.state.id
    assert rebuilt(files(), FULL, 7, len(one.discards), name="seed-7").state.id == one.state.id


@pytest.mark.parametrize("name", DIMENSIONS)
def test_a_dimension_changes_its_own_part_and_what_speaks_of_it(name):
    for seed in range(3):
        made = augment(files(), only(name), seed)
        assert made.map.dimensions == (name,)
        assert made.state.id != base().id
        changed = {p for p in made.files.keys() | files().keys()
                   if made.files.get(p) != files().get(p)}  # fmt: skip
        assert changed
        assert all(p.startswith(OTHERS[name]) for p in changed), changed
        assert not any(f.level == "error" for f in check_files(made.files))
        assert check_files(made.files) == check_files(files())
        assert edits(made.changes[0]).tokens > 0


@pytest.mark.parametrize("name", DIMENSIONS)
def test_leaving_a_dimension_out_changes_nothing_in_the_others(name):
    without = {kind: d for kind, d in FULL.dimensions.items() if kind != name}
    all_moves = {c.dimension: c.moves for c in augment(files(), FULL, 3).changes}
    fewer = augment(files(), msgspec.structs.replace(FULL, dimensions=without), 3).changes
    assert {c.dimension: c.moves for c in fewer} == {
        kind: moves for kind, moves in all_moves.items() if kind != name
    }


def test_a_renamed_tool_is_renamed_wherever_something_speaks_of_it():
    made = augment(files(), only("tool_definitions", "rename"), 5)
    assert len(made.map.tools) == len(base().all_tools())
    text = "\n".join(
        line
        for path, entry in made.files.items()
        if not path.startswith(("judges/", "tools/mcp"))
        for line in entry.data.decode().splitlines()
        if "harness.operation:" not in line
    )
    assert not [name for name in made.map.tools if "_" in name and name in text]
    known = {tool.name for tool in made.state.all_tools()}
    assert known == set(made.map.tools.values())
    for skill in made.state.skills:
        assert set(skill.allowed_tools) <= known
    operations = {t.name: t.operation for t in made.state.all_tools()}
    assert operations == {new: old for old, new in made.map.tools.items()}


def test_a_tool_of_a_server_is_offered_once_under_its_new_name():
    made = augment(files(), only("tool_definitions", "rename", "parameters"), 5)
    names = [d["function"]["name"] for d in offered(made.state)]
    assert len(names) == len(set(names)) == len(offered(base()))
    new = made.map.tools["calculate_optimal_promotion"]
    tool = next(t for t in made.state.all_tools() if t.name == new)
    assert (tool.executor, tool.operation) == ("mcp", "calculate_optimal_promotion")
    assert made.files["tools/mcp.lock.json"] == files()["tools/mcp.lock.json"]


def test_parameters_that_a_schema_uses_twice_keep_their_names():
    made = augment(files(), only("tool_definitions", "parameters"), 1)
    promotion = made.map.parameters["calculate_promotion"]
    assert "link_id" not in promotion
    assert "quantity" not in promotion
    assert made.map.parameters["get_inventory"].keys() == {"link_id", "variant"}


def test_a_hook_watches_a_renamed_tool_as_before():
    hook = next(h for h in base().hooks if h.name == "tool-result")
    watched = msgspec.structs.replace(hook, tools=("get_*", "refuse"))
    text = msgspec.json.encode(watched).decode()
    changed = {**files(), "hooks/tool-result.yaml": replace(
        files()["hooks/tool-result.yaml"], data=text.encode())}  # fmt: skip
    made = augment(changed, only("tool_definitions", "rename"), 2)
    patterns = next(h for h in made.state.hooks if h.name == "tool-result").tools
    named = {new for old, new in made.map.tools.items() if old.startswith("get_")}
    assert {*named, made.map.tools["refuse"]} <= set(patterns)
    assert "refuse" not in patterns


def test_what_a_check_supposes_of_refuse_is_said_once_it_is_renamed():
    made = augment(files(), only("tool_definitions", "rename"), 4)
    malformed = next(h for h in made.state.hooks if h.name == "malformed-output")
    assert malformed.checks[0].with_ == {"allow_empty_after": [made.map.tools["refuse"]]}


def test_numbers_move_within_their_ranges_and_only_there():
    seen = set()
    for seed in range(12):
        made = augment(files(), only("system_prompt", "numbers"), seed)
        for name, pipeline in made.state.pipelines.items():
            for key, now in pipeline.constraints.items():
                was = base().pipelines[name].constraints[key]
                assert (now.range, now.unit) == (was.range, was.unit)
                assert now.range[0] <= now.value <= now.range[1]
                if now != was:
                    assert made.map.constraints[name][key] == now.value
                    seen.add((key, now.value))
    assert len(seen) > 12


def test_user_blocks_stay_last_and_lists_that_refer_to_themselves_keep_their_order():
    orders = set()
    for seed in range(6):
        made = augment(files(), only("system_prompt"), seed)
        blocks = [b.name for b in made.state.pipelines["default"].blocks]
        orders.add(tuple(blocks))
        assert blocks[-2:] == ["situation", "comments"]
        text = made.files["prompts/blocks/base.md"].data.decode()
        at = [text.index(w) for w in ("A link number in", "Without a number", "If none of this")]
        assert at == sorted(at)
        assert text.index("1. Read the comments") < text.index("2. Load at least")
        below = "FAQ entries below" in made.files["prompts/blocks/boundaries.md"].data.decode()
        shipped = [b.name for b in base().pipelines["default"].blocks]
        assert not below or blocks == shipped
    assert len(orders) > 3


def test_skills_are_masked_only_where_it_is_known_what_is_needed():
    assert augment(files(), FULL, 1).map.masked_skills == ()
    item = next(i for i in dev_items() if i.expect.skills == ("item-qa",))
    masked = [augment(files(), only("skill_identifiers"), s, items=(item,)) for s in range(6)]
    assert any(m.map.masked_skills for m in masked)
    for made in masked:
        assert made.map.items == (item.id,)
        assert "item-qa" not in made.map.masked_skills
        gone = set(made.map.masked_skills)
        assert not gone & {s.name for s in made.state.skills}
        assert any(s.kind == "reply" for s in made.state.skills)


def test_added_skills_are_there_and_are_nobodys_expectation():
    made = augment(files(), only("skill_identifiers", "plausible", "noise"), 3)
    assert len(made.map.added_skills) == 6
    assert set(made.map.added_skills) <= {s.name for s in made.state.skills}
    assert not made.map.skills


def test_a_recipe_that_asks_for_nothing_changes_nothing():
    made = augment(files(), Recipe(dimensions={}), 1)
    assert (made.state.id, made.map.dimensions) == (base().id, ())
    with pytest.raises(UsageError, match="a strength of 2"):
        augment(files(), only("skill_content", strength=2.0), 1)


def test_a_state_that_cannot_be_drawn_says_how_often_and_why(monkeypatch):
    def broken(draft, draw, dimension):
        pipeline = draft.text("prompts/pipeline.yaml").replace("value: 300", "value: 900")
        return draft.written({"prompts/pipeline.yaml": pipeline}).counted(numbers=1)

    monkeypatch.setitem(states.ORDER, "system_prompt", broken)
    recipe = msgspec.structs.replace(only("system_prompt"), attempts=3)
    with pytest.raises(NoState, match=r"3 draws were discarded \(3 × check\).*lies outside 160"):
        augment(files(), recipe, 1)


def test_a_gold_solution_passes_under_every_dimension_as_under_the_base():
    for number, gold in enumerate(golds(10)):
        name = DIMENSIONS[number % len(DIMENSIONS)]
        made = asyncio.run(
            augment_preserving(
                files(), base(), only(name), number, [gold], grounds(), items=(gold.item,)
            )
        )
        assert made.map.dimensions == (name,)
        faults = asyncio.run(gold_faults(made.state, made.map, base(), [gold], grounds()))
        assert faults == []


def pairs(count: int) -> int:
    """(Item, state) pairs drawn until the mapped gold passes, carried there and back; discards."""
    discards = 0
    chosen = golds(min(count, 400))
    for number in range(count):
        gold = chosen[number % len(chosen)]
        made = asyncio.run(
            augment_preserving(
                files(), base(), Recipe(), 1000 + number, [gold], grounds(), items=(gold.item,)
            )
        )
        discards += len(made.discards)
        renaming = Renaming(made.map)
        solution = renaming.solution(gold.solution)
        assert renaming.to_base().solution(solution) == gold.solution
        there = Gold(renaming.item(gold.item), solution)
        assert len(script(made.state, solution)) > len(gold.solution.rounds)
        back = renaming.to_base().item(there.item)
        assert (back.expect, back.assert_) == (gold.item.expect, gold.item.assert_)
    return discards


def test_mapped_gold_solutions_pass_every_hook_and_rubric():
    """60 pairs; `make accept` has 500."""
    assert pairs(60) < 30


@pytest.mark.accept
@pytest.mark.timeout(1200)
def test_500_mapped_gold_solutions_pass_every_hook_and_rubric():
    assert pairs(500) < 250


def test_a_call_under_a_wrong_name_finds_no_answer():
    gold = next(g for g in golds(40) if g.solution.rounds and g.solution.reply)
    made = augment(files(), only("tool_definitions", "rename"), 9)
    unmapped = asyncio.run(played(made.state, gold, {}, grounds().world))
    assert all(not c.result.ok for c in unmapped.calls if c.executor != "builtin")
    call = GivenResults({}).call(base().all_tools()[0], {}, gold.item.request)
    with pytest.raises(ToolError, match="was not called like this"):
        asyncio.run(call)


def test_a_limit_that_a_gold_solution_no_longer_keeps_is_found():
    gold = next(g for g in golds(40) if len(g.solution.reply) > 60)
    pipeline = files()["prompts/pipeline.yaml"]
    text = pipeline.data.decode().replace("value: 300", "value: 20").replace("[160", "[10")
    short = {**files(), "prompts/pipeline.yaml": replace(pipeline, data=text.encode())}
    state = loaded(short)[0]
    same = augment(files(), Recipe(dimensions={}), 1).map
    faults = asyncio.run(gold_faults(state, same, base(), [gold], grounds()))
    assert "reply-length" in str(faults[0])


WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "e"]), max_size=12)


@given(WORDS, WORDS)
@settings(max_examples=200)
def test_the_edit_distance_is_the_one_of_the_textbook(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (x != y))
    assert distance(a, b) == row[-1]


def test_how_much_changed_counts_a_renamed_file_as_the_same_one():
    made = augment(files(), only("tool_definitions", "rename"), 5)
    change = edits(made.changes[0])
    assert 0 < change.share < 0.2
    assert change.moves == {"rename": len(base().all_tools())}


def book_of(answers):
    draft = states._start(files(), Recipe(), 0, "s", (), Book())
    texts = texts_of(draft)

    async def write(system, text):
        return answers.get(text, text)

    return texts, write


def test_paraphrases_of_a_model_are_checked_by_rule_and_by_judge():
    rule = "Do not blame the viewer, the courier or the warehouse."
    other = "Do not take sides between viewers, platforms, stars or teams."
    third = 'Move first, then confirm. Say "coming up" only after the tool has answered `moved`.'
    answers = {
        rule: "Never put it on the viewer, on the courier or on the warehouse.",
        other: "Do not favour one viewer, platform, star or team over another one.",
        third: 'Move first and say "coming up" when it has moved.',
    }
    texts, write = book_of(answers)
    assert {rule, other, third} <= set(texts)

    async def judge(system, text):
        return "different" if "favour" in text else "same"

    book = asyncio.run(written(texts, frozenset(), write, judge))
    assert book.texts == {rule: (answers[rule],)}
    assert book.counts["refused: judge"] == 1
    assert book.counts["refused: ticked"] == 1
    assert book.counts["used"] == 1
    assert book.counts["refused: unchanged"] == len(texts) - 3
    recipe = msgspec.structs.replace(
        only("skill_content", "paraphrase"), paraphrase=Paraphrase(policy="x", share=1.0)
    )
    made = augment(files(), recipe, 1, book=book)
    shown = " ".join(made.files["skills/aftersale/SKILL.md"].data.decode().split())
    assert answers[rule] in shown
    assert rule not in shown


@cache
def renaming_of(seed):
    return Renaming(augment(files(), FULL, seed).map)


NAMES_OF = {
    "skills": st.sampled_from([s.name for s in base().skills] + ["release-notes"]),
    "tools": st.sampled_from([t.name for t in base().all_tools()] + ["somebody_elses"]),
}


@st.composite
def trajectories(draw):
    """Calls of any tool with arguments of its own and others, skills to load among them."""
    calls = []
    for number in range(draw(st.integers(0, 4))):
        name = draw(NAMES_OF["tools"])
        tool = next((t for t in base().all_tools() if t.name == name), None)
        keys = [*(tool.input_schema.get("properties", {}) if tool else ()), "unknown"]
        values = NAMES_OF["skills"] if name == "load_skill" else st.integers() | st.text(max_size=5)
        given_ = draw(st.dictionaries(st.sampled_from(keys), values, max_size=3))
        ascii_ = draw(st.booleans())
        raw = json.dumps(given_, ensure_ascii=ascii_) if draw(st.booleans()) else "{half"
        structured = {"skill": draw(NAMES_OF["skills"])} if name == "load_skill" else None
        calls.append(
            ToolCall(
                id=str(number), name=name, arguments_raw=raw, arguments=given_,
                result=ToolResult(ok=True, content="", structured=structured),
            )
        )  # fmt: skip
    asked = tuple(RawToolCall(id=c.id, name=c.name, arguments=c.arguments_raw) for c in calls)
    hook = HookEvent(hook=draw(st.sampled_from([h.name for h in base().hooks])), event="request",
                     outcome="allow")  # fmt: skip
    step = Step(
        index=0, messages=(), reply=ChatReply(content="x", tool_calls=asked), calls=tuple(calls),
        hooks=(hook,),
    )  # fmt: skip
    return Trajectory(
        request_id="r",
        steps=(step,),
        hooks=(hook,),
        skills_loaded=tuple(draw(st.lists(NAMES_OF["skills"], max_size=3))),
        tools_offered=tuple(draw(st.lists(NAMES_OF["tools"], max_size=3))),
    )


@given(st.integers(0, 3), trajectories())
@settings(max_examples=150, deadline=None)
def test_a_drawn_map_composed_with_its_inverse_is_the_identity(seed, trajectory):
    renaming = renaming_of(seed)
    there = renaming.trajectory(trajectory)
    assert renaming.to_base().trajectory(there) == trajectory
    again = renaming.to_base().to_base().map
    for names in ("skills", "tools", "parameters", "hooks", "loader"):
        assert getattr(again, names) == getattr(renaming.map, names)
    known = {t.name for t in base().all_tools()}
    assert not {c.name for c in there.calls} & known, "every shipped tool was renamed"


def test_renamed_tools_still_run_in_the_sandbox_on_a_server_and_in_the_loop():
    made = augment(files(), only("tool_definitions", "rename", "parameters"), 3)
    renaming = Renaming(made.map)
    calls = [
        ("load_skill", {"skill": "general-discount"}),
        ("get_product_info_by_link_id", {"link_id": 1}),
        ("calculate_optimal_promotion", {"link_id": 1, "member": True}),
    ]
    asked = tuple(
        RawToolCall(
            id=str(n), name=renaming.tool(name),
            arguments=json.dumps(renaming.arguments(name, given_)),
        )
        for n, (name, given_) in enumerate(calls)
    )  # fmt: skip
    silence = RawToolCall(
        id="s",
        name=renaming.tool("refuse"),
        arguments=json.dumps(renaming.arguments("refuse", {"reason": "politics"})),
    )
    policy = ScriptedPolicy([ChatReply(tool_calls=asked), ChatReply(tool_calls=(silence,))])
    item = next(i for i in dev_items() if i.expect.facts)

    async def run():
        executors = open_executors(made.state, oracle().world, catalogue=EVALSETS / "catalogue")
        try:
            agent = Agent(
                state=made.state, policy=policy, executors=executors, world=oracle().world
            )
            return await rollout(item.request, agent, request_id="r")
        finally:
            for executor in executors.values():
                await executor.close()

    trajectory = asyncio.run(run())
    assert [(c.result.ok, c.executor) for c in trajectory.calls] == [
        (True, "builtin"), (True, "sandbox"), (True, "mcp"), (True, "builtin"),
    ]  # fmt: skip
    assert trajectory.calls[2].result.structured["member"] is True
    assert trajectory.calls[3].result.structured["reason"] == "politics"
    assert trajectory.skills_loaded == ("general-discount",)
    back = renaming.to_base().trajectory(trajectory)
    assert [(c.name, c.arguments) for c in back.calls[:3]] == calls


def test_dimensions_have_the_settings_a_recipe_gives_them():
    half = Recipe(dimensions={"skill_identifiers": Dimension(strength=0.5, moves=("rename",))})
    made = augment(files(), half, 2)
    assert 0 < len(made.map.skills) < len(base().skills)
    assert Path("skills/item-qa/SKILL.md").as_posix() in files()
    skipped = augment(files(), msgspec.structs.replace(FULL, skip=1.0), 2)
    assert skipped.map.dimensions == ()
