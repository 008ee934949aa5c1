"""A checkpoint made in a moment: a random Llama, a byte-level tokenizer, a template with marks.

The template is ChatML with tools, calls as `<tool_call>{json}</tool_call>`, thinking in think tags
and `{% generation %}` around what a policy samples. It is append-only: a conversation that goes on
begins with its text so far.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from harness_cli.training.chatml import END, PAD, write_tokenizer

TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] + '\\n\\n' }}
    {%- endif %}
    {{- '# Tools\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\\n</tools>\\nCall as <tool_call>{"name": …, "arguments": …}</tool_call><|im_end|>\\n' }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>tool\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
        {%- if message.reasoning_content %}
            {{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- message.content }}
        {%- for call in message.tool_calls or () %}
            {{- '\\n' if message.content or not loop.first else '' }}
            {{- '<tool_call>{"name": ' + (call.function.name | tojson) + ', "arguments": ' }}
            {{- (call.function.arguments | tojson) + '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def make_tokenizer(
    folder: Path, *, texts: Iterable[str] = (), vocab: int = 0, template: str = TEMPLATE
) -> Path:
    """The tokenizer's files: bytes alone, or a small BPE of `vocab` ids learnt from `texts`."""
    write_tokenizer(folder, texts, template=template, vocabulary=vocab)
    return folder


def make_tiny(
    folder: Path,
    *,
    hidden: int = 32,
    layers: int = 2,
    heads: int = 4,
    context: int = 8192,
    seed: int = 0,
    texts: Iterable[str] = (),
    vocab: int = 0,
    template: str = TEMPLATE,
    spread: float = 0.02,
) -> Path:
    """A whole checkpoint folder in float32; gives `folder` back.

    `vocab` beyond the 259 of bytes and special tokens needs `texts` to learn merges from; `spread`
    is the standard deviation of the random weights: larger ones make sharper distributions.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    make_tokenizer(folder, texts=texts, vocab=vocab, template=template)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=context,
        initializer_range=spread,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(PAD),
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    return folder
