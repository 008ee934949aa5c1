"""OpenAI-format chat logs, JSON or JSONL: fine-tuning files, request/response logs, batches."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.conversation import Turn
from harness_cli.evaluation.imports.elements import elements, kind_of, whole
from harness_cli.evaluation.imports.ids import Ids, score_of, slug
from harness_cli.evaluation.imports.imported import RECORDED, Imported, ImportOptions, Recorded
from harness_cli.evaluation.imports.openai_messages import request_of, trajectory_of, turns_of
from harness_cli.evaluation.imports.source import Source, decoded
from harness_cli.records.chat import Usage
from harness_cli.records.item import EvalsetHeader, Item

KIND = "openai-chat"
SCORES = ("score", "reward", "rating")


class Conversation(NamedTuple):
    """One record: the whole dialogue, and whether it ends in an answer."""

    id: str
    turns: list[Turn]
    model: str
    score: float | None

    @property
    def answered(self) -> bool:
        """The assistant said something last."""
        return any(t.role == "assistant" for t in self.turns)


def read(source: Source, options: ImportOptions) -> Imported:
    """Each conversation as an item: its last question, with all before it as history."""
    items: list[Item] = []
    models: dict[str, None] = {}
    answered = scored = 0
    for where, one in _conversations(source):
        items.append(Item(id=one.id, category="chat", request=request_of(one.turns, where=where)))
        answered += one.answered
        scored += one.score is not None
        if one.model:
            models[one.model] = None
    if not items:
        raise BadFile(f"{source.name}: there is no conversation")
    policy = options.policy or " + ".join(list(models)[:3]) or source.path.stem
    policy_id = f"{policy}@{RECORDED}"

    def rollouts() -> Iterator[Recorded]:
        for _, one in _conversations(source):
            if one.answered:
                yield Recorded(
                    item_id=one.id,
                    trajectory=trajectory_of(one.turns, item_id=one.id, policy_id=policy_id),
                    scores={} if one.score is None else {"score": one.score},
                )

    notes = [f"several models answered: {', '.join(models)}"] if len(models) > 1 else []
    if answered and not scored:
        notes.append("the file records no score: --rescore gives one")
    return Imported(
        kind=KIND,
        header=EvalsetHeader(
            name=options.name or slug(source.path.stem, "chats"),
            provenance=f"chat log {source.name}",
            agent="bare",
            metrics=("score",) if scored else ("passed",),
            judge="none",
            catalogue=None,
        ),
        items=tuple(items),
        rollouts=rollouts if answered else None,
        policy=policy,
        policy_id=policy_id,
        simulator=options.simulator or "",
        judge_id=f"{RECORDED}@{KIND}",
        notes=tuple(notes),
    )


def _conversations(source: Source) -> Iterator[tuple[str, Conversation]]:
    ids = Ids()
    for number, (where, row) in enumerate(_records(source), 1):
        yield where, _conversation(row, ids, number, where)


def _records(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and content of each record: of a list, or a line each."""
    start = source.head.lstrip()[:1]
    if start == b"[":
        document = whole(source)
        for number, span in enumerate(elements(source, document), 1):
            where = f"{source.name}: record {number}"
            data = source.at(*span, f"record {number}")
            yield where, decoded(data, dict[str, Any], where=where)
        return
    if start == b"{" and _one_document(source):
        data = source.at(source.start, source.size, "the file")
        yield source.name, decoded(data, dict[str, Any], where=source.name)
        return
    for number, line in source.lines():
        where = f"{source.name}:{number}"
        yield where, decoded(line, dict[str, Any], where=where)


def _one_document(source: Source) -> bool:
    """One object over several lines, rather than one a line."""
    try:
        span = whole(source)
    except BadFile:
        return False
    rest = source.data[span.end : span.end + 64].strip()
    return kind_of(source, span) == "object" and not rest and span.end > source.head.find(b"\n") > 0


def _conversation(row: dict[str, Any], ids: Ids, number: int, where: str) -> Conversation:
    asked = _inner(row, "request", "body")
    answer = _inner(_inner(row, "response"), "body")
    messages = next(
        (m for m in (row.get("messages"), asked.get("messages"), row.get("input")) if m), None
    )
    if not isinstance(messages, list):
        raise BadFile(
            f"{where}: there are no `messages`",
            hint="a record holds `messages`, or `request` and `response` of a chat completion",
        )
    turns = turns_of(messages, where=where)
    choices = answer.get("choices") or row.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        said = turns_of([choices[0].get("message")], where=f"{where}: choice 1")
        said[0].usage = _usage(answer.get("usage") or row.get("usage"))
        said[0].finish = str(choices[0].get("finish_reason") or "")
        turns += said
    model = answer.get("model") or asked.get("model") or row.get("model") or ""
    found = next((row[k] for k in SCORES if row.get(k) is not None), None)
    given = row.get("id") or row.get("custom_id") or answer.get("id")
    return Conversation(
        ids.of(given, number, where=where), turns, str(model), score_of(found, where=where)
    )


def _inner(row: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The object under the first of the keys that holds one; else the row itself for `body`."""
    for key in keys:
        if isinstance(row.get(key), Mapping):
            return row[key]  # type: ignore[no-any-return]
    return row if keys == ("body",) else {}


def _usage(value: Any) -> Usage:
    told = value if isinstance(value, Mapping) else {}
    counts = [
        next((told[k] for k in keys if isinstance(told.get(k), int)), None)
        for keys in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    ]
    return Usage(input_tokens=counts[0], output_tokens=counts[1])
