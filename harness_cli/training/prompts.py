"""Prompts of a general distillation: `.jsonl` lines with `prompt`, a text or messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile, MaskError
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.records.chat import Message
from harness_cli.records.reader import parse_json
from harness_cli.training.masking import Tools


class PromptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line; other columns of an instruction set are left alone."""

    prompt: str | tuple[dict[str, Any], ...]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a student answers in a distillation."""

    id: str
    messages: tuple[Message, ...]
    tokens: int
    text: str
    """As it is rendered."""


def read_prompts(
    root: Path, files: Sequence[str], template: ChatTemplate, tools: Tools
) -> tuple[Prompt, ...]:
    """The prompts of all files, in order. Raises `BadFile` with file and line."""
    _, tokenizer = tools.open()
    found: list[Prompt] = []
    for name in files:
        path = root / name
        if not path.is_file():
            raise BadFile(f"there is no file of prompts `{name}`")
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if not line.strip():
                continue
            place = f"{name}:{number}"
            row = parse_json(line, PromptLine, name=place)
            messages = _messages(row.prompt)
            if not messages or messages[-1].get("role") != "user":
                raise BadFile(f"{place}: a prompt ends with what a user says")
            try:
                text = template.render(messages, None, prompt=True)
            except MaskError as exc:
                raise BadFile(f"{place}: {exc}") from exc
            found.append(Prompt(row.id or place, messages, len(tokenizer.encode(text)), text))
    if not found:
        raise BadFile("the files of prompts hold none")
    return tuple(found)


def _messages(prompt: str | tuple[dict[str, Any], ...]) -> tuple[Message, ...]:
    return ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt
