"""The tiny model's tokenizer and chat template: every known word is a token, digits stand alone.

A word has two tokens, with a blank before it and without: names are said in quotes and in calls,
other words in sentences. Unknown words fall apart into bytes.
"""

import json
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from harness_cli.training.tiny.words import all_words

END: Final = "<|im_end|>"
PAD: Final = "<|endoftext|>"
START: Final = "<|im_start|>"
SPECIAL: Final = (PAD, START, END)
PIECES: Final = (
    '<tool_call>{"name": "', '", "arguments": {"', '": "', '": ', '"}}</tool_call>',
    "}}</tool_call>", '", "', ', "', ' -> "', ' = "', ' : "', '{"', '"}', "\n- ", "\n\n## ",
    "\n\n- ",
)  # fmt: skip
"""What calls, results and lists are made of, each one token."""
VOCABULARY: Final = 1600
TEMPLATE: Final = """\
{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] }}
    {%- if tools %}
        {{- '\\nTools:' }}
        {%- for tool in tools %}
            {{- '\\n- ' + tool.function.description + ' -> "' + tool.function.name + '"' }}
            {%- for given in tool.function.parameters.properties %}{{ ' ' + given }}{% endfor %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>tool\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
        {{- message.content }}
        {%- for call in message.tool_calls or () %}
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


def make_tokenizer(folder: Path) -> Path:
    """Write `tokenizer.json`, its settings and the chat template; gives `folder` back."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([f"{w} {w}" for w in all_words() for _ in range(9)], trainer)
    made.add_tokens([AddedToken(p, special=False, normalized=False) for p in PIECES])
    made.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 4096,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder
