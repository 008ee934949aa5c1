"""One suite, both clients: what real servers do to tool calls, texts, usage and finish reasons."""

import json

import pytest
from chat_endpoint import ASKED, DONE, USAGE, Answer, chunk, event, raw, said, stream, whole
from msgspec.structs import replace

from harness_cli.records.chat import Usage
from harness_cli.records.config import Price

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"q":1}'}}


def delta(arguments="", *, name=None, **more):
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {**more, "function": function}


def calls_of(reply):
    return [(c.name, c.arguments) for c in reply.tool_calls]


# -- the plain cases


@pytest.mark.parametrize("streamed", [True, False])
def test_a_plain_reply_has_its_text_its_usage_and_what_was_served(ask, streamed):
    answer = said("Hello.") if streamed else whole({"role": "assistant", "content": "Hello."})
    reply, endpoint = ask(answer, stream=streamed)
    assert reply.content == "Hello."
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(input_tokens=10, output_tokens=2)
    assert (reply.model, reply.policy, reply.attempts) == ("served", "p", 1)
    assert (reply.ttft_s is None) is not streamed
    assert reply.latency_s > (reply.ttft_s or 0)
    sent = endpoint.bodies[0]
    assert (sent["model"], sent["max_tokens"], sent["top_p"]) == ("m", 64, 0.95)
    assert sent.get("stream", False) is streamed
    assert sent["tools"][0]["function"]["name"] == "f"
    assert "seed" not in sent
    assert "tool_choice" not in sent


def test_a_server_that_ignores_stream_and_answers_whole_is_understood(ask):
    reply, endpoint = ask(whole({"content": "Hello."}))
    assert endpoint.bodies[0]["stream"] is True
    assert (reply.content, reply.ttft_s) == ("Hello.", None)


def test_without_tools_no_empty_list_is_sent(ask):
    _, endpoint = ask(said(), request=replace(ASKED, tools=(), seed=7, stop=("x",)))
    assert "tools" not in endpoint.bodies[0]
    assert (endpoint.bodies[0]["seed"], endpoint.bodies[0]["stop"]) == (7, ["x"])


def test_settings_of_the_policy_win_over_the_request(ask):
    _, endpoint = ask(said(), temperature=0.0, top_p=0.5, max_tokens=8)
    sent = endpoint.bodies[0]
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"]) == (0.0, 0.5, 8)


# -- streamed tool calls

STREAMED = {
    "arguments in fragments": (
        [delta(name="f", index=0, id="a"), *(delta(p, index=0) for p in ('{"ci', 'ty":"A', '"}'))],
        [("f", '{"city":"A"}')],
    ),
    "no index": (
        [delta('{"q":', name="f", id="a"), delta("1}")],
        [("f", '{"q":1}')],
    ),
    "no index, two calls": (
        [delta('{"q":1}', name="f", id="a"), delta('{"q":2}', name="f", id="b")],
        [("f", '{"q":1}'), ("f", '{"q":2}')],
    ),
    "all index 0": (
        [delta('{"q":1}', name="f", id="a", index=0), delta('{"q":2}', name="f", id="b", index=0)],
        [("f", '{"q":1}'), ("f", '{"q":2}')],
    ),
    "all index 0 and in fragments": (
        [
            delta("", name="f", id="a", index=0),
            delta('{"q":1}', index=0),
            delta("", name="g", id="b", index=0),
            delta('{"q"', index=0),
            delta(":2}", index=0),
        ],
        [("f", '{"q":1}'), ("g", '{"q":2}')],
    ),
    "continued under another index": (
        [delta('{"q":', name="f", id="a", index=0), delta("1}", index=1)],
        [("f", '{"q":1}')],
    ),
    "continued by id under any index": (
        [
            delta('{"q":', name="f", id="a", index=0),
            delta('{"q":', name="g", id="b", index=1),
            delta("1}", id="a", index=7),
            delta("2}", id="b", index=0),
        ],
        [("f", '{"q":1}'), ("g", '{"q":2}')],
    ),
    "interleaved by index": (
        [
            delta("{", name="f", id="a", index=0),
            delta("{", name="g", id="b", index=1),
            delta("}", index=0),
            delta("}", index=1),
        ],
        [("f", "{}"), ("g", "{}")],
    ),
    "no ids": (
        [delta('{"q":1}', name="f", index=0), delta('{"q":2}', name="f", index=0)],
        [("f", '{"q":1}'), ("f", '{"q":2}')],
    ),
    "the name again in every delta": (
        [delta('{"q":', name="f", index=0), delta("1}", name="f", index=0)],
        [("f", '{"q":1}')],
    ),
    "the whole call again at the end": (
        [delta('{"q":1}', name="f", id="a", index=0), delta("", name="f", id="a", index=0)],
        [("f", '{"q":1}')],
    ),
    "a new id in every delta": (
        [delta('{"q":', name="f", id="a", index=0), delta("1}", id="x", index=0)],
        [("f", '{"q":1}')],
    ),
    "the name after the id": (
        [delta("", id="a", index=0), delta('{"q":1}', name="f", index=0)],
        [("f", '{"q":1}')],
    ),
    "one id for two calls": (
        [delta('{"q":1}', name="f", id="a", index=0), delta('{"q":2}', name="g", id="a", index=1)],
        [("f", '{"q":1}'), ("g", '{"q":2}')],
    ),
    "no arguments": ([delta("", name="f", id="a", index=0)], [("f", "{}")]),
    "arguments that are an object": (
        [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"q": 1}}}],
        [("f", '{"q": 1}')],
    ),
}


@pytest.mark.parametrize("kind", STREAMED)
def test_streamed_calls_are_joined_as_the_model_meant_them(ask, kind):
    deltas, expected = STREAMED[kind]
    reply, _ = ask(stream(*(chunk({"tool_calls": [d]}) for d in deltas), chunk({}, "tool_calls")))
    assert calls_of(reply) == expected
    assert reply.finish_reason == "tool_calls"
    ids = [c.id for c in reply.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def test_two_calls_in_one_delta(ask):
    both = [delta('{"q":1}', name="f", index=0), delta('{"q":2}', name="f", index=1)]
    reply, _ = ask(stream(chunk({"tool_calls": both}), chunk({}, "tool_calls")))
    assert calls_of(reply) == [("f", '{"q":1}'), ("f", '{"q":2}')]


# -- arguments: what the model wrote is kept, what a server did to it is undone

ARGUMENTS = {
    "object": ({"city": "A"}, '{"city": "A"}'),
    "JSON in JSON": ('"{\\"city\\": \\"A\\"}"', '{"city": "A"}'),
    "JSON in JSON in JSON": (json.dumps(json.dumps('{"city": "A"}')), '{"city": "A"}'),
    "list": ("[1]", "[1]"),
    "a list, not text": ([1], "[1]"),
    "a string": ('"x"', '"x"'),
    "number": ("42", "42"),
    "null text": ("null", "null"),
    "null": (None, "null"),
    "unclosed": ('{"q": "1+1"', '{"q": "1+1"'),
    "a brace in a value": ('{"cmd":"mkdir x/{a,b"}', '{"cmd":"mkdir x/{a,b"}'),
    "empty": ("", "{}"),
    "blanks around": (' {"q": 1}\n', ' {"q": 1}\n'),
    "not ASCII": ({"q": "你好"}, '{"q": "你好"}'),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize("streamed", [True, False])
def test_arguments(ask, kind, streamed):
    given, expected = ARGUMENTS[kind]
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": given}}
    if streamed:
        answer = stream(chunk({"tool_calls": [{"index": 0, **call}]}), chunk({}, "tool_calls"))
    else:
        answer = whole({"content": None, "tool_calls": [call]}, finish_reason="tool_calls")
    reply, _ = ask(answer, stream=streamed)
    assert calls_of(reply) == [("f", expected)]


# -- finish reasons, contents, reasoning

FINISH = {
    "stop with calls": ({"content": None, "tool_calls": [CALL]}, "stop", "tool_calls"),
    "calls cut short": ({"content": None, "tool_calls": [CALL]}, "length", "length"),
    "tool_calls without calls": ({"content": "x", "tool_calls": []}, "tool_calls", "stop"),
    "tool_calls null": ({"content": "x", "tool_calls": None}, "stop", "stop"),
    "another word for length": ({"content": "x"}, "max_tokens", "length"),
    "another word for stop": ({"content": "x"}, "eos_token", "stop"),
    "upper case": ({"content": "x"}, "STOP", "stop"),
    "filtered": ({"content": ""}, "content_filter", "content_filter"),
    "refusal": ({"content": None, "refusal": "No."}, "stop", "content_filter"),
    "the old function_call": (
        {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
        "function_call",
        "tool_calls",
    ),
}


@pytest.mark.parametrize("kind", FINISH)
@pytest.mark.parametrize("streamed", [True, False])
def test_finish_reason(ask, kind, streamed):
    message, given, expected = FINISH[kind]
    answer = (
        stream(chunk(message), chunk({}, given))
        if streamed
        else whole(message, finish_reason=given)
    )
    reply, _ = ask(answer, stream=streamed)
    assert reply.finish_reason == expected
    assert bool(reply.tool_calls) == bool(message.get("tool_calls") or "function_call" in message)


XML = '<tool_call>{"name": "f", "arguments": {"q": 1}}</tool_call>'
LEFT = {
    "alone": (XML, [("f", '{"q": 1}')], None),
    "two": (XML + "\n" + XML, [("f", '{"q": 1}')] * 2, None),
    "text before": ("Let me look.\n" + XML, [("f", '{"q": 1}')], "Let me look."),
    "a tool that is not offered": (XML.replace('"f"', '"rm"'), [], XML.replace('"f"', '"rm"')),
    "in a code fence": (f"```\n{XML}\n```", [], f"```\n{XML}\n```"),
    "broken JSON": ("<tool_call>{</tool_call>", [], "<tool_call>{</tool_call>"),
    "unclosed": (XML + "<tool_call>{", [], XML + "<tool_call>{"),
    "arguments as text": (
        '<tool_call>{"name": "f", "arguments": "{\\"q\\": 1}"}</tool_call>',
        [("f", '{"q": 1}')],
        None,
    ),
}


@pytest.mark.parametrize("kind", LEFT)
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_calls_left_in_the_text_are_read_only_when_nothing_can_be_misread(ask, kind, finish):
    content, expected, rest = LEFT[kind]
    reply, _ = ask(
        whole({"content": content, "tool_calls": []}, finish_reason=finish), stream=False
    )
    assert calls_of(reply) == expected
    assert reply.content == rest
    assert reply.finish_reason == ("tool_calls" if expected else "stop")


THINKING = {
    "none": ("Hi", None, "Hi"),
    "whole": ("<think>a b</think>Hi", "a b", "Hi"),
    "only the end": ("a b</think>\n\nHi", "a b", "Hi"),
    "only the start": ("<think>a b", "a b", None),
    "cut in the closing tag": ("<think>a b</thi", "a b", None),
    "twice": ("<think>a</think>Hi<think>b</think>", "a\nb", "Hi"),
    "empty": ("<think>\n\n</think>\n\nHi", None, "Hi"),
    "a price below": ("it costs <100 yuan", None, "it costs <100 yuan"),
    "another word": ("<thinking>a</thinking>Hi", "a", "Hi"),
    "twice closed": ("a</think>b</think>Hi", "ab", "Hi"),
}


@pytest.mark.parametrize("kind", THINKING)
def test_think_tags_whole_or_half_never_reach_the_reply(ask, kind):
    content, reasoning, expected = THINKING[kind]
    letters = [chunk({"content": letter}) for letter in content]
    reply, _ = ask(stream(*letters, chunk({}, "stop")))
    assert (reply.content, reply.reasoning) == (expected, reasoning)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_in_a_field_of_its_own(ask, field):
    reply, _ = ask(
        stream(
            chunk({field: "a "}), chunk({field: "b"}), chunk({"content": "Hi"}), chunk({}, "stop")
        )
    )
    assert (reply.content, reply.reasoning) == ("Hi", "a b")


CONTENT = {
    "null": (None, None, None),
    "absent": ("", None, None),
    "parts": ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", None),
    "plain parts": (["a", "b"], "ab", None),
    "thinking parts": (
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]},
            {"type": "text", "text": "a"},
        ],
        "a",
        "t",
    ),
}


@pytest.mark.parametrize("kind", CONTENT)
@pytest.mark.parametrize("streamed", [True, False])
def test_content(ask, kind, streamed):
    given, expected, reasoning = CONTENT[kind]
    message = {"role": "assistant", "content": given, "tool_calls": []}
    answer = stream(chunk(message), chunk({}, "stop")) if streamed else whole(message)
    reply, _ = ask(answer, stream=streamed)
    assert (reply.content, reply.reasoning) == (expected, reasoning)


# -- usage: unknown is not zero

USAGES = {
    "null": (None, Usage()),
    "absent": ({}, Usage()),
    "other names": (
        {"input_tokens": 3, "output_tokens": 4},
        Usage(input_tokens=3, output_tokens=4),
    ),
    "zero": (
        {"prompt_tokens": 3, "completion_tokens": 0},
        Usage(input_tokens=3, output_tokens=0),
    ),
    "half": ({"prompt_tokens": 3, "completion_tokens": None}, Usage(input_tokens=3)),
    "details": (
        {
            "prompt_tokens": 9,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
        Usage(input_tokens=9, output_tokens=5, cached_tokens=4, reasoning_tokens=2),
    ),
    "details null": (
        {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": None},
        Usage(input_tokens=9, output_tokens=5),
    ),
    "cache hits": (
        {"prompt_tokens": 9, "completion_tokens": 5, "prompt_cache_hit_tokens": 4},
        Usage(input_tokens=9, output_tokens=5, cached_tokens=4),
    ),
    "text": ("many", Usage()),
}


@pytest.mark.parametrize("kind", USAGES)
@pytest.mark.parametrize("place", ["last chunk", "first chunk", "every chunk", "whole"])
def test_usage(ask, kind, place):
    given, expected = USAGES[kind]
    alone = {"choices": [], "usage": given}
    if place == "whole":
        reply, _ = ask(whole({"content": "x"}, usage=given), stream=False)
    elif place == "every chunk":
        reply, _ = ask(stream(chunk({"content": "x"}, usage=given), chunk({}, "stop", usage=given)))
    else:
        middle = [chunk({"content": "x"}), chunk({}, "stop")]
        reply, _ = ask(stream(*([alone, *middle] if place == "first chunk" else [*middle, alone])))
    assert reply.usage == expected
    assert reply.content == "x"


def test_cost_is_of_the_price_and_unknown_without_one_or_without_usage(ask):
    price = {"input": 2.0, "output": 10.0, "cached": 0.5}
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    answer = whole({"content": "x"}, usage=usage)
    known, _ = ask(answer, stream=False, price=Price(**price))
    assert known.cost == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
    free, _ = ask(answer, stream=False, price=Price(input=0.0, output=0.0))
    assert free.cost == 0.0
    unpriced, _ = ask(answer, stream=False)
    assert unpriced.cost is None
    unused, _ = ask(whole({"content": "x"}, usage=None), stream=False, price=Price(**price))
    assert unused.cost is None


# -- the form of the stream

PIECES = chunk({"content": "你好 🎉"}), chunk({}, "stop")
FORMS = {
    "no blank after data:": b"".join(b"data:" + event(p)[6:] for p in PIECES) + b"data:[DONE]\n\n",
    "CRLF": b"".join(event(p).replace(b"\n", b"\r\n") for p in PIECES) + b"data: [DONE]\r\n\r\n",
    "comments": b": hello\n\n" + b": ping\n\n".join(event(p) for p in PIECES) + DONE,
    "event and id lines": b"event: message\nid: 1\n" + b"".join(event(p) for p in PIECES) + DONE,
    "no blank lines": b"".join(event(p)[:-1] for p in PIECES) + DONE,
    "no end of the last line": b"".join(event(p) for p in PIECES)[:-2],
    "no [DONE]": b"".join(event(p) for p in PIECES),
    "[DONE] and no finish reason": event(PIECES[0]) + DONE,
    "byte-order mark": b"\xef\xbb\xbf" + b"".join(event(p) for p in PIECES) + DONE,
    "two data lines": b"".join(
        event(json.dumps(p, indent=1).replace("\n", "\ndata: ").encode()) for p in PIECES
    )
    + DONE,
    "message for delta": event({"choices": [{"message": {"content": "你好 🎉"}}]})
    + event({"choices": [{"index": 0, "finish_reason": "stop"}]})
    + DONE,
    "delta null": event(PIECES[0]) + event(chunk(None, "stop")) + DONE,
    "half surrogates": event(chunk({"content": "你好 \ud83c"}))
    + event(chunk({"content": "\udf89"}, "stop"))
    + DONE,
    "first and last chunk without choices": event({"choices": []})
    + b"".join(event(p) for p in PIECES)
    + event({"choices": [], "usage": None})
    + DONE,
    "a second choice": event(PIECES[0])
    + event({"choices": [{"index": 1, "delta": {"content": "no"}}]})
    + event(PIECES[1])
    + DONE,
}


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_every_form_of_stream_is_read_however_it_is_split(ask, kind, size):
    data = FORMS[kind]
    pieces = tuple(data[n : n + size] for n in range(0, len(data), size))
    reply, _ = ask(
        Answer(pieces=pieces, headers={"Content-Type": "text/event-stream; charset=utf-8"})
    )
    assert (reply.content, reply.finish_reason, reply.attempts) == ("你好 🎉", "stop", 1)


def test_log_probabilities_and_token_ids_are_kept_where_a_server_gives_them(ask):
    first = chunk({"content": "x"})
    first["choices"][0] |= {
        "logprobs": {"content": [{"token": "x", "logprob": -0.5}]},
        "token_ids": [7],
    }
    reply, _ = ask(stream(first, chunk({}, "stop", system_fingerprint="fp-1")))
    assert (reply.logprobs, reply.token_ids, reply.fingerprint) == ((-0.5,), (7,), "fp-1")


# -- what goes out


def turn(arguments, **more):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return (
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call], **more},
        {"role": "tool", "tool_call_id": "a", "content": "{}"},
    )


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"q": 1}', {"q": 1}),
        ("{bad", {"malformed_arguments": "{bad"}),
        ("[1]", {"malformed_arguments": "[1]"}),
        ("", {}),
        (None, {}),
        ({"q": 1}, {"q": 1}),
    ],
)
def test_malformed_arguments_in_the_history_do_not_spoil_later_requests(ask, arguments, sent):
    asked = replace(ASKED, messages=turn(arguments))
    _, endpoint = ask(said(), request=asked)
    call = endpoint.bodies[0]["messages"][1]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == sent
    assert asked.messages == turn(arguments)  # what is recorded stays what the model wrote


@pytest.mark.parametrize(
    ("send", "given", "sent"),
    [
        (True, {"reasoning_content": "r"}, "r"),
        (True, {}, ""),
        (False, {"reasoning_content": "r"}, None),
        (False, {}, None),
    ],
)
def test_reasoning_goes_back_only_to_a_server_that_demands_it(ask, send, given, sent):
    asked = replace(ASKED, messages=turn("{}", **given))
    _, endpoint = ask(said(), request=asked, send_back_reasoning=send)
    assert endpoint.bodies[0]["messages"][1].get("reasoning_content") == sent


def test_an_answer_that_is_one_json_text_is_not_a_reply(ask):
    reply, endpoint = ask(raw("hello"), said("ok"), stream=False)
    assert (reply.attempts, len(endpoint.bodies)) == (2, 2)


def test_the_usage_chunk_is_asked_for(ask):
    reply, endpoint = ask(stream(chunk({"content": "x"}), chunk({}, "stop"), USAGE))
    assert endpoint.bodies[0]["stream_options"] == {"include_usage": True}
    assert reply.usage.input_tokens == 10
