"""The policy over an engine's sampler, with a real small model as the sampler."""

import asyncio

import pytest
import torch
from tiny_checkpoint import make_tiny

from harness_cli.errors import ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.checkpoint_model import CheckpointModel, Row, load_tokenizer
from harness_cli.records.chat import ChatRequest
from harness_cli.training.scale.server_policy import NAME, Sampled, ServerPolicy, reader_of

CALL = '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call><|im_end|>'
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = make_tiny(tmp_path_factory.mktemp("m") / "base")
    return CheckpointModel.open(folder, ChatTemplate.read(folder))


@pytest.fixture
def reader(model):
    return reader_of(model.tokenizer, context=512)


def sampler(model, seen, *, text=None, version=(3, 3)):
    """What an engine's server does: `text` for the first answer, the model's own after it."""

    async def generate(prompt, most):
        seen.append((list(prompt), most))
        row = Row(list(prompt), min(most, 12), seed="s")
        if text is not None and len(seen) == 1:
            ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
            with torch.inference_mode():
                logits = model.model(torch.tensor([[*prompt, *ids]])).logits[0].log_softmax(-1)
            places = range(len(prompt) - 1, len(prompt) + len(ids) - 1)
            logp = [float(logits[at, token]) for at, token in zip(places, ids, strict=True)]
            return Sampled(ids, logp, *version)
        model.sample([row])
        return Sampled(row.ids, row.logprobs, *version)

    return generate


def ask(policy, messages, **given):
    request = ChatRequest(messages=tuple(messages), tools=(TOOL,), max_tokens=64, **given)
    return asyncio.run(policy.complete(request, Deadline()))


def test_an_answer_brings_what_was_read_and_what_was_sampled(model, reader):
    seen = []
    policy = ServerPolicy(reader, sampler(model, seen, text=CALL))
    reply = ask(policy, [{"role": "user", "content": "look, please"}])
    assert [c.name for c in reply.tool_calls] == ["look"]
    assert list(reply.prompt_ids) == seen[0][0]
    assert reader.text(reply.token_ids) == CALL
    assert len(reply.logprobs) == len(reply.token_ids)
    assert all(p < 0 for p in reply.logprobs)
    assert (reply.policy, reply.model) == (NAME, f"{NAME}@3")
    assert policy.span == (3, 3)


def test_the_next_prompt_begins_with_the_tokens_that_were_sampled(model, reader):
    seen = []
    policy = ServerPolicy(reader, sampler(model, seen, text=CALL))
    asked = [{"role": "user", "content": "look, please"}]
    first = ask(policy, asked)
    call = {"id": "c", "type": "function",
            "function": {"name": "look", "arguments": '{"at": 1}'}}  # fmt: skip
    more = [*asked, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "a mug"}]  # fmt: skip
    ask(policy, more)
    whole = [*first.prompt_ids, *first.token_ids]
    assert seen[1][0][: len(whole)] == whole


def test_the_limit_is_the_smaller_of_request_and_context(model, reader):
    seen = []
    ask(ServerPolicy(reader, sampler(model, seen)), [{"role": "user", "content": "x"}])
    assert seen[0][1] == 64
    long = reader_of(model.tokenizer, context=len(seen[0][0]) + 10)
    seen = []
    ask(ServerPolicy(long, sampler(model, seen)), [{"role": "user", "content": "x"}])
    assert seen[0][1] == 10


def test_a_prompt_beyond_the_context_is_refused(model):
    policy = ServerPolicy(reader_of(model.tokenizer, context=8), sampler(model, []))
    with pytest.raises(ProviderError, match="context"):
        ask(policy, [{"role": "user", "content": "x" * 100}])


@pytest.mark.parametrize(
    ("sampled", "said"),
    [
        (Sampled([5, 6], None), "log-probabilities"),
        (Sampled([5, 6], [-1.0]), "log-probabilities"),
        (Sampled([], []), "no token"),
    ],
)
def test_tokens_without_their_probabilities_are_no_answer(reader, sampled, said):
    async def generate(prompt, most):
        return sampled

    with pytest.raises(ProviderError, match=said):
        ask(ServerPolicy(reader, generate), [{"role": "user", "content": "x"}])


def test_a_sampler_that_hangs_is_given_up(reader):
    async def generate(prompt, most):
        await asyncio.sleep(60)

    policy = ServerPolicy(reader, generate)
    request = ChatRequest(messages=({"role": "user", "content": "x"},))
    with pytest.raises(ProviderError, match="deadline"):
        asyncio.run(policy.complete(request, Deadline.within(0.05)))


def test_versions_that_change_within_a_rollout_are_told_apart_only_where_that_is_an_error(
    model, reader
):
    apart = ServerPolicy(reader, sampler(model, [], version=(2, 4)), one_version=False)
    reply = ask(apart, [{"role": "user", "content": "x"}])
    assert reply.model == NAME  # one name: a rollout that spans updates is no error there
    assert apart.span == (2, 4)


def test_a_tokenizer_without_a_template_is_refused(model, tmp_path):
    model.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").unlink(missing_ok=True)
    bare = load_tokenizer(tmp_path)
    bare.chat_template = None
    with pytest.raises(UsageError, match="no chat template"):
        reader_of(bare, context=64)
