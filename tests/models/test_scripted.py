import asyncio
from pathlib import Path

import pytest

from harness_cli.errors import BadFile, ProviderError
from harness_cli.models.base import Deadline
from harness_cli.models.open import open_policy
from harness_cli.models.scripted import ScriptedPolicy, tool_reply
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.config import PolicyConfig


def ask(policy, *texts, within=5.0):
    messages = tuple(
        {"role": "assistant" if n % 2 else "user", "content": t} for n, t in enumerate(texts)
    )
    return asyncio.run(policy.complete(ChatRequest(messages=messages), Deadline.within(within)))


def opened(folder: Path, text: str):
    (folder / "s.yaml").write_text(text)
    return open_policy("demo", PolicyConfig(kind="scripted", script="s.yaml"), root=folder)


def test_a_sequence_is_given_in_order_and_then_ends_with_an_error_that_is_not_retried():
    policy = ScriptedPolicy(
        ["one", tool_reply(("f", {"q": 1})), lambda r: r.messages[0]["content"]]
    )
    assert ask(policy, "x").content == "one"
    assert ask(policy, "x").tool_calls[0].arguments == '{"q":1}'
    assert ask(policy, "echo").content == "echo"
    with pytest.raises(ProviderError) as caught:
        ask(policy, "x")
    assert not caught.value.retryable
    assert [r.messages[0]["content"] for r in policy.requests] == ["x", "x", "echo", "x"]


def test_an_error_in_the_sequence_is_raised():
    policy = ScriptedPolicy([ProviderError.of("rate_limit", "slow down", retryable=True), "ok"])
    with pytest.raises(ProviderError) as caught:
        ask(policy, "x")
    assert caught.value.kind == "rate_limit"
    assert ask(policy, "x").content == "ok"


def test_the_same_script_has_the_same_id_and_another_script_another():
    one, same, other = (ScriptedPolicy([t]) for t in ("a", "a", "b"))
    assert one.id == same.id != other.id
    assert one.id.startswith("scripted@")


def test_rules_answer_by_the_last_question_and_by_how_often_they_answered(tmp_path):
    policy = opened(
        tmp_path,
        """
rules:
  - when: how much
    replies:
      - calls: [{name: get_price, arguments: {link_id: 3}}]
      - text: It is 89 yuan.
  - replies: [{text: Welcome!}]
""",
    )
    first = ask(policy, "How much is 3?")
    assert (first.finish_reason, first.tool_calls[0].arguments) == ("tool_calls", '{"link_id":3}')
    assert ask(policy, "hello").content == "Welcome!"
    answered = ChatRequest(
        messages=(
            {"role": "user", "content": [{"type": "text", "text": "how MUCH?"}]},
            {"role": "assistant", "content": None},
            {"role": "tool", "content": "{}"},
        )
    )
    reply = asyncio.run(policy.complete(answered, Deadline()))
    assert (reply.content, reply.policy) == ("It is 89 yuan.", "demo")


def test_a_scripted_delay_ends_at_the_deadline(tmp_path):
    policy = opened(tmp_path, "replies: [{text: late, delay_s: 30}]")
    with pytest.raises(ProviderError) as caught:
        ask(policy, "x", within=0.05)
    assert caught.value.kind == "timeout"


def test_a_scripted_error_has_its_kind(tmp_path):
    policy = opened(tmp_path, "replies: [{error: auth}]\nrepeat: true")
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            ask(policy, "x")
        assert (caught.value.kind, caught.value.retryable) == ("auth", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("replies: []", "either `replies` or `rules`"),
        ("rules: [{when: '(', replies: [{text: x}]}]", r"rules\[0\].when"),
        ("rules: [{when: x, replies: []}]", "no replies"),
        ("schema: 2\nreplies: [{text: x}]", "schema 2"),
        ("replies: [{txt: x}]", "s.yaml:1"),
    ],
)
def test_a_script_that_cannot_be_meant_is_refused_with_its_place(tmp_path, text, said):
    with pytest.raises(BadFile, match=said):
        opened(tmp_path, text)


def test_a_reply_keeps_its_own_policy_name():
    reply = ask(ScriptedPolicy([ChatReply(content="x", policy="fallback")]), "x")
    assert reply.policy == "fallback"
