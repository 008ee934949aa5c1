"""The paraphrases of a recipe, asked of configured policies once and kept beside the states."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.augmentation.draft import Draft
from harness_cli.augmentation.paraphrases import Ask, Book, names_of, texts_of, written
from harness_cli.errors import BadFile, ProviderError, UsageError
from harness_cli.models.base import Deadline, Policy
from harness_cli.models.open import open_policy
from harness_cli.records.augmentation import AugmentationMap, Recipe
from harness_cli.records.canonical import digest, write_json
from harness_cli.records.chat import ChatRequest
from harness_cli.records.reader import read_json
from harness_cli.store.project import Project
from harness_cli.store.redact import redact
from harness_cli.store.tree import Entry

FILE = "paraphrases.json"
SECONDS = 60.0
MAX_TOKENS = 512


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """`paraphrases.json`: a later call of the command takes these, so that states stay the same."""

    schema: int = 1
    asked_by: str
    """Digest of who was asked about which texts."""
    texts: dict[str, tuple[str, ...]] = {}
    counts: dict[str, int] = {}


async def write_book(
    project: Project, recipe: Recipe, files: Mapping[str, Entry], out: Path
) -> Book:
    """The book of a recipe with `paraphrase`: from the folder, or asked for and kept there."""
    asked = recipe.paraphrase
    if asked is None or not asked.policy:
        return Book()
    if asked.judge == asked.policy:
        raise UsageError(
            f"`{asked.policy}` would judge its own paraphrases", hint="name another `judge`"
        )
    draft = Draft(files=files, map=AugmentationMap(state="base"))
    texts = texts_of(draft)
    mark = digest([asked.policy, asked.judge, texts])
    path = out / FILE
    if path.is_file():
        known = read_json(path, Written, name=str(path))
        if known.asked_by != mark:
            raise BadFile(
                f"{path}: paraphrases of other texts or by another policy", hint="remove the file"
            )
        return Book(known.texts, known.counts)
    opened = [_open(project, name) for name in (asked.policy, asked.judge) if name]
    try:
        asks = [_ask(policy) for policy in opened]
        judge = asks[1] if len(asks) > 1 else None
        book = await written(texts, names_of(draft), asks[0], judge)
    finally:
        for policy in opened:
            await policy.close()
    texts_kept = {redact(k): tuple(map(redact, v)) for k, v in book.texts.items()}
    write_json(path, Written(asked_by=mark, texts=texts_kept, counts=dict(book.counts)))
    return book


def _open(project: Project, name: str) -> Policy:
    found, config = project.policy(name)
    return open_policy(found, config, root=project.root)


def _ask(policy: Policy) -> Ask:
    async def ask(system: str, text: str) -> str:
        messages: tuple[dict[str, Any], ...] = (
            {"role": "system", "content": system},
            {"role": "user", "content": text},
        )
        request = ChatRequest(messages=messages, max_tokens=MAX_TOKENS, temperature=1.0)
        try:
            reply = await policy.complete(request, Deadline.within(SECONDS))
        except ProviderError:
            return ""  # counted as no answer: the curated wordings stand
        return reply.content or ""

    return ask
