"""A whole project in a temporary folder: git, harness, catalogue, items, a scripted policy, a run.

The policy routes by fixed rules, so that the failures are known: stock questions load the right
skill and never look the stock up; return questions load the wrong skill; greetings pass.
"""

# ruff: noqa: E501  rows of tables read best on one line

import asyncio
import json
import subprocess
from pathlib import Path

from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.store.project import Project

SKILL = """---
name: {name}
description: >-
  {description}
  Loaded before a reply.
metadata:
  harness.kind: reply
---

# {name}

## When to use

- {description}

## Rules

- Say what a tool gave, nothing else.
<!-- harness:protected -->
- Never promise an effect.
<!-- /harness:protected -->
"""
TOOL = """# how it is called
name: {name}
description: {description}
inputSchema:
  type: object
  properties:
    {argument}: {{type: {type}, description: What it is about.}}
  required: [{argument}]
  additionalProperties: false
annotations: {{readOnlyHint: true}}
_meta: {{harness.executor: {executor}}}
"""
FILES = {
    "skills/item-qa/SKILL.md": SKILL.format(name="item-qa", description="Questions about a product."),
    "skills/aftersale/SKILL.md": SKILL.format(name="aftersale", description="Orders that were placed."),
    "skills/greet/SKILL.md": SKILL.format(name="greet", description="A viewer says hello."),
    "tools/get_inventory.yaml": TOOL.format(name="get_inventory", description="Pieces of one link.",
                                            argument="link_id", type="integer", executor="sandbox"),
    "tools/load_skill.yaml": TOOL.format(name="load_skill", description="Read one skill.",
                                         argument="skill", type="string", executor="builtin"),
    "tools/refuse.yaml": TOOL.format(name="refuse", description="Decline a comment.",
                                     argument="reason", type="string", executor="builtin"),
    "prompts/pipeline.yaml": "schema: 1\nblocks:\n  - {name: base}\n  - {name: comments, role: user}\n"
    "constraints:\n  reply_length: {value: 200, range: [80, 300], unit: characters}\n",
    "prompts/blocks/base.md": "You are a host.{% for skill in skills %} {{ skill.name }}: "
    "{{ skill.description }}{% endfor %} {{ constraints.reply_length }}\n",
    "prompts/blocks/comments.md": "{% for c in request.comments %}\n{{ c.text }}\n{% endfor %}\n",
    "hooks/reply-length.yaml": "schema: 1\nname: reply-length\nevent: before_reply\n"
    "checks:\n  - check: length\n    with: {constraint: reply_length}\naction: retry\nmessage: '{reason}'\n",
    "fallback.md": "One short sentence.\n",
    "replies.yaml": "schema: 1\nconservative: {en: One moment please., zh: 请稍等。}\n",
    "judges/final/fallback.md": "x\n",
}  # fmt: skip
STOCK = [
    "how many {} are left",
    "is the {} still in stock",
    "{} in stock?",
    "are there {} left",
    "stock of {}?",
]
RETURNS = [
    "how do I return the {}",
    "can I return my {} for a refund",
    "return for {} please",
    "refund my {}",
]
HELLO = ["hello from {}", "good evening {} fans", "hi everyone near {}", "hey {} people"]
WORDS = ["mug", "lamp", "chair", "scarf", "kettle", "blanket"]
LOAD = "{{text: null, calls: [{{name: load_skill, arguments: {{skill: {}}}}}]}}"
SCRIPT = f"""schema: 1
rules:
  - when: 'stock|left'
    replies: [{LOAD.format("item-qa")}, {{text: A lovely one.}}]
  - when: 'return|refund'
    replies: [{LOAD.format("item-qa")}, {{text: It is made of steel.}}]
  - when: '.'
    replies: [{LOAD.format("greet")}, {{text: Hello and welcome!}}]
"""
CATALOGUE = {
    "snapshot": "2026-01-01",
    "products": [{"id": "p-1", "name": "Mug", "category": "home", "price": 39, "list_price": 59}],
    "stock": [{"product": "p-1", "units": 12}],
    "rooms": [{"id": "r-1", "name": "Room", "host": "H", "products": ["p-1"]}],
}


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True)
    return done.stdout.decode().strip()


def items(n: int = 60):
    for i in range(n):
        turn = i // 3
        word = WORDS[(turn * 5 + i) % len(WORDS)]
        kind = ("stock", "returns", "hello")[i % 3]
        texts = {"stock": STOCK, "returns": RETURNS, "hello": HELLO}[kind]
        expect = {
            "stock": {"skills": ["item-qa"], "tools": [{"name": "get_inventory", "arguments": {"link_id": 1}}],
                      "facts": [{"product": "p-1", "field": "stock", "value": 12, "answer": "stock"}],
                      "answers": ["stock"]},
            "returns": {"skills": ["aftersale"], "answers": ["order_policy"]},
            "hello": {"skills": ["greet"], "answers": ["greet"]},
        }[kind]  # fmt: skip
        yield {
            "id": f"{kind}-{i:02}",
            "split": "dev" if i < 54 else "test",
            "category": {"stock": "product-qa", "returns": "after-sales", "hello": "chat"}[kind],
            "request": {
                "comments": [{"viewer": "v", "text": texts[turn % len(texts)].format(word)}],
                "room": {"id": "r-1", "current_link": 1, "products": ["p-1"]},
            },
            "expect": expect,
        }


def make_shop(root: Path, *, own_repository: bool = False) -> Project:
    """The project, committed; with `own_repository` the harness is a repository inside it."""
    for path, text in FILES.items():
        write(root / "harness_repo" / path, text)
    write(
        root / "harness.yaml",
        "schema: 1\npolicy: shop\npolicies:\n  shop: {kind: scripted, script: s.yaml}\n",
    )
    write(root / "s.yaml", SCRIPT)
    ignored = ".harness/\n" + ("harness_repo/\n" if own_repository else "")
    write(root / ".gitignore", ignored)
    write(root / "evalsets/catalogue/catalogue.json", json.dumps(CATALOGUE))
    write(root / "evalsets/shop/evalset.yaml",
          "name: shop\nsplits: {dev: 54, test: 6}\nseal: {splits: [test]}\n")  # fmt: skip
    write(root / "evalsets/shop/items.jsonl", "".join(json.dumps(i) + "\n" for i in items()))
    for folder in (root, root / "harness_repo") if own_repository else (root,):
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "base")
    return Project.find(root)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run_shop(project: Project, **options) -> str:
    """One real run of the dev split; returns its id."""
    outcome = asyncio.run(evaluate(project, EvalOptions(evalset="shop", **options)))
    return outcome.run.id
