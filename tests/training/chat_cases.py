"""Conversations, the chat templates that trl ships, and what each family makes of a turn.

`turn_text` is written by hand from the model cards, apart from the code under test: the exact text
that a rollout of the family samples for one assistant turn.
"""

import json
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Loaded
from tokenizers import decoders, models, pre_tokenizers, trainers

from harness_cli.models.chat_template import ChatTemplate
from harness_cli.training.tokens import Tokenizer

FOUND = find_spec("trl")
"""Found without being imported: trl itself needs torch."""
FOLDER = Path(FOUND.submodule_search_locations[0], "chat_templates") if FOUND else None
needs_templates = pytest.mark.skipif(FOLDER is None, reason="no trl: its chat templates are absent")
SPECIAL = re.compile(r"<[|｜][^<>\s'\"]*[|｜]>|<BOS>|<EOS>|\[gMASK\]|<sop>")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} of a link",
            "parameters": {"type": "object", "properties": {"link_id": {"type": "integer"}}},
        },
    }
    for name in ("get_price", "get_inventory")
]


@lru_cache
def template(name):
    source = (FOLDER / f"{name}.jinja").read_text()
    return ChatTemplate(source, name=name, variables={"bos_token": "<BOS>", "eos_token": "<EOS>"})


def call(name="get_price", **arguments):
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": name, "arguments": arguments or {"link_id": 3}},
    }


def user(text="How much is link 3?"):
    return {"role": "user", "content": text}


def said(text="It is 89 yuan.", **more):
    return {"role": "assistant", "content": text, **more}


def asks(*calls, **more):
    return {"role": "assistant", "content": "", "tool_calls": list(calls or [call()]), **more}


def result(text='{"price": 89}'):
    return {"role": "tool", "tool_call_id": "c1", "content": text}


SYSTEM = {"role": "system", "content": "You host a live room. 你好"}
ONE_CALL = [SYSTEM, user(), asks(), result(), said()]
PARALLEL = [
    SYSTEM,
    user(),
    asks(call(), call("get_inventory", link_id=4)),
    result(),
    result('{"stock": 2}'),
    said(),
]
TWO_ROUNDS = [SYSTEM, user(), asks(), result(), asks(call(link_id=5)), result(), said()]
RETRIED = [SYSTEM, user(), asks(), result(), said("no"), user("[harness] say it"), said()]
THINKING = [
    SYSTEM,
    user(),
    asks(reasoning_content="The price is asked."),
    result(),
    said(reasoning_content="89, says the tool."),
]
REPLY = [SYSTEM, user(), said()]
REPLY_THOUGHT = [SYSTEM, user(), said(reasoning_content="A greeting.")]
CASES = {
    "one call": ONE_CALL,
    "parallel": PARALLEL,
    "two rounds": TWO_ROUNDS,
    "retried": RETRIED,
    "thinking": THINKING,
    "reply": REPLY,
    "reply with thinking": REPLY_THOUGHT,
}


def _chatml(turn, thought):
    calls = [
        "<tool_call>\n"
        + f'{{"name": "{c["function"]["name"]}", '
        + f'"arguments": {json.dumps(c["function"]["arguments"])}}}\n</tool_call>'
        for c in turn.get("tool_calls", ())
    ]
    return thought + "\n".join([*([turn["content"]] if turn["content"] else []), *calls])


def qwen2_5(turn, last):
    return _chatml(turn, "") + "<|im_end|>"


def qwen3(turn, last):
    said = turn.get("reasoning_content")
    return _chatml(turn, f"<think>\n{said}\n</think>\n\n" if said else "") + "<|im_end|>"


def qwen3_5(turn, last):
    """Thinking on: the prompt itself ends with `<think>\\n`."""
    said = turn.get("reasoning_content")
    text = f"{said}\n</think>\n\n" if said else ""
    calls = []
    for c in turn.get("tool_calls", ()):
        body = "".join(
            f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in c["function"]["arguments"].items()
        )
        calls.append(
            f"<tool_call>\n<function={c['function']['name']}>\n{body}</function>\n</tool_call>"
        )
    return text + turn["content"] + "\n".join(calls) + "<|im_end|>"


def llama3(turn, last):
    return turn["content"] + "<|eot_id|>"


def llama3_1(turn, last):
    if not turn.get("tool_calls"):
        return turn["content"] + "<|eot_id|>"
    function = turn["tool_calls"][0]["function"]
    arguments = json.dumps(function["arguments"])
    return f'{{"name": "{function["name"]}", "parameters": {arguments}}}<|eot_id|>'


def glm(turn, last):
    said = turn.get("reasoning_content")
    text = f"\n<think>{said}</think>" if said else ""
    if turn["content"]:
        text += "\n" + turn["content"]
    for c in turn.get("tool_calls", ()):
        text += f"\n<tool_call>{c['function']['name']}\n"
        for k, v in c["function"]["arguments"].items():
            text += f"<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n"
        text += "</tool_call>"
    return text + ("<|observation|>" if turn.get("tool_calls") else "<|user|>")


def glm_without_end(turn, last):
    """The stock template writes no end token into the turn."""
    return glm(turn, last).removesuffix("<|observation|>").removesuffix("<|user|>")


def deepseek(turn, last):
    end = "<｜end▁of▁sentence｜>"
    if not turn.get("tool_calls"):
        return turn["content"] + end
    calls = [
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{c['function']['name']}\n```json\n"
        + f"{json.dumps(c['function']['arguments'])}\n```<｜tool▁call▁end｜>"
        for c in turn["tool_calls"]
    ]
    return f"<｜tool▁calls▁begin｜>{chr(10).join(calls)}<｜tool▁calls▁end｜>{end}"


def harmony(turn, last):
    said = turn.get("reasoning_content")
    text = f"<|channel|>analysis<|message|>{said}<|end|><|start|>assistant" if said else ""
    if turn.get("tool_calls"):
        function = turn["tool_calls"][0]["function"]
        arguments = json.dumps(function["arguments"])
        return (
            f"{text} to=functions.{function['name']}<|channel|>commentary json<|message|>"
            f"{arguments}<|call|>"
        )
    return f"{text}<|channel|>final<|message|>{turn['content']}<|return|>"


EVERY = tuple(CASES)
NO_TOOLS = ("reply", "reply with thinking")
FAMILIES = {
    # template: (what a turn is, cases that have an answer); the other cases are refused.
    "qwen2_5": (qwen2_5, EVERY),
    "qwen2_5_training": (qwen2_5, EVERY),
    "qwen3": (qwen3, ("thinking", "reply", "reply with thinking")),
    "qwen3_training": (qwen3, EVERY),
    "qwen3_5_think": (qwen3_5, tuple(c for c in EVERY if c != "retried")),
    "qwen3_5_think_training": (qwen3_5, EVERY),
    "qwen3_5_nothink": (
        qwen3_5,
        tuple(c for c in EVERY if "think" not in c and c != "retried"),
    ),
    "qwen3_5_nothink_training": (qwen3_5, tuple(c for c in EVERY if "think" not in c)),
    "qwen3_6": (qwen3_5, tuple(c for c in EVERY if c != "retried")),
    "qwen3_6_training": (qwen3_5, EVERY),
    "llama3": (llama3, NO_TOOLS),
    "llama3_training": (llama3, NO_TOOLS),
    "llama3_1": (llama3_1, tuple(c for c in EVERY if c != "parallel")),
    "glm4moe": (glm_without_end, EVERY),
    "glm4moe_training": (glm, EVERY),
    "deepseekv3": (deepseek, tuple(c for c in EVERY if c != "two rounds")),
    "deepseekv3_training": (deepseek, tuple(c for c in EVERY if c != "two rounds")),
    "gptoss": (harmony, ("one call", "two rounds", "reply", "reply with thinking")),
    "gptoss_training": (harmony, ("one call", "two rounds", "reply", "reply with thinking")),
}
WITHOUT_THINKING = {"qwen2_5", "qwen2_5_training", "llama3", "llama3_training", "llama3_1"} | {
    "deepseekv3",
    "deepseekv3_training",
}
"""Families whose turns carry no reasoning: what a teacher thought is not in the text."""


def turns_of(messages):
    return [m for m in messages if m["role"] == "assistant"]


@lru_cache
def stand_in(name):
    """A byte-level tokenizer trained here, with the template's special tokens.

    It stands in for a model's own where that cannot be had; the template's edges are the same.
    """
    source = template(name).source
    special = sorted(set(SPECIAL.findall(source))) + ["<BOS>", "<EOS>"]
    made = Loaded(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = [json.dumps(messages, ensure_ascii=False) for messages in CASES.values()]
    made.train_from_iterator([source, *words], trainer)
    return Tokenizer(made, name=f"stand-in of {name}", digest="")
