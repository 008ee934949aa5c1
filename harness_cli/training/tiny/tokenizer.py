"""The tiny model's tokenizer and chat template: every known word is a token, digits stand alone.

A word has two tokens, with a blank before it and without: names are said in quotes and in calls,
other words in sentences. Unknown words fall apart into bytes.
"""

from pathlib import Path
from typing import Final

from harness_cli.models.template_source import COMPACT
from harness_cli.training.chatml import write_tokenizer
from harness_cli.training.tiny.words import all_words

PIECES: Final = (
    '<tool_call>{"name": "', '", "arguments": {"', '": "', '": ', '"}}</tool_call>',
    "}}</tool_call>", '", "', ', "', ' -> "', ' = "', ' : "', '{"', '"}', "\n- ", "\n\n## ",
    "\n\n- ",
)  # fmt: skip
"""What calls, results and lists are made of, each one token."""
VOCABULARY: Final = 1600


def make_tokenizer(folder: Path) -> Path:
    """Write `tokenizer.json`, its settings and the chat template; gives `folder` back."""
    write_tokenizer(
        folder,
        [f"{w} {w}" for w in all_words() for _ in range(9)],
        template=COMPACT.read_text(encoding="utf-8"),
        vocabulary=VOCABULARY,
        context=4096,
        digits_alone=True,
        pieces=PIECES,
    )
    return folder
