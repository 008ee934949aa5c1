"""A small shop whose teacher is a script: right and wrong answers, retries, refused calls."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from small_shop import git, make_shop, write

from harness_cli.store.project import Project

LOAD = "{name: load_skill, arguments: {skill: %s}}"
STOCK = "{name: get_inventory, arguments: {link_id: 1}}"
LONG = "Welcome to the room, dear viewer. " * 8
SCRIPT = f"""schema: 1
rules:
  - when: '^\\[harness\\]'
    replies: [{{text: Hello and welcome!}}]
  - when: 'long'
    replies: [{{text: null, calls: [{LOAD % "greet"}]}}, {{text: "{LONG}"}}]
  - when: 'both'
    replies:
      - text: I look it up.
        reasoning: Stock is asked.
        calls: [{LOAD % "item-qa"}, {STOCK}, {{name: get_inventory, arguments: {{link_id: many}}}}]
      - {{text: There are 12 left., reasoning: The tool says 12.}}
  - when: 'unclosed'
    replies:
      - {{text: null, calls: [{{name: get_inventory, arguments: '{{"link_id": '}}]}}
      - {{text: null, calls: [{LOAD % "item-qa"}, {STOCK}]}}
      - {{text: There are 12 left.}}
  - when: 'two calls'
    replies:
      - {{text: null, calls: [{LOAD % "item-qa"}]}}
      - {{text: null, calls: [{STOCK}]}}
      - {{text: There are 12 left.}}
  - when: 'wrong'
    replies: [{{text: null, calls: [{LOAD % "item-qa"}]}}, {{text: There are 99 left.}}]
  - when: 'cut'
    replies: [{{text: null, calls: [{LOAD % "greet"}]}}, {{text: Hello and, finish_reason: length}}]
  - when: 'broken'
    replies: [{{error: bad_request}}]
  - when: '.'
    replies: [{{text: null, calls: [{LOAD % "greet"}]}}, {{text: Hello and welcome!}}]
"""
STOCK_ASKED = {
    "skills": ["item-qa"],
    "tools": [{"name": "get_inventory", "arguments": {"link_id": 1}}],
    "facts": [{"product": "p-1", "field": "stock", "value": 12, "answer": "stock"}],
    "answers": ["stock"],
}
GREETED = {"skills": ["greet"], "answers": ["greet"]}
ITEMS = {
    "hello-1": ("hello everyone", GREETED),
    "hello-2": ("good evening", GREETED),
    "long-1": ("hello, a long one", GREETED),
    "long-2": ("hi, long again", GREETED),
    "both-1": ("both mugs: how many are left", STOCK_ASKED),
    "unclosed-1": ("unclosed: how many are left", STOCK_ASKED),
    "two-1": ("two calls: how many are left", STOCK_ASKED),
    "wrong-1": ("wrong: how many are left", STOCK_ASKED),
    "cut-1": ("hello, cut", GREETED),
    "broken-1": ("hello, broken", GREETED),
}


def item(name, text, expect, split="dev"):
    return {
        "id": name,
        "split": split,
        "category": "chat" if expect is GREETED else "product-qa",
        "request": {
            "comments": [{"viewer": "v", "text": text}],
            "room": {"id": "r-1", "current_link": 1, "products": ["p-1"]},
        },
        "expect": expect,
    }


def make_lesson_shop(root: Path, *, script: str = SCRIPT) -> Project:
    """The shop with these items and this teacher, committed."""
    make_shop(root)
    write(root / "s.yaml", script)
    rows = [item(name, text, expect) for name, (text, expect) in ITEMS.items()]
    rows.append(item("test-1", "hello test", GREETED, split="test"))
    write(root / "evalsets/shop/items.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write(
        root / "evalsets/shop/evalset.yaml",
        f"name: shop\nsplits: {{dev: {len(ITEMS)}, test: 1}}\nseal: {{splits: [test]}}\n",
    )
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "lessons")
    return Project.find(root)


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls %}<call>{{ c.function.name }} "
    "{{ c.function.arguments | tojson }}</call>{% endfor %}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A small template with generation marks."""


def byte_tokenizer(path: Path) -> Path:
    """A tokenizer of bytes and ChatML's special tokens, written as a model has it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    path.mkdir(parents=True, exist_ok=True)
    made.save(str(path / "tokenizer.json"))
    (path / "chat_template.jinja").write_text(CHATML)
    return path
