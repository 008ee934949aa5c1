"""Items under augmented harness states: expectations renamed one way, trajectories the other."""

import asyncio
import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import findings, load_evalset
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.seal import openings
from harness_cli.judges.assertions import check_assertion
from harness_cli.loop.scaffold import make_project as init
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Assertion, Expect, ExpectedTool, Item
from harness_cli.records.reader import dump_yaml
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Step, ToolCall, ToolResult, Trajectory
from harness_cli.store.project import Project

CARD, NEW_CARD = "get_product_info_by_link_id", "fetch_item_card"
MAP = AugmentationMap(
    state="renamed",
    folder="renamed",
    skills={"item-qa": "goods-answers"},
    tools={CARD: NEW_CARD},
    parameters={CARD: {"link_id": "position"}},
)
HEADER = {
    "schema": 1, "name": "variant", "items_of": "live_stream_qa", "states": "states",
    "splits": {"dev": 482},
}  # fmt: skip


def renamed_harness(source, target):
    """The shipped harness with one tool, one parameter and one skill under other names."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("judges", "failure_classes"))
    (target / f"tools/{CARD}.yaml").rename(target / f"tools/{NEW_CARD}.yaml")
    (target / "skills/item-qa").rename(target / "skills/goods-answers")
    for path in target.rglob("*"):
        if path.is_file() and path.suffix in (".md", ".yaml"):
            text = path.read_text()
            path.write_text(text.replace(CARD, NEW_CARD).replace("item-qa", "goods-answers"))
    tool = target / f"tools/{NEW_CARD}.yaml"
    taken, mark, given = tool.read_text().partition("outputSchema:")
    text = taken.replace("link_id", "position").replace("by_position", "by_link_id") + mark + given
    ours = f"harness.operation: {CARD}, harness.arguments: {{position: link_id}}"
    assert "harness.executor: sandbox}" in text
    tool.write_text(
        text.replace("harness.executor: sandbox}", f"harness.executor: sandbox, {ours}}}")
    )


@pytest.fixture
def project(tmp_path):
    project = Project.find(init(tmp_path / "shop").root)
    folder = project.evalsets / "variant"
    (folder / "states").mkdir(parents=True)
    (folder / "evalset.yaml").write_text(json.dumps(HEADER))
    return project


def with_state(project, given=MAP, name="renamed"):
    states = project.evalsets / "variant" / "states"
    if not (states / "renamed").exists():
        renamed_harness(project.harness, states / "renamed")
    import msgspec

    (states / f"{name}.yaml").write_text(dump_yaml(msgspec.to_builtins(given)))
    return project


def test_without_states_the_verb_says_what_is_missing(project):
    with pytest.raises(UsageError, match="has no augmented states yet") as caught:
        asyncio.run(evaluate(project, EvalOptions(evalset="variant")))
    assert "evalsets/README.md" in str(caught.value.hint)
    assert findings(project, "variant") == []


def test_the_same_work_under_other_names_gets_the_same_marks(project):
    """The embedded policy reads names from the prompt; where it does the same, it is marked so."""
    with_state(project)
    variant = load_evalset(project, "variant")
    assert {item.state for item in variant.items} == {"renamed"}
    ids = tuple(i.id for i in variant.items if NEW_CARD in {t.name for t in i.expect.tools})[:6]
    runs = {}
    for name in ("live_stream_qa", "variant"):
        asked = EvalOptions(evalset=name, split="dev", only=ids, policy="builtin")
        runs[name] = {r.item_id: r for r in asyncio.run(evaluate(project, asked)).run.results()}
    renaming, alike = Renaming(MAP), 0
    for item in ids:
        base, other = runs["live_stream_qa"][item], runs["variant"][item]
        if tuple(renaming.tool(t) for t in base.tools_called) == other.tools_called:
            alike += 1
            assert (other.scores, other.state) == (base.scores, base.state), item
            assert other.skills_loaded == tuple(renaming.skill(s) for s in base.skills_loaded)
    assert alike >= 3
    called = {t for r in runs["variant"].values() for t in r.tools_called}
    assert NEW_CARD in called
    assert CARD not in called


ITEM = Item(
    id="i",
    request=Request(),
    expect=Expect(
        skills=("item-qa", "greet"),
        tools=(ExpectedTool(name=CARD, arguments={"link_id": 3}),),
        order=("get_faq", CARD),
    ),
    assert_=(
        Assertion(type="trajectory:tool-used", value=CARD),
        Assertion(type="trajectory:tool-used", value=[CARD, {"name": "get_faq", "max": 1}]),
        Assertion(type="trajectory:tool-args-match", value={"name": CARD, "args": {"link_id": 3}}),
        Assertion(type="trajectory:tool-sequence", value={"steps": ["get_faq", CARD]}),
        Assertion(type="tool-call-f1", value=f"get_faq, {CARD}"),
        Assertion(type="assert-set", assert_=(Assertion(type="skill-used", value="item-qa"),)),
        Assertion(type="not-contains", value=CARD),
    ),
    tool_returns={CARD: {"price": 9}},
)


def played(card, position, skill):
    calls = [("get_faq", {}), (card, {position: 3})]
    made = tuple(
        ToolCall(
            id=str(n), name=name, arguments_raw="{}", arguments=given,
            result=ToolResult(ok=True, content=""),
        )
        for n, (name, given) in enumerate(calls)
    )  # fmt: skip
    step = Step(index=0, messages=(), reply=ChatReply(content="ok"), calls=made)
    return Trajectory(request_id="r", steps=(step,), reply="ok", skills_loaded=(skill,))


def test_expectations_go_forwards_and_back():
    renaming = Renaming(MAP)
    there = renaming.item(ITEM)
    assert there.state == "renamed"
    assert there.expect.skills == ("goods-answers", "greet")
    assert there.expect.tools == (ExpectedTool(name=NEW_CARD, arguments={"position": 3}),)
    assert there.expect.order == ("get_faq", NEW_CARD)
    assert list(there.tool_returns) == [NEW_CARD]
    assert there.assert_[-1].value == CARD, "words of a reply are no names"
    in_state = played(NEW_CARD, "position", "goods-answers")
    assert all(check_assertion(a, in_state).passed for a in there.assert_)
    base = played(CARD, "link_id", "item-qa")
    assert not check_assertion(there.assert_[0], base).passed
    back = renaming.to_base()
    assert back.trajectory(in_state) == base
    assert back.item(there).expect == ITEM.expect


def test_items_are_dealt_out_the_same_way_every_time(project):
    for name in ("renamed", "second"):
        given = AugmentationMap(state=name, folder="renamed", tools=MAP.tools)
        with_state(project, given, name)
    one, two = ([i.state for i in load_evalset(project, "variant").items] for _ in range(2))
    assert one == two
    assert 150 < one.count("renamed") < 332


def test_another_map_is_another_digest(project):
    with_state(project)
    before = load_evalset(project, "variant").digest
    with_state(project, AugmentationMap(state="renamed", folder="renamed"))
    assert load_evalset(project, "variant").digest != before


def test_the_base_split_stays_sealed(project):
    with_state(project)
    folder = project.evalsets / "variant"
    header = {**HEADER, "splits": {"test": 978}}
    (folder / "evalset.yaml").write_text(json.dumps(header))
    with pytest.raises(UsageError, match="sealed"):
        load_evalset(project, "variant")
    next(iter(load_evalset(project, "variant", reason="a look").items))
    assert [o.why for o in openings(project.evalsets / "seal.log.jsonl")] == ["a look"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": "other", "folder": "renamed"}, "the state `other` is not its file's name"),
        ({"state": "renamed"}, "a state is a `folder` or a `tree`"),
        ({"state": "renamed", "folder": "nowhere"}, "there is no folder `nowhere`"),
        (
            {"state": "renamed", "folder": "renamed", "tools": {"a": "x", "b": "x"}},
            "two tools are called `x`",
        ),
        ({"state": "renamed", "folder": "renamed", "tool": {}}, "did you mean `tools`"),
    ],
)
def test_a_map_that_cannot_be_meant_is_refused(project, given, said):
    with_state(project)
    path = project.evalsets / "variant" / "states" / "renamed.yaml"
    path.write_text(json.dumps({"schema": 1, **given}))
    with pytest.raises(BadFile) as caught:
        load_evalset(project, "variant")
    assert said in f"{caught.value} {caught.value.hint}"
    assert findings(project, "variant")


def test_maps_that_list_items_list_all_of_them(project):
    with_state(project, AugmentationMap(state="renamed", folder="renamed", items=("lsq-0001",)))
    with pytest.raises(BadFile, match="is listed by no map"):
        load_evalset(project, "variant")


NAMES = st.text("abcdefgh", min_size=1, max_size=3)


@st.composite
def renamings(draw):
    """A map that is one to one and calls nothing by a name that the base uses elsewhere."""

    def renamed(kind):
        base = draw(st.sets(NAMES, max_size=4))
        return {name: f"{kind}-{name}" for name in sorted(base)}

    tools = renamed("t")
    parameters = {tool: renamed("p") for tool in tools}
    return AugmentationMap(state="s", skills=renamed("k"), tools=tools, parameters=parameters)


@given(renamings(), st.lists(NAMES, max_size=4), st.dictionaries(NAMES, st.integers(), max_size=3))
def test_there_and_back_again_nothing_changed(given_map, names, arguments):
    renaming = Renaming(given_map)
    back = renaming.to_base()
    item = Item(
        id="i",
        request=Request(),
        expect=Expect(
            skills=tuple(names),
            order=tuple(names),
            tools=tuple(ExpectedTool(name=n, arguments=arguments) for n in names),
        ),
        assert_=tuple(
            Assertion(type="trajectory:tool-args-match", value={"name": n, "args": arguments})
            for n in names
        ),
    )
    there = renaming.item(item)
    again = back.item(there)
    assert (again.expect, again.assert_) == (item.expect, item.assert_)
    calls = tuple(
        ToolCall(
            id=n,
            name=n,
            arguments_raw="",
            arguments=arguments,
            result=ToolResult(ok=True, content=""),
        )
        for n in names
    )
    step = Step(index=0, messages=(), reply=ChatReply(content="x"), calls=calls)
    done = Trajectory(request_id="r", steps=(step,), skills_loaded=tuple(names))
    assert back.trajectory(renaming.trajectory(done)) == done
