"""The bench project: one tool `lookup`, a system prompt of 8 KB, two declarative hooks.

The stub asks for `lookup` on the first turn and answers on the second, so an item is two calls.
"""

import json
import subprocess
from pathlib import Path

RULES = (
    "Rule {n}. When a viewer asks about article {n}, look the article up before you speak of it, "
    "say only what the result says, keep to one or two spoken sentences, and never promise what "
    "the shop has not confirmed in its order policy.\n"
)
PROMPT_BYTES = 8192


def make_project(folder: Path, items: int, base_url: str, **policy: object) -> Path:
    """A committed project in `folder` whose policy `stub` is served at `base_url`."""
    harness = folder / "harness_repo"
    for name in ("prompts/blocks", "tools", "hooks", "skills/chat"):
        (harness / name).mkdir(parents=True)
    settings = {"kind": "openai", "model": "stub", "base_url": base_url, **policy}
    write(folder / "harness.yaml", {"schema": 1, "policy": "stub", "policies": {"stub": settings}})
    write(folder / ".gitignore", ".harness/\n")
    write(harness / "prompts/blocks/base.md", prompt())
    write(
        harness / "prompts/blocks/ask.md",
        "{% for c in request.comments %}{{ c.text }}\n{% endfor %}",
    )
    blocks = [{"name": "base"}, {"name": "ask", "role": "user"}]
    write(harness / "prompts/pipeline.yaml", {"schema": 1, "blocks": blocks})
    write(harness / "skills/chat/SKILL.md", SKILL)
    write(harness / "tools/lookup.yaml", LOOKUP)
    write(harness / "tools/load_skill.yaml", LOAD_SKILL)
    for hook in HOOKS:
        write(harness / f"hooks/{hook['name']}.yaml", hook)
    write(harness / "fallback.md", "Answer in one sentence.\n")
    write(harness / "replies.yaml", {"schema": 1, "conservative": {"en": "One moment, please."}})
    make_evalset(folder / "evalsets" / "bench", items)
    commit(folder)
    return folder


def make_evalset(folder: Path, items: int) -> None:
    """`items` items, each with its own sample id and its own tool return."""
    folder.mkdir(parents=True)
    header = {"schema": 1, "name": "bench", "splits": {"dev": items}, "catalogue": None}
    write(folder / "evalset.yaml", header)
    with (folder / "items.jsonl").open("w") as file:
        for n in range(items):
            file.write(json.dumps(item(n)) + "\n")


def item(n: int) -> dict:
    return {
        "id": f"bench-{n:06d}",
        "split": "dev",
        "category": f"c{n % 4}",
        "request": {"comments": [{"viewer": "v1", "text": f"What about SID={n} today?"}]},
        "expect": {"tools": [{"name": "lookup"}], "answers": ["chat"]},
        "assert": [{"type": "icontains", "value": "42"}],
        "tool_returns": {"lookup": {"article": n, "answer": 42}},
    }


def prompt() -> str:
    """The base block: at least `PROMPT_BYTES` of rules."""
    text, n = "You are the host of a live room.\n", 0
    while len(text.encode()) < PROMPT_BYTES:
        n += 1
        text += RULES.format(n=n)
    return text


LOOKUP = {
    "name": "lookup",
    "description": "Look an article up.",
    "inputSchema": {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
}
LOAD_SKILL = {
    "name": "load_skill",
    "description": "Load a Skill.",
    "inputSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
    "_meta": {"harness.executor": "builtin"},
}
SKILL = """---
name: chat
description: Answer what a viewer asks about an article.
metadata:
  harness.kind: reply
---
## Rules
- Look the article up, then answer in one sentence.
"""
HOOKS = (
    {
        "schema": 1,
        "name": "lookup-arguments",
        "event": "before_tool",
        "checks": [{"check": "arguments_schema"}],
        "action": "deny",
        "message": "{reason}",
    },
    {
        "schema": 1,
        "name": "no-guarantee",
        "event": "before_reply",
        "checks": [
            {"check": "forbid_pattern", "with": {"on": "reply", "patterns": ["(?i)guarantee"]}}
        ],
        "action": "retry",
        "message": "{reason}",
    },
)


def write(path: Path, value: object) -> None:
    # JSON is YAML: the files need no YAML writer here.
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1) + "\n")


def commit(folder: Path) -> None:
    """Commit everything in `folder`, which becomes a repository when it is none yet."""
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "Bench"]):
        subprocess.run(["git", "-C", folder, *words], check=True, stdout=subprocess.DEVNULL)
