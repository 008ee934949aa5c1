"""Pure parts of the wire, for all inputs: splitting, joining, tags, waiting."""

import asyncio
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import ProviderError
from harness_cli.models.base import Deadline
from harness_cli.models.retry import FIRST_S, LONGEST_S, RetryRules, with_retries
from harness_cli.models.sse import EventReader
from harness_cli.models.thinking import split_thinking
from harness_cli.models.toolcalls import CallAssembler, unwrapped
from harness_cli.records.chat import ChatReply

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(values, max_size=5), st.data())
@settings(max_examples=60, deadline=None)
def test_a_stream_split_anywhere_has_the_same_payloads(payloads, data):
    raw = b"".join(b"data: " + json.dumps(p).encode() + b"\n\n" for p in payloads)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    reader, found = EventReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        found += reader.feed(raw[start:end])
    assert found + reader.close() == payloads


@given(
    st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), min_size=1, max_size=4),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_calls_with_ids_survive_any_cutting_and_interleaving(objects, data):
    pieces = []
    for value in objects:
        text = json.dumps(value)
        cut = data.draw(st.integers(0, len(text)))
        pieces.append([text[:cut], text[cut:]])
    assembler = CallAssembler()
    for number, (head, _) in enumerate(pieces):
        assembler.add(
            {"index": 0, "id": f"c{number}", "function": {"name": "f", "arguments": head}}
        )
    for number in data.draw(st.permutations(range(len(pieces)))):
        assembler.add({"id": f"c{number}", "function": {"arguments": pieces[number][1]}})
    assert [json.loads(c.arguments) for c in assembler.finish(0)] == objects


@given(st.dictionaries(st.text(max_size=4), values, max_size=3), st.integers(0, 3))
def test_json_in_json_is_undone_at_any_depth(value, depth):
    text = json.dumps(value)
    wrapped = text
    for _ in range(depth):
        wrapped = json.dumps(wrapped)
    assert json.loads(unwrapped(wrapped)) == value


@given(st.text("ab <>/think\n", max_size=40))
def test_no_whole_think_tag_is_left_in_what_is_said(text):
    said, _ = split_thinking(text)
    assert "<think>" not in said
    assert "</think>" not in said


@given(st.text(max_size=40).filter(lambda t: "<" not in t))
def test_text_without_tags_is_left_alone(text):
    assert split_thinking(text) == (text, None)


def pauses(seed, failures, monkeypatch, *, within=None):
    """What is slept between attempts of a call that fails so often."""
    slept, left = [], [failures]

    async def attempt(_):
        if left[0]:
            left[0] -= 1
            raise ProviderError.of("server", "no", retryable=True)
        return ChatReply(content="x")

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    rules = RetryRules(max_attempts=20)
    asyncio.run(with_retries(attempt, rules, Deadline.within(within), random.Random(seed)))
    return slept


def test_waits_double_from_a_quarter_second_are_jittered_and_reproducible(monkeypatch):
    first = pauses(1, 9, monkeypatch)
    for number, seconds in enumerate(first):
        most = min(LONGEST_S, FIRST_S * 2**number)
        assert most / 2 <= seconds <= most
    assert first[0] <= 0.5
    assert first == pauses(1, 9, monkeypatch)
    assert first != pauses(2, 9, monkeypatch)


def test_a_wait_longer_than_what_is_left_ends_the_call(monkeypatch):
    with pytest.raises(ProviderError, match="attempt"):
        pauses(1, 19, monkeypatch, within=4.0)
