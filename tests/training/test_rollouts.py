"""Trajectories → rows: what was sampled, behind the context it was sampled in, token for token."""

import pytest

from harness_cli.errors import HarnessError, UsageError
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.trajectory import Step, StopReason, ToolCall, ToolResult, Trajectory
from harness_cli.training.rollouts import check_rollouts, rollout_of

POLICY = "student"


def ids(text):
    return tuple(text.encode())


def decode(tokens):
    return bytes(tokens).decode(errors="replace")


def answer(prompt, text, *, call=False, reasoning=None, policy=POLICY, **more):
    calls = (RawToolCall(id="c", name="look", arguments="{}"),) if call else ()
    given = {
        "content": None if call else text,
        "prompt_ids": ids(prompt),
        "token_ids": ids(text),
        "logprobs": tuple(-(i + 1) / 100 for i in range(len(ids(text)))),
    }
    return ChatReply(tool_calls=calls, reasoning=reasoning, policy=policy, **(given | more))


def trajectory(*replies, **more):
    steps = []
    for i, reply in enumerate(replies):
        done = ToolCall(
            id="c",
            name="look",
            arguments_raw="{}",
            arguments={},
            result=ToolResult(ok=True, content="7 yuan"),
        )
        steps.append(
            Step(
                index=i,
                messages=(),
                reply=reply,
                calls=(done,) if reply.tool_calls else (),
                fallback=reply.policy != POLICY,
            )
        )
    given = {"request_id": "r", "harness_id": "h", "policy_id": "student@1", "steps": tuple(steps)}
    return Trajectory(**(given | more))


def shown(row):
    """A row as text, the sampled tokens of each segment in brackets."""
    out, last = "", 0
    for token, segment in zip(row.input_ids, row.segment_ids, strict=True):
        if segment != last:
            out += ("" if last == 0 else "])"[last - 1]) + (
                "" if segment == 0 else "[("[segment - 1]
            )
        out += chr(token)
        last = segment
    return out + ("" if last == 0 else "])"[last - 1])


def test_an_append_only_conversation_is_one_row_with_both_segments():
    made = rollout_of(
        trajectory(answer("Q:", "<call>", call=True), answer("Q:<call>=7;A:", "seven")),
        POLICY,
        decode,
    )
    assert [shown(row) for row in made.rows] == ["Q:[<call>]=7;A:(seven)"]
    assert made.tokens == {"tool": 6, "reply": 5}
    assert made.forks == 0


def test_log_probabilities_stand_with_their_tokens():
    made = rollout_of(trajectory(answer("Q:", "ab")), POLICY, decode)
    assert made.rows[0].logprobs == [0.0, 0.0, -0.01, -0.02]


def test_a_prompt_that_rewrites_the_past_begins_a_new_row():
    """The template dropped the thinking of the first turn: what followed read another context."""
    made = rollout_of(
        trajectory(
            answer("Q:", "<think>x</think><call>", call=True, reasoning="x"),
            answer("Q:<call>=7;A:", "seven"),
        ),
        POLICY,
        decode,
    )
    assert [shown(row) for row in made.rows] == [
        "Q:[<think>x</think><call>]",
        "Q:<call>=7;A:(seven)",
    ]
    assert made.forks == 1
    assert made.cot == {"tool": len("<think>x</think>"), "reply": 0}
    assert sum(map(sum, (r.thought_ids for r in made.rows))) == len("<think>x</think>")


def test_every_sampled_token_stands_in_exactly_one_row():
    replies = [
        answer("Q:", "one", call=True),
        answer("other:", "two", call=True),
        answer("Q:one=1;", "three", call=True),  # goes on with the first row, not the second
        answer("other:two!", "four"),
    ]
    made = rollout_of(trajectory(*replies), POLICY, decode)
    assert [shown(row) for row in made.rows] == ["Q:[one]=1;[three]", "other:[two]!(four)"]
    sampled = sum(s > 0 for row in made.rows for s in row.segment_ids)
    assert sampled == sum(len(r.token_ids) for r in replies)


def test_a_text_that_retokenises_otherwise_is_taken_as_it_was_sampled():
    """The same text in other tokens in the next prompt: a fork, never a silent replacement."""
    made = rollout_of(
        trajectory(
            answer("Q:", "ab", call=True, token_ids=(300,), logprobs=(-0.5,)),
            answer("Q:ab;", "c"),
        ),
        POLICY,
        decode,
    )
    assert [row.input_ids for row in made.rows] == [[*ids("Q:"), 300], [*ids("Q:ab;"), ord("c")]]


def test_what_a_fallback_policy_said_is_context():
    made = rollout_of(
        trajectory(
            answer("Q:", "<call>", call=True),
            answer("Q:<call>=7;A:", "other", policy="spare", token_ids=None, logprobs=None),
        ),
        POLICY,
        decode,
    )
    assert [shown(row) for row in made.rows] == ["Q:[<call>]"]


def test_an_answer_that_hooks_sent_back_was_sampled_and_counts():
    made = rollout_of(
        trajectory(answer("Q:", "no*"), answer("Q:no*[harness] again;", "yes")), POLICY, decode
    )
    assert [shown(row) for row in made.rows] == ["Q:(no*)[harness] again;(yes)"]


@pytest.mark.parametrize(
    ("text", "reasoning", "content", "thought"),
    [
        ("<think>ab</think>\n\nhi", "ab", "hi", len("<think>ab</think>\n\n")),
        ("ab</think>hi", "ab", "hi", len("ab</think>")),  # the prompt opened the block
        ("<think>abcd", "abcd", None, len("<think>abcd")),  # cut off in thought
        ("hi", None, "hi", 0),
    ],
)
def test_reasoning_is_counted_up_to_the_end_of_its_block(text, reasoning, content, thought):
    made = rollout_of(
        trajectory(answer("Q:", text, reasoning=reasoning, content=content)), POLICY, decode
    )
    assert made.cot["reply"] == thought
    assert made.rows[0].thought_ids == [0, 0] + [1] * thought + [0] * (len(text) - thought)


def test_weights_that_change_in_the_middle_of_a_rollout_are_an_error():
    replies = [
        answer("Q:", "a", call=True, model="student@1"),
        answer("Q:a", "b", model="student@2"),
    ]
    with pytest.raises(HarnessError, match="weights changed"):
        rollout_of(trajectory(*replies), POLICY, decode)


def test_what_was_cut_off_and_what_broke_is_known():
    cut = rollout_of(trajectory(answer("Q:", "ab", finish_reason="length")), POLICY, decode)
    assert cut.truncated
    assert not cut.broken
    broken = rollout_of(trajectory(stop=StopReason.PROVIDER_ERROR), POLICY, decode)
    assert broken.broken
    assert broken.rows == ()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ({"token_ids": None}, "gave no tokens"),
        ({"prompt_ids": None}, "gave no tokens"),
        ({"logprobs": (-0.1,)}, "2 tokens and 1 log-probabilities"),
    ],
)
def test_an_answer_without_its_tokens_is_an_error(missing, message):
    with pytest.raises(HarnessError, match=message):
        rollout_of(trajectory(answer("Q:", "ab", **missing)), POLICY, decode)


@pytest.mark.parametrize(
    ("other", "request_of_it", "message"),
    [
        ({"harness_id": "h2"}, "same", "2 harness states"),
        ({}, "another", "2 requests"),
        ({"policy_id": "student@2"}, "same", "2 policies"),
        ({"prompt": "P:"}, "same", "different prompts"),
    ],
)
def test_a_mixed_group_is_an_error(other, request_of_it, message):
    prompt = other.pop("prompt", "Q:")
    group = [trajectory(answer("Q:", "a")), trajectory(answer(prompt, "b"), **other)]
    rollouts = [rollout_of(t, POLICY, decode) for t in group]
    with pytest.raises(UsageError, match=message):
        check_rollouts(group, ["same", request_of_it], rollouts)
    check_rollouts(group[:1] * 2, ["same", "same"], rollouts[:1] * 2)
