"""A small harness that is right in every way; tests break it in one."""

import subprocess
from pathlib import Path

from harness_cli.store.tree import EXECUTABLE, FILE, Entry

SKILL = """---
name: item-qa
description: Answers questions about a product.
license: Apache-2.0
metadata:
  harness.kind: reply
  harness.version: "1.0"
  harness.channel: public private
  harness.tools: get_price
allowed-tools: get_price
---

# Product questions

## Rules

- Look a fact up before you say it.
- Name the link number once.

## Tools

- `get_price`: for one link.
"""
TOOL = """name: get_price
description: The price of a link.
inputSchema:
  type: object
  properties:
    link_id: {type: integer, minimum: 1, description: The link number.}
  required: [link_id]
  additionalProperties: false
annotations: {readOnlyHint: true}
"""
LOAD = """name: load_skill
description: Read one skill.
inputSchema:
  type: object
  properties:
    skill: {type: string}
  required: [skill]
  additionalProperties: false
_meta: {harness.executor: builtin}
"""
PIPELINE = """schema: 1
blocks:
  - {name: base}
  - {name: products}
  - {name: faq, when: faq}
  - {name: ended, when: room.status == ended}
  - {name: comments, role: user}
constraints:
  reply_length: {value: 80, range: [40, 200], unit: characters}
"""
HOOK = """schema: 1
name: reply-length
event: before_reply
checks:
  - check: length
    with: {constraint: reply_length}
  - check: forbid_pattern
    with: {patterns: ["(?i)guarantee"], on: reply}
action: retry
message: "{reason}"
"""
FILES = {
    "skills/item-qa/SKILL.md": SKILL,
    "tools/get_price.yaml": TOOL,
    "tools/load_skill.yaml": LOAD,
    "prompts/pipeline.yaml": PIPELINE,
    "prompts/blocks/base.md": "You are a host. At most {{ constraints.reply_length }} characters.\n"
    "{% for skill in skills %}\n- {{ skill.name }}: {{ skill.description }}\n{% endfor %}\n",
    "prompts/blocks/products.md": "{% for p in products %}\n{{ p.link }}. {{ p.name }}"
    "{% if p.current %} (now){% endif %}\n\n{% endfor %}\n",
    "prompts/blocks/faq.md": "{% for f in request.faq %}\nQ {{ f.question }} A {{ f.answer }}\n"
    "{% endfor %}\n",
    "prompts/blocks/ended.md": "The room has ended.\n",
    "prompts/blocks/comments.md": "{% for c in request.comments %}\n{{ c.viewer }}: {{ c.text }}\n"
    "{% endfor %}\n",
    "hooks/reply-length.yaml": HOOK,
    "fallback.md": "Answer in one short sentence.\n",
    "replies.yaml": "schema: 1\nconservative: {en: One moment please., zh: 请稍等。}\n",
}


def changed_files(changed: dict[str, str | bytes | None]) -> dict[str, Entry]:
    """The files, with some replaced, added or (None) left out."""
    texts: dict[str, str | bytes | None] = {**FILES, **changed}
    return {
        path: Entry(
            EXECUTABLE if path.endswith(".sh") else FILE,
            text.encode() if isinstance(text, str) else text,
        )
        for path, text in texts.items()
        if text is not None
    }


def write(folder: Path, files: dict[str, str] | None = None) -> None:
    """The files on disk, under `folder`."""
    for path, text in (files or FILES).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def git(folder: Path, *args: str) -> str:
    """One git command in a folder."""
    done = subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True)
    return done.stdout.decode().strip()


def committed(folder: Path, message: str = "state") -> str:
    """Everything in a repository committed; returns the commit."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def project(folder: Path) -> Path:
    """A project with the small harness, committed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "harness.yaml").write_text("schema: 1\n")
    (folder / ".gitignore").write_text(".harness/\n*.log\n")
    write(folder / "harness_repo")
    committed(folder)
    return folder
