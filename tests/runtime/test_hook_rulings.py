"""What follows from a hook: each action at each event, order, retries, failed hooks."""

import json
import stat
import sys

import pytest

from harness_cli.models.scripted import tool_reply
from harness_cli.records.config import Limits
from harness_cli.records.harness import Check, Hook
from harness_cli.records.trajectory import Route, StopReason, ToolErrorKind
from harness_cli.runtime.hooks.compiled import compile_hooks

LOOK = ("get_product", {"link_id": 1})
MOVE = ("move_product", {"link_id": 1})
BAD = {"patterns": ["bad"]}


def outcomes(done):
    events = [*done.hooks, *(h for s in done.steps for h in s.hooks)]
    return [(h.hook, h.event, h.outcome) for h in events]


def test_a_failed_stop_gate_starts_another_round_with_the_reason(stage):
    gate = stage.hook(
        "gate", "before_reply", "forbid_pattern", settings=BAD, message="No: {reason}"
    )
    done = stage.run(["bad words", "good words"], gate)
    assert (done.reply, done.stop) == ("good words", StopReason.COMPLETED)
    told = stage.policy.requests[1].messages[-2:]
    assert told[0] == {"role": "assistant", "content": "bad words"}
    assert told[1] == {"role": "user", "content": "[harness] No: the reply contains `bad`"}
    assert outcomes(done) == [("gate", "before_reply", "retry")]
    assert done.steps[0].hooks[0].check == "forbid_pattern"
    assert done.steps[0].hooks[0].step == 0


def test_all_gates_that_object_are_told_in_one_round(stage):
    one = stage.hook("a", "before_reply", "forbid_pattern", settings=BAD, message="first")
    two = stage.hook("b", "before_reply", "length", settings={"max_chars": 4}, message="second")
    stage.run(["bad words", "fine"], one, two)
    assert stage.policy.requests[1].messages[-1]["content"] == "[harness] first\nsecond"


def test_spent_retries_end_in_the_compact_fallback(stage):
    gate = stage.hook("gate", "before_reply", "forbid_pattern", settings=BAD, max_retries=1)
    done = stage.run(["bad 1", "bad 2", "Short and good."], gate)
    assert (done.stop, done.route) == (StopReason.GATE_FAILED, Route.COMPACT)
    assert done.reply == "Short and good."
    assert [o for _, _, o in outcomes(done)] == ["retry", "fallback"]
    assert "after 1 retry" in done.steps[1].hooks[0].reason


@pytest.mark.parametrize(
    ("channel", "route", "reply"),
    [
        ("public", Route.SUPPRESSED, ""),
        ("private", Route.CONSERVATIVE, "Let me check that."),
    ],
)
def test_the_compact_text_passes_the_same_gate_or_is_not_said(stage, channel, route, reply):
    gate = stage.hook("gate", "before_reply", "forbid_pattern", settings=BAD, max_retries=0)
    done = stage.run(["bad 1", "bad 2"], gate, request=stage.ask_for(channel=channel))
    assert (done.route, done.reply) == (route, reply)
    assert done.stop is StopReason.GATE_FAILED


@pytest.mark.parametrize(
    ("action", "channel", "route", "reply", "asked"),
    [
        ("deny", "public", Route.SUPPRESSED, "", 1),
        ("deny", "private", Route.CONSERVATIVE, "Let me check that.", 1),
        ("fallback", "public", Route.COMPACT, "Short.", 2),
        ("suppress", "private", Route.SUPPRESSED, "", 1),
        ("allow", "public", Route.NORMAL, "bad. good.", 1),
        ("rewrite", "public", Route.NORMAL, "good.", 1),
    ],
)
def test_each_action_of_the_stop_gate(stage, action, channel, route, reply, asked):
    gate = stage.hook("gate", "before_reply", "forbid_pattern", action, settings=BAD)
    request = stage.ask_for(channel=channel)
    done = stage.run(["bad. good.", "Short."], gate, request=request)
    assert (done.route, done.reply) == (route, reply)
    assert len(stage.policy.requests) == asked
    assert outcomes(done)[0] == ("gate", "before_reply", action)


@pytest.mark.parametrize("action", ["deny", "suppress", "retry"])
def test_a_request_that_is_refused_never_reaches_the_policy(stage, action):
    gate = stage.hook("gate", "request", "request_valid", action, settings={"max_chars": 3})
    done = stage.run([], gate)
    assert stage.policy.requests == []
    assert done.steps == ()
    assert (done.route, done.stop) == (Route.SUPPRESSED, StopReason.GATE_FAILED)
    assert outcomes(done)[0][:2] == ("gate", "request")


def test_a_request_can_be_rewritten(stage):
    mask = stage.hook(
        "mask",
        "request",
        "forbid_pattern",
        "rewrite",
        settings={"patterns": [r"\d{11}"], "on": "comment"},
    )
    stage.run(["Hi."], mask, request=stage.ask_for("call 13800000000"))
    assert "13800000000" not in json.dumps(stage.policy.requests[0].messages)


def test_a_call_that_a_hook_denies_is_a_typed_observation(stage):
    gate = stage.hook(
        "gate",
        "before_tool",
        "forbid_pattern",
        "deny",
        settings={"patterns": ["secret"], "on": "arguments"},
        tools=("get_stock",),
        message="Not: {reason}",
    )
    done = stage.run([tool_reply(("get_stock", {"product": "secret"})), "Hm."], gate)
    assert done.calls[0].result.error is ToolErrorKind.DENIED
    assert done.calls[0].result.content == "Not: the arguments contains `secret`"
    assert stage.executor.calls == []


def test_a_hook_for_other_tools_is_not_asked(stage):
    gate = stage.hook(
        "gate",
        "before_tool",
        "forbid_pattern",
        "deny",
        settings={"patterns": ["."], "on": "arguments"},
        tools=("calculate_*",),
    )
    done = stage.run([tool_reply(LOOK), "89."], gate)
    assert done.calls[0].result.ok
    assert outcomes(done) == []


def test_the_arguments_hook_names_its_check_and_the_error_is_typed(stage):
    gate = stage.hook("args", "before_tool", "arguments_schema", "deny")
    done = stage.run([tool_reply(("get_product", {"link_id": "x"})), "Hm."], gate)
    assert done.calls[0].result.error is ToolErrorKind.INVALID_ARGUMENTS
    assert outcomes(done) == [("args", "before_tool", "deny")]


def test_a_result_that_a_hook_refuses_becomes_a_malformed_one(stage):
    gate = stage.hook("shape", "after_tool", "tool_result_schema", "deny")
    tool = stage.tool("get_product", "link_id", types={"link_id": "integer"})
    import msgspec

    tool = msgspec.structs.replace(tool, output_schema={"required": ["cost"]})
    done = stage.run([tool_reply(LOOK), "Hm."], state=stage.state(gate, tools=(tool,)))
    assert done.calls[0].result.error is ToolErrorKind.MALFORMED
    assert "cost" in done.calls[0].result.content


def test_parallel_changes_are_refused_and_the_rest_of_the_answer_runs(stage):
    gate = stage.hook("one", "after_model", "parallel_mutations", "deny")
    done = stage.run(
        [tool_reply(MOVE, LOOK, ("move_product", {"link_id": 2})), "Moved."],
        gate,
        answers={"move_product": {"moved": 1}, "get_product": {"price": 89}},
    )
    assert [c.result.ok for c in done.calls] == [True, True, False]
    assert done.calls[2].result.error is ToolErrorKind.DENIED


def test_a_repeated_call_is_refused_and_a_loop_ends(stage):
    repeat = stage.hook("repeat", "after_model", "repeat_call", "deny", settings={"limit": 1})
    loop = stage.hook(
        "loop", "after_model", "loop_stop", "fallback", settings={"limit": 3}, priority=200
    )
    done = stage.run([tool_reply(LOOK)] * 3 + ["Short."], repeat, loop)
    assert len(stage.executor.calls) == 1
    assert done.calls[1].result.error is ToolErrorKind.DENIED
    assert (done.stop, done.route) == (StopReason.LOOP, Route.COMPACT)
    assert len(done.calls) == 3


def test_a_malformed_answer_gets_another_try(stage):
    gate = stage.hook("form", "after_model", "malformed_output")
    done = stage.run(["<tool_call>{}</tool_call>", "89 yuan."], gate)
    assert done.reply == "89 yuan."
    assert stage.policy.requests[1].messages[-1]["content"].startswith("[harness] ")


def test_what_the_policy_is_about_to_be_asked_can_be_stopped(stage):
    gate = stage.hook(
        "gate",
        "before_model",
        "forbid_pattern",
        "suppress",
        settings={"patterns": ["link"], "on": "comment"},
    )
    done = stage.run([], gate, request=stage.ask_for("link?"))
    assert (done.reply, done.route) == ("", Route.SUPPRESSED)
    assert outcomes(done) == [("gate", "before_model", "suppress")]


def test_a_reply_can_be_withheld_at_the_very_last(stage):
    gate = stage.hook("last", "after_reply", "forbid_pattern", "suppress", settings=BAD)
    done = stage.run(["bad"], gate)
    assert (done.reply, done.route, done.stop) == ("", Route.SUPPRESSED, StopReason.COMPLETED)


def test_other_actions_after_the_reply_are_recorded_and_change_nothing(stage):
    gate = stage.hook("last", "after_reply", "forbid_pattern", "deny", settings=BAD)
    done = stage.run(["bad"], gate)
    assert done.reply == "bad"
    assert outcomes(done) == [("last", "after_reply", "deny")]


def test_a_hook_with_a_condition_runs_only_where_it_holds(stage):
    gate = stage.hook(
        "gate", "before_reply", "forbid_pattern", "deny", settings=BAD, when="channel == private"
    )
    assert stage.run(["bad"], gate).reply == "bad"
    assert stage.run(["bad"], gate, request=stage.ask_for(channel="private")).reply != "bad"


@pytest.mark.parametrize(
    "broken",
    [
        {"checks": (Check(check="no_such"),)},
        {"checks": (Check(check="forbid_pattern", with_={"patterns": ["("]}),)},
        {},
        {"checks": (Check(check="malformed_output"),), "when": "mood == good"},
    ],
)
@pytest.mark.parametrize("on_failure", ["closed", "open"])
def test_a_hook_that_cannot_decide_is_failed_and_on_failure_says_what_follows(
    stage, broken, on_failure
):
    gate = Hook(
        name="gate", event="before_reply", action="suppress", on_failure=on_failure, **broken
    )
    done = stage.run(["Hi."], gate)
    assert outcomes(done)[0] == ("gate", "before_reply", "failed")
    assert done.reply == ("Hi." if on_failure == "open" else "")


def test_hooks_run_by_priority_and_then_by_name():
    hooks = [
        Hook(name=n, event="before_reply", priority=p, checks=(Check(check="malformed_output"),))
        for n, p in (("b", 10), ("z", 1), ("a", 10))
    ]
    assert [r.hook.name for r in compile_hooks(hooks)["before_reply"]] == ["z", "a", "b"]


# Command hooks


def command(stage, body, event="before_reply", action="deny", **more):
    return stage.hook("cmd", event, action=action, command=("{python}", "-c", body), **more)


SAY = "import json,sys; given=json.load(sys.stdin); print(json.dumps({}))"


@pytest.mark.parametrize(
    ("decision", "reply", "outcome"),
    [
        ('{"decision": "allow"}', "Hi.", None),
        ('{"decision": "allow", "reason": "looked fine"}', "Hi.", "allow"),
        ('{"decision": "deny", "reason": "no"}', "", "deny"),
        ('{"decision": "suppress"}', "", "suppress"),
        ('{"decision": "rewrite", "reply": "Hello."}', "Hello.", "rewrite"),
        ('{"decision": "retry", "reason": "again"}', "Better.", "retry"),
    ],
)
def test_a_command_decides_by_its_json(stage, decision, reply, outcome):
    body = f"import sys; sys.stdin.read(); print('{decision}' if 'Better' not in sys.argv else '')"
    first = command(stage, body, max_retries=1)
    if outcome == "retry":
        body = (
            "import json,sys; g=json.load(sys.stdin); d='retry' if g['reply']=='Hi.' else 'allow';"
            "print(json.dumps({'decision': d, 'reason': '' if d == 'allow' else 'again'}))"
        )
        first = command(stage, body, max_retries=1)
    done = stage.run(["Hi.", "Better."], first)
    assert done.reply == reply
    assert [o for _, _, o in outcomes(done)] == ([outcome] if outcome else [])


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.exit(2)",
        "import sys; sys.exit(1)",
        "import sys; sys.exit(0)",
        "print('not-json')",
        "print('{}')",
        'print(\'{"decision": "yes"}\')',
        'print(\'{"decision": "rewrite"}\')',
        "print('[\"deny\"]')",
        'print(\'{"decision": "allow"}{"decision": "allow"}\')',
        "import sys; sys.stderr.write('denied'); sys.exit(2)",
    ],
)
@pytest.mark.parametrize("on_failure", ["closed", "open"])
def test_an_exit_code_or_bad_json_never_decides(stage, body, on_failure):
    gate = command(stage, body, on_failure=on_failure)
    done = stage.run(["Hi."], gate)
    assert [o for _, _, o in outcomes(done)] == ["failed"]
    assert done.reply == ("Hi." if on_failure == "open" else "")


def test_a_json_decision_counts_whatever_the_exit_code(stage):
    gate = command(stage, 'import sys; print(\'{"decision": "deny"}\'); sys.exit(3)')
    assert [o for _, _, o in outcomes(stage.run(["Hi."], gate))] == ["deny"]


@pytest.mark.parametrize("argv", [("no-such-program",), ("hooks/missing.py",)])
def test_a_command_that_does_not_start_is_a_failed_hook(stage, argv):
    gate = stage.hook("cmd", "before_reply", action="deny", command=argv)
    done = stage.run(["Hi."], gate)
    assert [o for _, _, o in outcomes(done)] == ["failed"]
    assert done.reply == ""


def test_a_command_sees_the_call_and_may_change_its_arguments_and_result(stage):
    before = command(
        stage,
        "import json,sys; g=json.load(sys.stdin); assert g['hook_event_name']=='before_tool';"
        "n = g['tool_input']['link_id'] + 1;"
        "print(json.dumps({'decision': 'rewrite', 'tool_input': {'link_id': n}}))",
        event="before_tool",
    )
    after = Hook(
        name="after",
        event="after_tool",
        command=(
            "{python}",
            "-c",
            "import json,sys; g=json.load(sys.stdin);"
            "print(json.dumps({'decision':'rewrite','tool_response': g['tool_name']+'!'}))",
        ),
    )
    done = stage.run([tool_reply(LOOK), "Hi."], before, after)
    assert stage.executor.calls == [("get_product", {"link_id": 2})]
    assert done.calls[0].arguments == {"link_id": 2}
    assert done.calls[0].result.content == "get_product!"


def test_rewritten_arguments_must_fit_the_schema_too(stage):
    body = 'print(\'{"decision": "rewrite", "tool_input": {"link_id": "x"}}\')'
    done = stage.run([tool_reply(LOOK), "Hi."], command(stage, body, event="before_tool"))
    assert done.calls[0].result.error is ToolErrorKind.INVALID_ARGUMENTS
    assert stage.executor.calls == []


def test_a_file_of_the_harness_is_run_from_its_content(stage):
    script = f'#!{sys.executable}\nprint(\'{{"decision": "suppress"}}\')\n'.encode()
    gate = stage.hook("cmd", "before_reply", command=("hooks/say.py",))
    state = stage.state(gate, files={"hooks/say.py": script, "skills/x/SKILL.md": b"x"})
    agent = stage.agent(["Hi."], state=state)
    assert stage.play(agent).route is Route.SUPPRESSED
    folder = agent.prepared.workshop.folder()
    assert (folder / "hooks/say.py").stat().st_mode & stat.S_IXUSR
    assert not (folder / "skills").exists()


def test_what_a_command_is_told(stage):
    body = (
        "import json,sys; g=json.load(sys.stdin);"
        "print(json.dumps({'decision':'deny','reason':','.join(sorted(g))}))"
    )
    done = stage.run(["Hi."], command(stage, body))
    assert outcomes(done) == [("cmd", "before_reply", "deny")]
    assert done.steps[0].hooks[0].reason == (
        "answer,calls,harness_id,hook_event_name,reply,request,session_id,skills_loaded"
    )


def test_a_slow_hook_has_its_own_shorter_bound(stage):
    gate = command(stage, "import time; time.sleep(30)", timeout_s=0.2)
    done = stage.run(["Hi."], gate, limits=Limits(hook_s=20))
    assert outcomes(done)[0][2] == "failed"
    assert "0.2 seconds" in done.steps[0].hooks[0].reason
