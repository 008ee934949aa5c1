import asyncio
import json

import pytest
from chat_endpoint import ASKED, said, serving
from msgspec.structs import replace

from harness_cli.errors import BadFile, HarnessError, ProviderError
from harness_cli.models.base import Deadline
from harness_cli.models.cassette import RecordingPolicy, ReplayPolicy, read_cassette
from harness_cli.models.open import open_policy
from harness_cli.models.scripted import ScriptedPolicy, tool_reply
from harness_cli.records.chat import ChatReply
from harness_cli.records.config import PolicyConfig


def record(path, replies, requests):
    async def go():
        policy = RecordingPolicy(ScriptedPolicy(replies), path)
        given = [await policy.complete(r, Deadline()) for r in requests]
        await policy.close()
        return given

    return asyncio.run(go())


def replay(path, *requests):
    policy = ReplayPolicy(path)

    async def go():
        return [await policy.complete(r, Deadline()) for r in requests]

    return asyncio.run(go())


def question(text):
    return replace(ASKED, messages=({"role": "user", "content": text},))


def test_what_was_recorded_is_said_again_marked_and_without_times(tmp_path):
    timed = ChatReply(
        content="one",
        latency_s=1.5,
        ttft_s=0.5,
        first_delta_s=0.6,
        attempt_s=1.0,
        attempts=2,
        retry_reasons=("server",),
    )
    path = tmp_path / "c.jsonl"
    given = record(path, [timed, tool_reply(("f", {"q": 1}))], [question("a"), question("b")])
    second, first = replay(path, question("b"), question("a"))
    assert (first.content, first.cached, first.latency_s, first.ttft_s) == ("one", True, 0.0, None)
    assert (first.first_delta_s, first.attempt_s) == (None, None)
    assert second.tool_calls == given[1].tool_calls
    assert not given[0].cached


def test_the_same_request_twice_has_its_answers_in_order(tmp_path):
    path = tmp_path / "c.jsonl"
    record(path, ["one", "two"], [question("a")] * 2)
    assert [r.content for r in replay(path, *[question("a")] * 3)] == ["one", "two", "two"]


@pytest.mark.parametrize(
    "changed",
    [
        {"messages": ({"role": "user", "content": "a "},)},
        {"tools": ()},
        {"temperature": 0.5},
        {"seed": 1},
        {"max_tokens": 65},
    ],
)
def test_a_request_that_was_not_recorded_is_an_error_that_says_so(tmp_path, changed):
    path = tmp_path / "c.jsonl"
    record(path, ["one"], [question("a")])
    with pytest.raises(ProviderError, match="no answer to this request") as caught:
        replay(path, replace(question("a"), **changed))
    assert not caught.value.retryable
    assert "record it again" in caught.value.hint


def test_a_recording_goes_on_where_it_was_killed(tmp_path):
    path = tmp_path / "c.jsonl"
    record(path, ["one"], [question("a")])
    with path.open("ab") as file:
        file.write(b'{"request": "torn')
    assert len(read_cassette(path)[1]) == 1
    record(path, ["one"], [question("b")])
    assert [e.asked for e in read_cassette(path)[1]] == ["a", "b"]


@pytest.mark.parametrize("text", ["a line\nthe last one", "one word", "{}\n", "\n"])
def test_what_is_no_cassette_of_this_policy_is_refused_before_anybody_is_asked(tmp_path, text):
    path = tmp_path / "c.jsonl"
    path.write_text(text)
    with pytest.raises(BadFile):
        RecordingPolicy(ScriptedPolicy(["one"]), path)
    assert path.read_text() == text
    path.unlink()
    record(path, ["one"], [question("a")])
    with pytest.raises(BadFile, match="was recorded from"):
        RecordingPolicy(ScriptedPolicy(["another"]), path)
    with pytest.raises(BadFile, match="is no file to record in"):
        RecordingPolicy(ScriptedPolicy(["one"]), tmp_path)


def test_an_answer_that_cannot_be_recorded_ends_the_run_and_is_no_fault_of_the_client(tmp_path):
    path = tmp_path / "folder" / "c.jsonl"
    policy = RecordingPolicy(ScriptedPolicy(["one", "two"]), path)
    path.unlink()
    path.parent.rmdir()
    with pytest.raises(HarnessError, match="cannot be recorded in") as caught:
        asyncio.run(policy.complete(question("a"), Deadline()))
    assert not isinstance(caught.value, ProviderError)
    path.parent.mkdir()
    path.write_bytes(b"")
    asyncio.run(policy.complete(question("b"), Deadline()))
    assert [e.asked for e in read_cassette(path)[1]] == ["b"]


def test_keys_are_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "a very private value")
    path = tmp_path / "c.jsonl"
    said = "the key is a very private value, or sk-abcdefghij0123456789"
    record(path, [said], [question("what is a very private value?")])
    text = path.read_text()
    assert "private" not in text
    assert "sk-abc" not in text
    assert replay(path, question("what is a very private value?"))[0].content.startswith("the key")


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (lambda lines: [], "empty"),
        (lambda lines: ["{}"], ":1"),
        (lambda lines: ['{"cassette": 9, "policy": "p", "policy_id": "x"}'], "cassette 9"),
        (lambda lines: [lines[0], lines[1][:-20]], ":2"),
        (lambda lines: [lines[0], lines[1].replace("one", "two")], ":2: the checksum"),
    ],
)
def test_a_damaged_cassette_is_refused_with_its_line(tmp_path, damage, place):
    path = tmp_path / "c.jsonl"
    record(path, ["one"], [question("a")])
    path.write_text("".join(line + "\n" for line in damage(path.read_text().splitlines())))
    with pytest.raises(BadFile, match=place):
        ReplayPolicy(path)


def test_no_cassette(tmp_path):
    with pytest.raises(BadFile, match="no cassette"):
        open_policy("r", PolicyConfig(kind="replay", script="x.jsonl"), root=tmp_path)
    with pytest.raises(BadFile, match="no `script`"):
        open_policy("r", PolicyConfig(kind="replay"), root=tmp_path)


def test_a_real_client_is_recorded_and_the_endpoint_is_not_asked_again(tmp_path):
    path = tmp_path / "c.jsonl"

    async def go():
        async with serving([said("Hello.")]) as endpoint:
            config = PolicyConfig(kind="openai", model="m", base_url=endpoint.url)
            client = RecordingPolicy(open_policy("p", config, root=tmp_path), path)
            await asyncio.gather(
                *(client.complete(question(f"{n}"), Deadline.within(20)) for n in range(20))
            )
            await client.close()
            return client.id

    recorded_id = asyncio.run(go())
    policy = open_policy("again", PolicyConfig(kind="replay", script="c.jsonl"), root=tmp_path)
    reply = asyncio.run(policy.complete(question("7"), Deadline()))
    assert (reply.content, reply.cached, reply.policy) == ("Hello.", True, "again")
    assert policy.id == recorded_id
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 21
