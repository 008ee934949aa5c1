"""The local MTP engine: a checkpoint policy that drafts, in process and behind our own server."""

import asyncio
import json

import pytest
import torch
from aiohttp.test_utils import TestClient, TestServer
from tiny_checkpoint import make_tokenizer
from tiny_qwen import config, head_for
from transformers import Qwen3_5ForCausalLM

from harness_cli.errors import BadFile
from harness_cli.models.base import Deadline
from harness_cli.models.checkpoint import open_checkpoint
from harness_cli.models.checkpoint_head import as_tensors
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights_write import write_safetensors
from harness_cli.records.chat import ChatRequest
from harness_cli.serving.app import ServedPolicy
from harness_cli.serving.engine_logs.metrics import metrics_stats
from harness_cli.store.checkpoints import checkpoint_policy


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("drafted")
    for name in ("whole", "headless"):
        folder = make_tokenizer(root / name)
        torch.manual_seed(4)
        model = Qwen3_5ForCausalLM(config(vocab_size=259, eos_token_id=258, pad_token_id=256))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(5)
        model.save_pretrained(folder)
        if name == "whole":
            part = folder / "h.part"
            write_safetensors(part, as_tensors(head_for(model), "F32"))
            stitch(part, folder, native=True)
            part.unlink()
    return root


def opened(root, reference):
    return open_checkpoint("p", checkpoint_policy(root, reference), root)


ASKED = [
    ChatRequest(messages=({"role": "user", "content": w},), temperature=0.0, max_tokens=20)
    for w in ("a", "bc", "def")
]


def answers(policy, requests=ASKED):
    async def ask():
        found = await asyncio.gather(*(policy.complete(r, Deadline()) for r in requests))
        await policy.close()
        return found

    return asyncio.run(ask())


def test_a_policy_that_drafts_says_greedily_what_it_says_plainly(root):
    plain, drafted = (answers(opened(root, f"whole{tail}")) for tail in ("", "+mtp"))
    assert [r.token_ids for r in plain] == [r.token_ids for r in drafted]
    for a, b in zip(plain, drafted, strict=True):
        assert b.logprobs == pytest.approx(a.logprobs, abs=1e-3)
        assert 0 < b.ttft_s <= b.latency_s
        assert 0 < a.ttft_s <= a.latency_s


def test_arms_are_policies_of_their_own(root):
    names = {opened(root, f"whole{tail}").id for tail in ("", "+mtp", "+mtp-lossy")}
    assert len(names) == 3
    lossy = checkpoint_policy(root, "whole+mtp-lossy").mtp
    assert (lossy.accept_threshold_single, lossy.accept_threshold_acc) == (0.5, 0.7)


def test_a_checkpoint_without_a_head_cannot_draft(root):
    with pytest.raises(BadFile, match="no draft head"):
        asyncio.run(opened(root, "headless+mtp").warm())


def test_the_role_is_streamed_with_the_first_token_and_not_before(root):
    policy = opened(root, "whole+mtp")
    body = {
        "messages": [{"role": "user", "content": "a"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 20,
        "temperature": 0,
    }

    async def ask():
        async with TestClient(TestServer(ServedPolicy(policy, "p").app())) as client:
            answer = await client.post("/v1/chat/completions", json=body)
            assert answer.status == 200
            told = (await answer.text()).split("\n\n")
            counted = metrics_stats("own", await (await client.get("/metrics")).text())
            assert counted.passes == policy.draft_counts.passes > 0
            assert counted.accept_len == policy.draft_counts.accept_length
            return told

    events = [t.removeprefix("data: ") for t in asyncio.run(ask())]
    told = [json.loads(t) for t in events if t.startswith("{")]
    deltas = [c["choices"][0]["delta"] for c in told if c["choices"]]
    assert deltas[0]["role"] == "assistant"
    assert not [d for d in deltas[1:] if "role" in d]
    assert told[-1]["usage"]["completion_tokens"] == 20
