"""Robustness sets: built from seeds, solved before they are kept, scored by their rubrics."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from faulty_endpoint import serving

from harness_cli.errors import BadFile, UnknownName
from harness_cli.evaluation.agents import for_item, open_executors
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import findings, load_evalset
from harness_cli.evaluation.expansion import Author
from harness_cli.evaluation.finding import find_item
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.report import title
from harness_cli.evaluation.rubrics import assertion_scores
from harness_cli.evaluation.synthesis import synthesise
from harness_cli.harness.load import load_state
from harness_cli.judges.assertions import check_assertions
from harness_cli.loop.scaffold import make_project as init
from harness_cli.models.open import open_policy
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.config import PolicyConfig
from harness_cli.records.gates import Gate
from harness_cli.records.item import Assertion
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import AssertionResult
from harness_cli.release.candidate import evidence_of
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gates.regression import check
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.robustness.build import SEED, SIZES
from harness_cli.simulator.robustness.seeds import read_seeds
from harness_cli.simulator.robustness.solvers import EMPTY_WORDS
from harness_cli.simulator.scenarios.files import split_digests, write_evalset
from harness_cli.store.project import Project

ROOT = Path(__file__).parents[2]
SETS = sorted(SIZES)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Project.find(init(tmp_path_factory.mktemp("shop") / "shop").root)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_the_committed_set_is_what_its_seeds_give_and_every_item_is_solved(shop, name):
    made = synthesise(shop, name, seed=SEED)
    committed = load_evalset(shop, name)
    assert split_digests(made.items, compact=True) == committed.header.digests
    assert len(made.items) == SIZES[name]
    assert committed.header.provenance.startswith("synthetic")
    assert committed.header.notes == made.remarks()
    assert 0 < made.discarded.total() < 0.05 * len(made.items)


@pytest.mark.parametrize("name", SETS)
def test_without_the_answer_no_rubric_of_a_committed_item_passes(shop, name):
    for item in load_evalset(shop, name).items:
        language = "zh" if "zh" in item.tags else "en"
        for reply in ("", EMPTY_WORDS[language], item.request.comments[0].text):
            results = check_assertions(item, Trajectory(request_id="r", reply=reply))
            assert not any(r.passed for r in results), (item.id, reply)


def test_the_sets_are_varied(shop):
    for name, item_kinds in (("tool_robustness", 30), ("prompt_robustness", 30)):
        items = list(load_evalset(shop, name).items)
        seeds = Counter(t for i in items for t in i.tags if t.startswith("seed:"))
        assert len(seeds) >= item_kinds
        assert 0.35 < sum("zh" in i.tags for i in items) / len(items) < 0.45
        asked = Counter((i.request.comments[0].text, str(i.tool_returns)) for i in items)
        assert max(asked.values()) <= 2


def test_the_same_seed_gives_the_same_digest_and_another_does_not(shop):
    def digest(seed):
        return split_digests(synthesise(shop, "prompt_robustness", seed=seed, count=6).items)

    assert digest(7) == digest(7) != digest(8)


def test_no_set_of_another_name_is_built(shop):
    with pytest.raises(UnknownName, match="tool_robustnes"):
        synthesise(shop, "tool_robustnes", seed=1)


def run_of(shop, item, *said):
    state = load_state(shop)
    world = load_evalset(shop, "tool_robustness").world
    executors = open_executors(state, world, catalogue=shop.evalsets / "catalogue")
    policy = ScriptedPolicy(said)
    agent = for_item(Agent(state=state, policy=policy, executors=executors, world=world), item)
    done = asyncio.run(rollout(item.request, agent, request_id="r", item_id=item.id))
    return policy, done


def calls(*named):
    from harness_cli.records.chat import ChatReply, RawToolCall

    return ChatReply(
        tool_calls=tuple(
            RawToolCall(id=f"c{n}", name=name, arguments=json.dumps(given))
            for n, (name, given) in enumerate(named)
        ),
        finish_reason="tool_calls",
    )


def test_overlay_tools_instructions_and_returns_drive_the_run(shop):
    item = load_evalset(shop, "prompt_robustness").item("pr-0005")
    wanted = item.expect.tools[0].name
    given = {"viewer": item.request.comments[0].viewer}
    opening = calls(("load_skill", {"name": "item-qa"}), (wanted, given))
    policy, done = run_of(shop, item, opening, "Hello there.", "Hello there.")
    offered = [t["function"]["name"] for t in policy.requests[0].tools]
    assert {t["name"] for t in item.overlay.tools} < set(offered)
    told = "\n".join(str(m["content"]) for m in policy.requests[0].messages)
    assert all(rule in told for rule in item.overlay.instructions)
    call = next(c for c in done.calls if c.name == wanted)
    assert call.result.ok
    assert json.loads(call.result.content) == item.tool_returns[wanted]
    assert call.executor == "returns"


def test_a_call_of_an_overlay_tool_is_held_against_its_schema(shop):
    item = load_evalset(shop, "prompt_robustness").item("pr-0005")
    wanted = item.expect.tools[0].name
    opening = calls(("load_skill", {"name": "item-qa"}), (wanted, {}))
    _, done = run_of(shop, item, opening, "Hello there.", "Hello there.")
    assert [c.result.error for c in done.calls if c.name == wanted] == ["invalid_arguments"]


def test_a_return_may_be_text_or_a_typed_failure_also_of_a_tool_of_the_harness(shop):
    item = load_evalset(shop, "prompt_robustness").item("pr-0005")
    wanted = item.expect.tools[0].name
    failed = {"ok": False, "error": "timeout", "content": "slow"}
    item = msgspec.structs.replace(
        item, tool_returns={**item.tool_returns, wanted: "plain words", "get_room_status": failed}
    )
    given = {"viewer": item.request.comments[0].viewer}
    opening = calls(("load_skill", {"name": "item-qa"}), (wanted, given), ("get_room_status", {}))
    _, done = run_of(shop, item, opening, "Hello there.", "Hello there.")
    got = {c.name: c.result for c in done.calls}
    assert (got[wanted].ok, got[wanted].content) == (True, "plain words")
    assert (got["get_room_status"].ok, got["get_room_status"].error) == (False, "timeout")


RUBRICS = tuple(Assertion(type="contains", value=v, metric=m) for v, m in ("aA", "bA", "cB"))


@pytest.mark.parametrize(
    ("passed", "scores"),
    [
        ((True, True, True), {"A": 1.0, "B": 1.0, "avg": 1.0}),
        ((True, False, False), {"A": 0.5, "B": 0.0, "avg": 1 / 3}),
        ((True, None, True), {"A": None, "B": 1.0, "avg": None}),
    ],
)
def test_avg_is_the_share_of_rubrics_and_an_open_one_leaves_it_open(passed, scores):
    results = [AssertionResult(type="contains", passed=p) for p in passed]
    assert assertion_scores(RUBRICS, results) == pytest.approx(scores)


class Writer:
    """A loopback policy: rewrites comments, calls every fifth item inconsistent, once no JSON."""

    def __init__(self):
        self.asked = 0

    async def handle(self, request):
        body = await request.json()
        system, data = (m["content"] for m in body["messages"])
        self.asked += 1
        if 'Answer with one JSON object: {"comment"' in system:
            words = "so, " + json.loads(data)["comment"]
            text = "no idea" if self.asked == 1 else json.dumps({"comment": words})
        else:
            text = "```json\n" + json.dumps({"consistent": self.asked % 5 != 0}) + "\n```"
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"model": "m", "choices": [choice]})


def test_a_policy_that_writes_a_set_is_named_and_gets_no_headline_on_it(tmp_path):
    project = Project.find(init(tmp_path / "shop").root)
    with serving(Writer()) as url:
        config = PolicyConfig(kind="openai", model="m", base_url=url, stream=False)
        policy = open_policy("writer", config, root=project.root)
        made = synthesise(project, "tool_robustness", seed=3, count=12, author=Author(policy))
    assert made.header.filtered_by == (policy.id,)
    assert policy.id in made.header.provenance
    assert made.discarded["judged inconsistent"] >= 1
    assert made.discarded["the policy's answer could not be read"] == 1
    assert all(i.request.comments[0].text.startswith("so, ") for i in made.items)

    header = msgspec.structs.replace(made.header, name="written", filtered_by=("builtin@old",))
    write_evalset(project.evalsets / "written", header, made.items, note="n", compact=True)
    asked = EvalOptions(evalset="written", policy="builtin", limit=2)
    outcome = asyncio.run(evaluate(project, asked))
    assert outcome.run.config().excluded == "`written` was filtered by builtin@old"
    assert "NO HEADLINE" in title(outcome.report)
    gate = Gate(name="robust", kind="regression", evalset="written", minimum_n=2)
    verdict = check(gate, Facts(runs={"robust": evidence_of(outcome.run)}))
    assert verdict.outcome == "INCONCLUSIVE"
    assert "filtered by builtin@old" in verdict.summary


def test_others_keep_their_headline_on_a_filtered_set(shop):
    from harness_cli.evaluation.plan import exclusion

    header = load_evalset(shop, "tool_robustness").header
    assert exclusion(header, "builtin", "builtin@1") is None
    filtered = msgspec.structs.replace(header, filtered_by=("flash@abc",))
    assert exclusion(filtered, "builtin", "builtin@1") is None
    assert exclusion(filtered, "flash", "flash@new") is not None


def test_a_rubric_that_names_an_unknown_tool_is_refused_with_its_line(tmp_path):
    project = Project.find(init(tmp_path / "shop").root)
    path = project.evalsets / "tool_robustness" / "items.jsonl"
    lines = path.read_text().splitlines()
    item = json.loads(lines[4])
    rubric = next(a for a in item["assert"] if a.get("metric") == "tc")
    rubric["value"] = "no_such_tool"
    lines[4] = json.dumps(item)
    path.write_text("\n".join(lines) + "\n")
    header = project.evalsets / "tool_robustness" / "evalset.yaml"
    header.write_text(header.read_text().partition("digests:")[0])
    said = "items.jsonl:5: a rubric names the unknown tool `no_such_tool`"
    assert any(said in finding for finding in findings(project, "tool_robustness"))
    with pytest.raises(BadFile, match=r"items\.jsonl:5: a rubric names the unknown tool"):
        asyncio.run(evaluate(project, EvalOptions(evalset="tool_robustness", limit=1)))


def test_a_rubric_on_a_tool_that_the_harness_has_not_is_refused_whoever_wrote_the_item(tmp_path):
    """An item without tools of its own: left alone, it would fail whatever a policy did."""
    project = Project.find(init(tmp_path / "shop").root)
    folder = project.evalsets / "ours"
    folder.mkdir()
    (folder / "evalset.yaml").write_text("name: ours\nsplits: {dev: 1}\n")
    comment = [{"viewer": "v", "text": "hi"}]
    rubric = {"type": "trajectory:tool-used", "value": "get_price_list"}
    item = {"id": "o-1", "request": {"comments": comment}, "assert": [rubric]}
    (folder / "items.jsonl").write_text(json.dumps(item) + "\n")
    with pytest.raises(BadFile, match=r"items\.jsonl:1: a rubric names the unknown tool"):
        asyncio.run(evaluate(project, EvalOptions(evalset="ours")))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: coupon-wallet", "id: size-advice", "the id `size-advice` stands twice"),
        ("core: [count]", "core: [nothing]", "`coupon-wallet`: `nothing` is not drawn"),
        ("arguments: {viewer:", "arguments: {who:", "the tool has no parameter `who`"),
    ],
)
def test_seeds_that_do_not_fit_together_are_refused(tmp_path, old, new, said):
    folder = tmp_path / "robustness"
    folder.mkdir()
    for file in (ROOT / "evalsets" / "scenarios" / "robustness").iterdir():
        (folder / file.name).write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(BadFile, match=said):
        read_seeds(tmp_path)


def test_an_item_is_found_beside_calibration_sets_and_sets_under_states(shop):
    found, evalset = find_item(shop, "tr-0003")
    assert (found.id, evalset.header.name) == ("tr-0003", "tool_robustness")
    assert find_item(shop, "lsq-0001")[1].header.name == "live_stream_qa"
    with pytest.raises(UnknownName, match="lsq-1200") as caught:
        find_item(shop, "lsq-1200")
    assert "sealed splits are not searched" in caught.value.hint
