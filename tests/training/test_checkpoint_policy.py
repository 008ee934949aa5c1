"""The `checkpoint` policy: what it samples, what it records, what it refuses."""

import asyncio
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_checkpoint import END, make_tiny, make_tokenizer

from harness_cli.errors import BadFile, ProviderError, UnknownName, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.checkpoint import CheckpointPolicy, open_checkpoint
from harness_cli.models.checkpoint_model import CheckpointModel, Row, draw, load_tokenizer
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.config import CheckpointRef, PolicyConfig
from harness_cli.store.checkpoints import digest_of
from harness_cli.store.project import Project
from harness_cli.training.segments import segments
from harness_cli.training.tokens import Tokenizer, token_row

TOOLS = (
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Looks a link up",
            "parameters": {"type": "object", "properties": {"link": {"type": "integer"}}},
        },
    },
)
CALL = (
    "<think>\nhm\n</think>\n\nOne moment\n"
    '<tool_call>{"name": "look_up", "arguments": {"link": 3}}</tool_call>'
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("tiny") / "model", spread=0.4)


@pytest.fixture(scope="module")
def loaded(tiny):
    return CheckpointModel.open(tiny, ChatTemplate.read(tiny))


def policy_of(model: CheckpointModel, **settings) -> CheckpointPolicy:
    config = PolicyConfig(kind="checkpoint", **settings)
    return CheckpointPolicy("student", config, lambda: model, digest="0" * 64)


def asked(text: str = "hi", **more) -> ChatRequest:
    return ChatRequest(messages=({"role": "user", "content": text},), **{"max_tokens": 24, **more})


def answers(policy: CheckpointPolicy, *requests: ChatRequest, seconds=None) -> list[ChatReply]:
    async def all_of_them():
        try:
            return await asyncio.gather(
                *(policy.complete(r, Deadline.within(seconds)) for r in requests)
            )
        finally:
            await policy.close()

    return asyncio.run(all_of_them())


class Parrot(torch.nn.Module):
    """A model that says one thing, token by token, whatever it is asked."""

    def __init__(self, ids: list[int], vocabulary: int, *, slow: float = 0.0) -> None:
        super().__init__()
        self.config = SimpleNamespace(max_position_embeddings=100_000)
        self.generation_config = SimpleNamespace(eos_token_id=None)
        self.device = torch.device("cpu")
        self.ids, self.vocabulary, self.slow = ids, vocabulary, slow

    def forward(self, input_ids, attention_mask, position_ids, cache, use_cache):
        time.sleep(self.slow)
        step = 0 if cache is None else cache.step + 1
        logits = torch.zeros(len(input_ids), 1, self.vocabulary)
        logits[:, :, self.ids[step % len(self.ids)]] = 50.0
        kept = SimpleNamespace(step=step, reorder_cache=lambda chosen: None)
        return SimpleNamespace(logits=logits, cache=kept)


def parrot(folder: Path, text: str, *, ids=None, slow=0.0, template=None) -> CheckpointModel:
    tokenizer = load_tokenizer(folder)
    said = ids or tokenizer(text, add_special_tokens=False)["input_ids"]
    model = Parrot(said, len(tokenizer), slow=slow)
    return CheckpointModel(model, tokenizer, template or ChatTemplate.read(folder))


def test_one_seed_gives_one_text_alone_or_in_company(loaded):
    requests = [asked("hello " * (3 * i + 1), seed=i, top_p=0.9) for i in range(5)]
    alone = [answers(policy_of(loaded), r)[0] for r in requests]
    together = answers(policy_of(loaded), *requests)
    assert [r.token_ids for r in together] == [r.token_ids for r in alone]
    for one, other in zip(alone, together, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert len({r.token_ids for r in together}) == 5


def test_another_seed_gives_another_text_and_none_at_all_is_not_repeated(loaded):
    found = answers(policy_of(loaded), asked(seed=1), asked(seed=2), asked(), asked())
    assert len({r.token_ids for r in found}) == 4


def test_temperature_zero_takes_the_likeliest_token(loaded):
    (reply,) = answers(policy_of(loaded), asked(temperature=0.0))
    whole = torch.tensor([[*reply.prompt_ids, *reply.token_ids]])
    logits = loaded.model(input_ids=whole).logits[0, len(reply.prompt_ids) - 1 : -1]
    assert list(reply.token_ids) == logits.argmax(-1).tolist()


def test_log_probabilities_are_of_the_whole_distribution_at_the_temperature(loaded):
    (reply,) = answers(policy_of(loaded), asked(temperature=0.7, top_p=0.3, seed=3))
    whole = torch.tensor([[*reply.prompt_ids, *reply.token_ids]])
    with torch.no_grad():
        logits = loaded.model(input_ids=whole).logits[0, len(reply.prompt_ids) - 1 : -1]
    logp = (logits / 0.7).log_softmax(-1)
    ids = torch.tensor(reply.token_ids)
    assert reply.logprobs == pytest.approx(logp.gather(1, ids[:, None])[:, 0].tolist(), abs=1e-4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.01, 10), min_size=2, max_size=8),
    st.floats(0.05, 1.0),
    st.floats(0, 0.999999),
)
def test_a_draw_keeps_the_likeliest_tokens_that_reach_top_p(weights, top_p, uniform):
    p = torch.tensor(weights, dtype=torch.float64)
    p = p / p.sum()
    token = draw(p.log(), top_p, uniform)
    likelier = float(p[p > p[token]].sum())
    assert likelier < top_p + 1e-9


def test_draws_follow_the_distribution():
    p = torch.tensor([0.5, 0.3, 0.2]).log()
    drawn = [draw(p, 1.0, (i + 0.5) / 1000) for i in range(1000)]
    assert [drawn.count(i) for i in range(3)] == pytest.approx([500, 300, 200], abs=1)
    assert {draw(p, 0.75, i / 100) for i in range(100)} == {0, 1}


def test_max_tokens_cut_an_answer_off(loaded):
    (reply,) = answers(policy_of(loaded, max_tokens=3), asked(seed=2, max_tokens=50))
    assert reply.finish_reason == "length"
    assert len(reply.token_ids) == 3
    assert reply.usage.output_tokens == 3


def test_every_end_token_ends_an_answer(tiny):
    tokenizer = load_tokenizer(tiny)
    bell = tokenizer("\a", add_special_tokens=False)["input_ids"][0]
    for end in (tokenizer.eos_token_id, bell):
        model = parrot(tiny, "", ids=[*tokenizer("ok")["input_ids"], end])
        model.ends = frozenset({tokenizer.eos_token_id, bell})
        (reply,) = answers(policy_of(model), asked())
        assert (reply.content, reply.finish_reason) == ("ok", "stop")
        assert reply.token_ids[-1] == end


def test_the_end_token_of_the_template_ends_an_answer_though_the_model_names_another(tiny):
    model = parrot(tiny, "x")
    model.tokenizer.eos_token = "<|endoftext|>"
    assert CheckpointModel(model.model, model.tokenizer, model.template).ends == {
        model.tokenizer.convert_tokens_to_ids(t) for t in ("<|endoftext|>", END)
    }


def test_an_answer_is_read_as_reasoning_words_and_calls(tiny):
    (reply,) = answers(policy_of(parrot(tiny, CALL + END)), asked(tools=TOOLS, max_tokens=200))
    assert reply.reasoning == "hm"
    assert reply.content == "One moment"
    assert [(c.name, msgspec.json.decode(c.arguments)) for c in reply.tool_calls] == [
        ("look_up", {"link": 3})
    ]
    assert reply.finish_reason == "tool_calls"


def test_a_stop_word_ends_an_answer_before_it(tiny):
    (reply,) = answers(policy_of(parrot(tiny, "one two three")), asked(stop=("two",)))
    assert (reply.content, reply.finish_reason) == ("one ", "stop")


def test_what_is_sampled_is_what_a_training_row_trains(tiny):
    """ADR 0013: from the end of the generation prompt to the end token."""
    (reply,) = answers(policy_of(parrot(tiny, CALL + END)), asked(tools=TOOLS, max_tokens=200))
    said = {
        "role": "assistant",
        "content": reply.content,
        "reasoning_content": reply.reasoning,
        "tool_calls": [
            {"id": c.id, "function": {"name": c.name, "arguments": c.arguments}}
            for c in reply.tool_calls
        ],
    }
    messages = [{"role": "user", "content": "hi"}, said]
    row = token_row(Tokenizer.read(tiny), segments(ChatTemplate.read(tiny), messages, list(TOOLS)))
    trained = [i for i, segment in enumerate(row.segment_ids) if segment]
    assert row.input_ids[: trained[0]] == list(reply.prompt_ids)
    assert [row.input_ids[i] for i in trained] == list(reply.token_ids)


def test_a_sampled_turn_keeps_its_tokens_in_the_next_prompt(tmp_path):
    """Retokenisation: byte by byte was sampled what the tokenizer would write in fewer tokens."""
    words = ["hello there " * 20]
    folder = make_tokenizer(tmp_path / "bpe", texts=words, vocab=300)
    bytewise = make_tokenizer(tmp_path / "bytes")
    tokenizer = load_tokenizer(folder)
    by_byte = load_tokenizer(bytewise)
    pieces = [by_byte.convert_ids_to_tokens(i) for i in by_byte("hello there")["input_ids"]]
    ids = [*tokenizer.convert_tokens_to_ids(pieces), tokenizer.eos_token_id]
    assert len(tokenizer("hello there")["input_ids"]) < len(ids) - 1
    policy = policy_of(parrot(folder, "", ids=ids))

    async def two_turns():
        first = await policy.complete(asked(), Deadline())
        messages = (
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": "and?"},
        )
        second = await policy.complete(ChatRequest(messages=messages, max_tokens=24), Deadline())
        await policy.close()
        return first, second

    first, second = asyncio.run(two_turns())
    sampled = [*first.prompt_ids, *first.token_ids]
    assert list(second.prompt_ids[: len(sampled)]) == sampled


def test_a_prompt_that_fills_the_context_is_the_callers_error(tiny):
    model = CheckpointModel.open(tiny, ChatTemplate.read(tiny), context=40)
    with pytest.raises(ProviderError, match="context of this checkpoint 40") as caught:
        answers(policy_of(model), asked("long " * 20))
    assert caught.value.kind == "bad_request"
    assert not caught.value.retryable


def test_an_answer_ends_where_the_context_does(tiny):
    model = CheckpointModel.open(tiny, ChatTemplate.read(tiny), context=60)
    (reply,) = answers(policy_of(model), asked(seed=2, max_tokens=500))
    assert len(reply.prompt_ids) + len(reply.token_ids) <= 60
    assert reply.finish_reason in ("length", "stop")


NO_TOOLS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"  # noqa: E501


def test_a_template_without_tools_is_refused_for_tools_and_serves_without(tiny):
    model = parrot(tiny, "ok" + END, template=ChatTemplate(NO_TOOLS, name="plain"))
    with pytest.raises(ProviderError, match=r"knows no tools.*trl:qwen2_5_training"):
        answers(policy_of(model), asked(tools=TOOLS))
    (reply,) = answers(policy_of(model), asked())
    assert reply.content == "ok"


def test_a_harness_agent_is_not_opened_over_a_template_without_tools(tiny, tmp_path):
    plain = tmp_path / "plain"
    shutil.copytree(tiny, plain)
    (plain / "chat_template.jinja").write_text(NO_TOOLS)
    config = PolicyConfig(kind="checkpoint", checkpoint=CheckpointRef(uri="plain"))
    with pytest.raises(UsageError, match="knows no tools") as caught:
        open_checkpoint("student", config, tmp_path).check_tools()
    assert "trl:qwen2_5_training" in caught.value.hint
    open_checkpoint(
        "student", msgspec.structs.replace(config, template="trl:qwen2_5_training"), tmp_path
    ).check_tools()


def test_another_template_can_be_named_in_its_place(tiny, tmp_path):
    plain = tmp_path / "plain"
    shutil.copytree(tiny, plain)
    (plain / "chat_template.jinja").write_text(NO_TOOLS)
    config = PolicyConfig(
        kind="checkpoint",
        checkpoint=CheckpointRef(uri="plain"),
        template="trl:qwen2_5_training",
        max_tokens=4,
    )
    policy = open_checkpoint("student", config, tmp_path)
    assert policy.loaded().template.arguments == "object"
    (reply,) = answers(policy, asked(tools=TOOLS))
    assert reply.usage.output_tokens <= 4


def test_a_deadline_ends_an_answer_and_the_policy_goes_on(tiny):
    policy = policy_of(parrot(tiny, "x" * 40, slow=0.05))

    async def late():
        with pytest.raises(ProviderError, match="within the deadline") as caught:
            await policy.complete(asked(max_tokens=100), Deadline.within(0.3))
        assert caught.value.kind == "timeout"
        begun = time.monotonic()
        reply = await policy.complete(asked(max_tokens=2), Deadline())
        await policy.close()
        return reply, time.monotonic() - begun

    reply, seconds = asyncio.run(late())
    assert len(reply.token_ids) == 2
    assert seconds < 3  # the first answer left the batch instead of being finished


def test_a_cancelled_caller_leaves_its_company_alone(tiny):
    policy = policy_of(parrot(tiny, "abc" * 10, slow=0.02))

    async def one_leaves():
        leaving = asyncio.ensure_future(policy.complete(asked(max_tokens=30), Deadline()))
        staying = asyncio.ensure_future(policy.complete(asked(max_tokens=30), Deadline()))
        await asyncio.sleep(0.2)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        reply = await staying
        await policy.close()
        return reply

    assert len(asyncio.run(one_leaves()).token_ids) == 30


def test_swapped_weights_have_another_id_and_answers_name_it(tiny, loaded):
    policy = policy_of(CheckpointModel(loaded.model, loaded.tokenizer, loaded.template))
    before = policy.id
    other = make_tiny(tiny.parent / "other", seed=9, spread=0.4)

    async def swapped():
        first = await policy.complete(asked(seed=1), Deadline())
        policy.swap(CheckpointModel.open(other, loaded.template).model, version="step-1")
        second = await policy.complete(asked(seed=1), Deadline())
        await policy.close()
        return first, second

    first, second = asyncio.run(swapped())
    assert first.model == before != policy.id == second.model
    assert first.token_ids != second.token_ids
    assert policy.version == "step-1"


def test_the_id_is_of_the_weights_wherever_they_lie(tiny, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(tiny, moved)

    def named(folder):
        config = PolicyConfig(kind="checkpoint", checkpoint=CheckpointRef(uri=str(folder)))
        return open_checkpoint("student", config, tmp_path).id

    assert named(tiny) == named(moved)
    make_tiny(moved, seed=4)
    assert named(tiny) != named(moved)


def test_an_adapter_is_laid_over_its_base_and_into_the_id(tiny, tmp_path):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(tiny)
    config = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    get_peft_model(base, config).save_pretrained(tmp_path / "adapter")
    plain = PolicyConfig(kind="checkpoint", checkpoint=CheckpointRef(uri=str(tiny)))
    over = msgspec.structs.replace(plain, adapter="adapter")
    one, other = (open_checkpoint("student", c, tmp_path) for c in (plain, over))
    assert one.id != other.id
    (first,), (second,) = (answers(p, asked(seed=1)) for p in (one, other))
    assert first.token_ids != second.token_ids


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({}, UsageError, "names no checkpoint"),
        ({"checkpoint": CheckpointRef(uri="nowhere")}, UnknownName, "no checkpoint named"),
        ({"checkpoint": CheckpointRef(uri="empty")}, BadFile, "no checkpoint folder"),
        ({"checkpoint": CheckpointRef(uri="model", sha256="0" * 64)}, UsageError, "is not the"),
        ({"checkpoint": CheckpointRef(uri="model"), "template": "no.jinja"}, BadFile, "no chat"),
    ],
)
def test_settings_that_name_no_checkpoint_are_refused_before_anything_is_loaded(
    tiny, tmp_path, settings, error, words
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "model").symlink_to(tiny)
    with pytest.raises(error, match=words):
        open_checkpoint("student", PolicyConfig(kind="checkpoint", **settings), tmp_path)


def test_a_folder_is_a_policy_without_an_entry(tiny, tmp_path):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    (tmp_path / "model").symlink_to(tiny)
    project = Project.find(tmp_path)
    name, config = project.policy("checkpoint:model")
    assert name == "checkpoint:model"
    assert open_checkpoint(name, config, tmp_path).id.startswith("checkpoint:model@")
    with pytest.raises(UnknownName, match="no checkpoint named `other`"):
        project.policy("checkpoint:other")


def test_the_digest_covers_the_template_and_the_tokenizer(tiny, tmp_path):
    moved = tmp_path / "model"
    shutil.copytree(tiny, moved)
    before = digest_of(moved)
    (moved / "README.md").write_text("nothing that decides an answer")
    assert digest_of(moved) == before
    (moved / "chat_template.jinja").write_text(NO_TOOLS)
    assert digest_of(moved) != before


def test_batches_hold_no_more_rows_than_the_policy_allows(tiny):
    widths = []

    class Counting(Parrot):
        def forward(self, input_ids, **given):
            widths.append(len(input_ids))
            return super().forward(input_ids, **given)

    tokenizer = load_tokenizer(tiny)
    model = CheckpointModel(Counting([5, 6, 7], len(tokenizer)), tokenizer, ChatTemplate.read(tiny))
    found = answers(policy_of(model, concurrency=2), *(asked(max_tokens=3) for _ in range(5)))
    assert len(found) == 5
    assert max(widths) == 2


def test_rows_that_ended_leave_the_batch(loaded):
    rows = [Row(prompt=[5, 6, 7], most=n, seed=str(n)) for n in (2, 6)]
    seen = []
    loaded.sample(rows, lambda row: seen.append(len(row.ids)))
    assert seen == [2, 6] or rows[1].finish == "stop"


def test_whoever_has_the_last_answer_finds_the_model_in_training_again(tiny):
    """A trainer goes on with the very module that sampled."""
    model = CheckpointModel.open(tiny, ChatTemplate.read(tiny))
    model.model.train()
    modes = []
    rows = [Row(prompt=[5, 6, 7], most=n, seed="1") for n in (2, 4, 4)]
    model.sample(rows, lambda row: modes.append((len(row.ids), model.model.training)))
    assert modes[0] == (2, False)
    assert all(training for length, training in modes if length == 4)
