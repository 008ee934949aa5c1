"""The `local` policy's decisions, without weights: what is chosen, called, cut and refused.

The stand-in below has the two abilities of a language model that the policy uses, in the simplest
form: a comment is likelier after a description that shares triples of letters with it.
Real weights are tested in test_local_weights.py, where the extra is installed.
"""

import asyncio
import json
import threading
import time
from importlib.util import find_spec

import pytest

from harness_cli.errors import MissingExtra, ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.local import LocalPolicy, open_local
from harness_cli.records.chat import ChatRequest
from harness_cli.records.config import CheckpointRef, PolicyConfig


class Generated:
    def __init__(self, text, tokens, ended):
        self.text, self.tokens, self.ended = text, tokens, ended


class Letters:
    """One character, one token."""

    def __init__(self):
        self.prompts = []
        self.scored = []

    def ids(self, text):
        return [ord(c) for c in text]

    def chat(self, messages):
        return self.ids("\n".join(f"{m['role']}: {m['content']}" for m in messages))

    def likelihoods(self, contexts, text):
        self.scored.append("".join(map(chr, text)))
        said = _triples(self.scored[-1])
        return [float(len(said & _triples("".join(map(chr, c))))) for c in contexts]

    def generate(self, ids, max_new, *, stopped):
        self.prompts.append("".join(map(chr, ids)))
        return Generated("It is 89 yuan."[:max_new], min(14, max_new), ended=max_new > 14)


def _triples(text):
    text = text.lower()
    return {text[i : i + 3] for i in range(len(text) - 2)}


SKILLS = {
    "greet": "greetings: hello, hi, good evening everybody",
    "a-very-long-name-for-product-questions": "how much it costs, the price, what is in stock",
}
LOADER = {
    "type": "function",
    "function": {
        "name": "load_skill",
        "description": "Load a skill.",
        "parameters": {
            "type": "object",
            "properties": {"skill": {"type": "string", "enum": [*SKILLS]}},
            "required": ["skill"],
        },
    },
}
PRICE = {
    "type": "function",
    "function": {
        "name": "get_price",
        "description": "price of a link",
        "parameters": {
            "type": "object",
            "properties": {"link_id": {"type": "integer", "description": "The link number."}},
            "required": ["link_id"],
        },
    },
}
SYSTEM = "You host a room.\n\nLinks:\n1 Mug\n2 Scarf\n3 Lamp (now)\n\nSkills:\n" + "\n".join(
    f"- {n}: {d}" for n, d in SKILLS.items()
)


def request(comment, *turns, tools=(LOADER, PRICE), **more):
    first = ({"role": "system", "content": SYSTEM}, {"role": "user", "content": comment})
    return ChatRequest(messages=(*first, *turns), tools=tuple(tools), **more)


def called(number, name, arguments, result):
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    )


def policy(model=None, **settings):
    config = PolicyConfig(kind="local", **settings)
    return LocalPolicy("local", config, lambda: model or Letters(), digest="none")


def ask(made, asked, within=30.0):
    return asyncio.run(made.complete(asked, Deadline.within(within)))


LOADED = called(
    1, "load_skill", {"skill": "x"}, "# Product questions\n\n## Tools\n- `get_price`: for a price\n"
)


@pytest.mark.parametrize(
    ("comment", "skill"),
    [
        ("hello everybody, good evening", "greet"),
        ("how much does it cost, what is the price", "a-very-long-name-for-product-questions"),
    ],
)
def test_the_skill_is_the_one_whose_description_makes_the_comment_likeliest(comment, skill):
    reply = ask(policy(), request(comment))
    assert [(c.name, json.loads(c.arguments)) for c in reply.tool_calls] == [
        ("load_skill", {"skill": skill})
    ]
    assert reply.finish_reason == "tool_calls"
    assert reply.usage.input_tokens > 0


def test_of_a_long_comment_the_end_is_scored():
    model = Letters()
    ask(policy(model), request("we are all here, " * 30 + "hello everybody"))
    assert len(model.scored[0]) == 64
    assert model.scored[0].endswith("hello everybody\n")


def test_after_the_skill_comes_the_tool_it_names_with_arguments_by_schema():
    reply = ask(policy(), request("how much is link 2", *LOADED))
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("get_price", '{"link_id":2}')]


def test_a_skill_without_tools_is_answered_at_once():
    loaded = called(1, "load_skill", {"skill": "greet"}, "# Greet\n\nSay hello.\n")
    reply = ask(policy(), request("hello", *loaded))
    assert (reply.tool_calls, reply.content) == ((), "It is 89 yuan.")


def test_the_reply_is_generated_from_the_results_and_bounded():
    model = Letters()
    done = called(2, "get_price", {"link_id": 2}, '{"name": "Scarf", "price": 89}')
    reply = ask(policy(model), request("how much is link 2", *LOADED, *done))
    assert (reply.content, reply.finish_reason) == ("It is 89 yuan.", "stop")
    assert "price: 89" in model.prompts[0]
    short = ask(policy(), request("how much is link 2", *LOADED, *done, max_tokens=5))
    assert (short.content, short.finish_reason) == ("It is", "length")


def test_what_exceeds_the_context_is_left_out_of_the_middle():
    model = Letters()
    made = policy(model, context=400, max_tokens=20)
    ask(made, ChatRequest(messages=({"role": "user", "content": "a" * 900 + "the end"},)))
    assert len(model.prompts[0]) == 380
    assert model.prompts[0].startswith("user: aaa")
    assert model.prompts[0].endswith("the end")


def test_the_deadline_bounds_the_call_and_the_next_one_is_not_held_up():
    class Slow(Letters):
        def generate(self, ids, max_new, *, stopped):
            while not stopped():
                time.sleep(0.01)
            return super().generate(ids, max_new, stopped=stopped)

    made = policy(Slow())
    plain = ChatRequest(messages=({"role": "user", "content": "hi"},))

    async def go():
        begun = time.monotonic()
        with pytest.raises(ProviderError) as caught:
            await made.complete(plain, Deadline.within(0.1))
        assert time.monotonic() - begun < 5
        assert caught.value.kind == "timeout"
        return await made.complete(request("hello everybody"), Deadline.within(10))

    before = threading.active_count()
    assert asyncio.run(go()).tool_calls
    assert threading.active_count() <= before + 2


def test_settings_that_change_the_answer_change_the_id():
    assert policy().id == policy(attempt_timeout_s=9.0).id
    assert policy().id != policy(context=1024).id


@pytest.mark.skipif(find_spec("torch") is not None, reason="the extra `local` is installed")
def test_without_the_extra_it_says_how_to_get_it(tmp_path):
    with pytest.raises(MissingExtra, match="`local`") as caught:
        open_local("local", PolicyConfig(kind="local"), tmp_path)
    assert "EXTRA=local" in caught.value.hint


@pytest.mark.skipif(find_spec("torch") is None, reason="the extra `local` is not installed")
def test_a_folder_without_a_checkpoint_is_refused(tmp_path):
    config = PolicyConfig(kind="local", checkpoint=CheckpointRef(uri="none"))
    with pytest.raises(UsageError, match="no checkpoint folder"):
        open_local("local", config, tmp_path)
