"""A model that proposes as an agent: look-ups by tools, one submission, everything checked."""

import asyncio
import json

import pytest
from small_shop import make_shop, run_shop
from test_evolve import evolve
from test_llm_proposer import EVIL, GOOD, PATH, ground

from harness_cli.errors import HarnessError
from harness_cli.evolution.propose.agent import propose_as_agent, proposer_state, task_of
from harness_cli.evolution.propose.memory import Rejection, content_signature, signature
from harness_cli.models.scripted import ScriptedPolicy, tool_reply
from harness_cli.records.config import PolicyConfig
from harness_cli.records.diagnosis import Edit

SCRIPTED = PolicyConfig(kind="scripted", script="s.yaml")


def calls(*named):
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in named]}


def spoken(reply):
    return tool_reply(*((c["name"], c["arguments"]) for c in reply["calls"]))


def submit(*edits):
    return calls(("submit_proposal", {"edits": list(edits)}))


def proposed(*replies, rejected=()):
    policy = ScriptedPolicy([r.get("text") or spoken(r) for r in replies])
    found = asyncio.run(propose_as_agent(policy, SCRIPTED, ground(), rejected=rejected))
    return policy, found


def results(policy, name):
    """What a tool answered, from the next request."""
    found = []
    for request in policy.requests:
        ids = {
            c["id"]: c["function"]["name"]
            for m in request.messages for c in m.get("tool_calls") or ()
        }  # fmt: skip
        found += [m["content"] for m in request.messages if ids.get(m.get("tool_call_id")) == name]
    return [json.loads(x) if x.startswith("{") else x for x in dict.fromkeys(found)]


def test_it_reads_cases_files_and_decisions_then_submits():
    old = Edit(id="old", module="skills/greet/SKILL.md", ops=(), rationale="r")
    said = Rejection(signature=signature(old), edit="old", module=old.module, fixes=1,
                     reason="too wide", by="ann")  # fmt: skip
    policy, found = proposed(
        calls(("load_skill", {"skill": "editing-rules"}), ("list_files", {}),
              ("past_decisions", {})),
        calls(("read_case", {"id": "r-01"}), ("read_file", {"path": PATH}),
              ("search_cases", {"words": "refund please"})),
        submit(GOOD),
        rejected=[said],
    )  # fmt: skip
    assert [e.id for e in found.edits] == ["returns"]
    assert results(policy, "past_decisions")[0]["rejected"][0]["reason"] == "too wide"
    (case,) = results(policy, "read_case")
    assert case["facts"][0]["fact"] == "wrong_skill:item-qa>aftersale"
    assert PATH in results(policy, "list_files")[0]["files"]
    assert "Orders that were placed." in results(policy, "read_file")[0]["text"]
    assert results(policy, "search_cases")[0]["found"] == 11


def test_what_is_not_there_is_a_typed_answer_and_no_way_out_of_the_harness():
    policy, _ = proposed(
        calls(("read_case", {"id": "p-0"}), ("read_file", {"path": "../gates.yaml"})),
        submit(),
    )
    (case,), (file,) = results(policy, "read_case"), results(policy, "read_file")
    assert "did not fail in this run" in json.dumps(case)
    assert "there is no text file" in json.dumps(file)


def test_a_submission_outside_its_schema_is_told_back():
    wrong = {**GOOD, "ops": [{"op": "chmod", "path": PATH}]}
    policy, found = proposed(submit(wrong), submit(GOOD))
    assert [e.id for e in found.edits] == ["returns"]
    assert "Not accepted" in policy.requests[1].messages[-1]["content"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"predicted_fixes": ["z-99"]}, "cites items that did not fail"),
        ({"classes": ["invented"]}, "cites classes that the diagnosis does not have"),
        ({"ops": [{"op": "write", "path": "../gates.yaml", "text": "x"}]}, "gates.yaml"),
        ({"ops": [{"op": "write", "path": "judges/final/x.md", "text": "x"}]}, "judges"),
        ({"ops": [{"op": "write", "path": "hooks/x.py", "text": "x"}]}, ""),
    ],
)
def test_what_it_submits_goes_through_the_sieve(change, why):
    _, found = proposed(submit({**GOOD, **change}))
    assert found.edits == ()
    assert why in found.dropped[0][1]


def test_a_rejected_idea_is_dropped_without_new_evidence():
    edit = Edit(id="returns", module=PATH, ops=(), rationale="r")
    known = [
        Rejection(signature=mark, edit="returns", module=PATH, fixes=2)
        for mark in (signature(edit), content_signature(edit))
    ]
    _, found = proposed(submit(GOOD), rejected=known)
    assert "rejected before" in found.dropped[0][1]


def test_a_final_text_that_is_the_json_counts_and_prose_does_not():
    _, found = proposed({"text": json.dumps({"edits": [GOOD]})})
    assert [e.id for e in found.edits] == ["returns"]
    with pytest.raises(HarnessError, match="no proposal was submitted"):
        proposed({"text": "I would edit the skill."})


def test_the_diagnosis_stands_between_marks_no_text_can_imitate():
    text = task_of(ground(), most=8)
    assert "<" not in text.split("begins\n", 1)[1].split("\ndiagnosis", 1)[0]
    assert EVIL not in text


def test_the_proposers_harness_is_its_own_and_sound():
    state = proposer_state()
    assert {t.name for t in state.tools} == {
        "list_files", "load_skill", "past_decisions", "read_case", "read_file", "search_cases",
        "submit_proposal",
    }  # fmt: skip


def test_edit_takes_the_agents_proposal_and_falls_back_to_one_prompt(tmp_path):
    project = make_shop(tmp_path)
    run_shop(project)
    good = {
        "id": "returns", "module": PATH, "rationale": "Return questions go elsewhere.",
        "predicted_fixes": ["returns-01"], "risks": "none",
        "ops": [{"op": "replace", "path": PATH, "search": "- Orders that were placed.",
                 "text": "- Orders that were placed.\n- Parcels that come back."}],
    }  # fmt: skip
    settings = (project.root / "harness.yaml").read_text()
    (project.root / "harness.yaml").write_text(
        settings + "  writer: {kind: scripted, script: writer.yaml}\n"
    )
    for n, replies in enumerate(
        ([submit(good)], [{"text": "Hm."}, {"text": json.dumps({"edits": [good]})}])
    ):
        (project.root / "writer.yaml").write_text(json.dumps({"schema": 1, "replies": replies}))
        words = ("edit", "--policy", "writer", "--plan-only", "-o", f"p{n}.yaml", "--json")
        made = json.loads(evolve(project, *words, code=0).stdout)
        assert [e["id"] for e in made["proposal"]["edits"]] == ["returns"]
        assert made["proposal"]["proposer"].startswith("writer")
