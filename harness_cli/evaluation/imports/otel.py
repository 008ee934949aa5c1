"""OpenTelemetry GenAI spans (OTLP JSON, one document or one a line): conversations of an agent."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.conversation import Turn, raw_call
from harness_cli.evaluation.imports.elements import elements, kind_of, members, whole
from harness_cli.evaluation.imports.ids import slug
from harness_cli.evaluation.imports.imported import RECORDED, Imported, ImportOptions, Recorded
from harness_cli.evaluation.imports.openai_messages import ROLES, request_of, trajectory_of
from harness_cli.evaluation.imports.otel_values import attributes_of, messages_of, structured
from harness_cli.evaluation.imports.source import Source, decoded, name_of
from harness_cli.records.chat import Usage
from harness_cli.records.item import EvalsetHeader, Item

KIND = "otel"
CHATS = {"chat", "generate_content", "text_completion"}


@dataclass(slots=True)
class Span:
    """A model call."""

    start: int
    end: int
    values: dict[str, Any]


@dataclass(slots=True)
class Conversation:
    """The model calls of one conversation, or of one trace where none is named."""

    spans: list[Span] = field(default_factory=list)
    scores: dict[str, float | None] = field(default_factory=dict)


def read(source: Source, options: ImportOptions) -> Imported:
    """Each conversation as an item and a rollout. Raises `BadFile` where no span holds messages."""
    conversations, silent = _conversations(source)
    items, kept = [], {}
    models: dict[str, None] = {}
    for key, one in conversations.items():
        where = f"{source.name}: conversation `{key[:60]}`"
        item_id = name_of(key, what="the conversation id", where=where)
        turns = _turns(one, where)
        items.append(Item(id=item_id, category="chat", request=request_of(turns, where=where)))
        kept[item_id] = (one, turns)
        models.update(dict.fromkeys(_models(one)))
    if not items:
        raise BadFile(
            f"{source.name}: {silent} GenAI spans, none of which holds messages",
            hint="record them: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
        )
    policy = options.policy or " + ".join(list(models)[:3]) or source.path.stem
    policy_id = f"{policy}@{RECORDED}"

    def rollouts() -> Iterator[Recorded]:
        for item_id, (one, turns) in kept.items():
            wall = (one.spans[-1].end - one.spans[0].start) / 1e9
            yield Recorded(
                item_id=item_id,
                trajectory=trajectory_of(
                    turns, item_id=item_id, policy_id=policy_id, wall_s=max(wall, 0.0)
                ),
                scores=one.scores,
            )

    notes = [f"{silent} GenAI spans hold no messages: left out"] if silent else []
    return Imported(
        kind=KIND,
        header=EvalsetHeader(
            name=options.name or slug(source.path.stem, KIND),
            provenance=f"OpenTelemetry spans of {source.name}",
            agent="bare",
            metrics=tuple(sorted({n for one, _ in kept.values() for n in one.scores}))
            or ("passed",),
            judge="none",
            catalogue=None,
        ),
        items=tuple(items),
        rollouts=rollouts,
        policy=policy,
        policy_id=policy_id,
        simulator=options.simulator or "",
        judge_id=f"{RECORDED}@{KIND}",
        notes=tuple(notes),
    )


def _conversations(source: Source) -> tuple[dict[str, Conversation], int]:
    """By conversation id in order of first sight, and how many model calls hold no messages."""
    found: dict[str, Conversation] = {}
    silent = 0
    for where, span in _spans(source):
        values = attributes_of(span.get("attributes"), where=where)
        if str(values.get("gen_ai.operation.name", "chat")) not in CHATS or not _is_model(values):
            continue
        key = str(values.get("gen_ai.conversation.id") or span.get("traceId") or "")
        if not key:
            raise BadFile(f"{where}: the span has neither conversation nor trace id")
        one = found.setdefault(key, Conversation())
        _take_scores(one, span, where)
        if messages_of(values, "input") or messages_of(values, "output"):
            start, end = (_nanos(span.get(k)) for k in ("startTimeUnixNano", "endTimeUnixNano"))
            one.spans.append(Span(start, end, values))
        else:
            silent += 1
    for one in found.values():
        one.spans.sort(key=lambda s: (s.start, s.end))
    return {key: one for key, one in found.items() if one.spans}, silent


def _is_model(values: Mapping[str, Any]) -> bool:
    return any(
        k.startswith(("gen_ai.request.", "gen_ai.response.", "gen_ai.input")) for k in values
    )


def _spans(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every span: of one document, streamed by resource, or of a document a line."""
    document = whole(source)
    if kind_of(source, document) != "object":
        raise BadFile(f"{source.name}: an OTLP document is an object with `resourceSpans`")
    if source.data[document.end : document.end + 64].strip():
        for number, line in source.lines():
            where = f"{source.name}:{number}"
            found = decoded(line, dict[str, Any], where=where)
            yield from _of_resources(found.get("resourceSpans"), where)
        return
    parts = members(source, document)
    if "resourceSpans" not in parts or kind_of(source, parts["resourceSpans"]) != "list":
        raise BadFile(f"{source.name}: there are no `resourceSpans`", hint="export OTLP as JSON")
    for number, span in enumerate(elements(source, parts["resourceSpans"])):
        where = f"{source.name}: resourceSpans[{number}]"
        data = source.at(*span, f"resourceSpans[{number}]")
        yield from _of_resources([decoded(data, dict[str, Any], where=where)], where)


def _of_resources(resources: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for resource in _objects(resources, where):
        for scope in _objects(resource.get("scopeSpans"), where):
            for number, span in enumerate(_objects(scope.get("spans"), where)):
                yield f"{where}: span {str(span.get('spanId') or number)[:40]}", span


def _objects(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of objects; nothing where there is none. Raises `BadFile` for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise BadFile(f"{where}: a list of objects is needed", hint="export OTLP as JSON")
    return value


def _take_scores(one: Conversation, span: Mapping[str, Any], where: str) -> None:
    """`gen_ai.evaluation.result` events with a value from 0 to 1."""
    for event in _objects(span.get("events"), where):
        if event.get("name") != "gen_ai.evaluation.result":
            continue
        values = attributes_of(event.get("attributes"), where=where)
        value = values.get("gen_ai.evaluation.score.value")
        if isinstance(value, int | float) and 0 <= value <= 1:
            one.scores[str(values.get("gen_ai.evaluation.name") or "score")] = float(value)


def _turns(one: Conversation, where: str) -> list[Turn]:
    """The messages of all calls in order: each call repeats what was said before it."""
    turns: list[Turn] = []
    for span in one.spans:
        given = [_turn(m, where) for m in messages_of(span.values, "input")]
        system = structured(span.values.get("gen_ai.system_instructions"))
        if system and not any(t.role == "system" for t in given):
            given.insert(0, _turn({"role": "system", "parts": system}, where))
        turns += given[_repeated(turns, given) :]
        said = [_turn(m, where) for m in messages_of(span.values, "output")][:1]
        for turn in said:
            turn.usage = Usage(
                input_tokens=_count(span.values, "gen_ai.usage.input_tokens"),
                output_tokens=_count(span.values, "gen_ai.usage.output_tokens"),
            )
            turn.model = str(span.values.get("gen_ai.response.model") or "")
        turns += said
    return turns


def _repeated(turns: list[Turn], given: list[Turn]) -> int:
    """How many of the given messages stand at the end of what is known."""
    known, new = [_key(t) for t in turns], [_key(t) for t in given]
    sizes = range(min(len(known), len(new)), 0, -1)
    return next((n for n in sizes if known[-n:] == new[:n]), 0)


def _key(turn: Turn) -> str:
    calls = [(c.id, c.name, c.arguments) for c in turn.calls]
    return json.dumps([turn.role, turn.content, calls, turn.call_id])


def _turn(message: Any, where: str) -> Turn:
    """A message with parts, or an old one with `content`."""
    role = ROLES.get(str(message.get("role"))) if isinstance(message, Mapping) else None
    if role is None:
        raise BadFile(f"{where}: a message needs a `role` of system, user, assistant or tool")
    said, thought, calls = [], [], []
    turn = Turn(role=role)
    parts = message.get("parts")
    for part in parts if isinstance(parts, list) else [message]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "tool_call":
            calls.append(
                raw_call(str(part.get("id") or ""), str(part.get("name")), part.get("arguments"))
            )
        elif kind == "tool_call_response":
            turn.role, turn.call_id = "tool", str(part.get("id") or "")
            said.append(_text(part.get("response", part.get("result"))))
        elif kind == "reasoning":
            thought.append(_text(part.get("content")))
        elif isinstance(part, Mapping) and part.get("content") is not None:
            said.append(_text(part["content"]))
        elif kind:
            said.append(f"[{kind}]")
    turn.content = "\n".join(said) if said else None
    turn.reasoning = "\n".join(thought) or None
    turn.calls = tuple(calls)
    turn.finish = str(message.get("finish_reason") or "")
    return turn


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _models(one: Conversation) -> list[str]:
    keys = ("gen_ai.response.model", "gen_ai.request.model")
    found = [next((str(s.values[k]) for k in keys if s.values.get(k)), "") for s in one.spans]
    return [name for name in found if name]


def _count(values: Mapping[str, Any], key: str) -> int | None:
    value = values.get(key)
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else None


def _nanos(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
