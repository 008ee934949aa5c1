"""Logs of inspect_ai, as JSON or as `.eval`: samples become items, epochs repeats of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.archive import Archive
from harness_cli.evaluation.imports.conversation import Turn, raw_call, text_of_content
from harness_cli.evaluation.imports.elements import elements, kind_of, members, whole
from harness_cli.evaluation.imports.ids import slug
from harness_cli.evaluation.imports.imported import RECORDED, Imported, ImportOptions, Recorded
from harness_cli.evaluation.imports.openai_messages import ROLES, request_of, trajectory_of
from harness_cli.evaluation.imports.source import Source, decoded, name_of
from harness_cli.evaluation.imports.tasks import Tasks
from harness_cli.records.chat import Usage
from harness_cli.records.item import Assertion, EvalsetHeader, Item
from harness_cli.records.trajectory import StopReason

KIND = "inspect"
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""inspect's values: correct, partial, incorrect, no answer."""
TARGETS = {"includes": "icontains-any", "exact": "equals"}
"""Scorer → the assertion that checks the same with the sample's target."""
LIMITS = {"time": StopReason.TIMEOUT, "working": StopReason.TIMEOUT}


class Spec(msgspec.Struct, frozen=True):
    """`eval` of a log."""

    task: str
    model: str = ""
    task_version: int | str = 0
    created: str = ""
    model_roles: dict[str, Any] | None = None


class Score(msgspec.Struct, frozen=True):
    """What one scorer gave one sample."""

    value: Any
    explanation: str | None = None


class Trouble(msgspec.Struct, frozen=True):
    """An error, or a limit, of a sample."""

    message: str = ""
    type: str = ""


class Sample(msgspec.Struct, frozen=True):
    """One sample of one epoch; events stay where they are."""

    id: str | int
    epoch: int
    input: str | list[dict[str, Any]]
    target: str | list[str] = ""
    messages: list[dict[str, Any]] = []
    scores: dict[str, Score] | None = None
    error: Trouble | None = None
    limit: Trouble | None = None
    attachments: dict[str, str] = {}
    model_usage: dict[str, dict[str, Any]] = {}
    total_time: float | None = None
    metadata: dict[str, Any] | None = None


def read(source: Source, options: ImportOptions) -> Imported:
    """The samples of a log. Raises `BadFile` for what is none, or stands twice."""
    spec = _spec(source)
    tasks = Tasks[tuple[str, str]]()
    items: dict[str, Item] = {}
    scorers: dict[str, None] = {}
    for where, sample in _samples(source):
        item = _item(sample, where)
        tasks.add(item.id, sample.epoch - 1, (repr(sample.input), repr(sample.target)), where=where)
        items.setdefault(item.id, item)
        scorers.update(dict.fromkeys(sample.scores or {}))
    tasks.settle()
    if not items:
        raise BadFile(f"{source.name}: the log holds no samples", hint="was it run with samples?")
    policy = options.policy or spec.model or source.path.stem
    policy_id = f"{policy}@{RECORDED}"
    kinds = {s: TARGETS[s] for s in scorers if s in TARGETS}
    for item_id, item in items.items() if len(kinds) == len(scorers) == 1 else ():
        check = Assertion(type=next(iter(kinds.values())), value=item.origin["target"])
        items[item_id] = msgspec.structs.replace(item, assert_=(check,))

    def rollouts() -> Iterator[Recorded]:
        for where, sample in _samples(source):
            yield _recorded(sample, policy_id, where=where)

    return Imported(
        kind=KIND,
        header=EvalsetHeader(
            name=options.name or slug(spec.task.rpartition("/")[2], KIND),
            version=str(spec.task_version),
            provenance=f"inspect task `{spec.task}`, as its logs record it",
            agent="bare",
            metrics=tuple(scorers) or ("passed",),
            judge="none",
            catalogue=None,
        ),
        items=tuple(items.values()),
        rollouts=rollouts,
        repeats=tasks.repeats,
        policy=policy,
        policy_id=policy_id,
        simulator=options.simulator or "",
        judge_id=f"{RECORDED}@{KIND}:{'+'.join(scorers) or 'none'}",
        notes=tasks.notes(None, name=source.name),
        unsupported=tuple(
            f"{source.name}: the scorer `{s}` has no assertion here: its recorded score stands"
            for s in scorers
            if s not in TARGETS
        ),
    )


def is_archive(source: Source) -> bool:
    """A `.eval` file is a zip archive."""
    return source.head[:4] == b"PK\x03\x04"


def _spec(source: Source) -> Spec:
    if is_archive(source):
        archive = Archive(source)
        name = "header.json" if "header.json" in archive.names else "_journal/start.json"
        head = decoded(archive.read(name), dict[str, msgspec.Raw], where=f"{source.name}: {name}")
        data = bytes(head.get("eval", b""))
    else:
        parts = members(source, _document(source))
        data = source.at(*parts["eval"], "`eval`") if "eval" in parts else b""
    if not data:
        raise BadFile(f"{source.name}: there is no `eval`", hint="is it a log of inspect_ai?")
    return decoded(data, Spec, where=f"{source.name}: eval")


def _document(source: Source) -> Any:
    document = whole(source)
    if kind_of(source, document) != "object":
        raise BadFile(f"{source.name}: a log of inspect_ai is an object, or a `.eval` archive")
    return document


def _samples(source: Source) -> Iterator[tuple[str, Sample]]:
    """Place and content of every sample, one at a time."""
    if is_archive(source):
        archive = Archive(source)
        for name in archive.names:
            if name.startswith("samples/") and name.endswith(".json"):
                where = f"{source.name}: {name}"
                yield where, decoded(archive.read(name), Sample, where=where)
        return
    parts = members(source, _document(source))
    if "samples" not in parts or kind_of(source, parts["samples"]) != "list":
        return
    for number, span in enumerate(elements(source, parts["samples"]), 1):
        where = f"{source.name}: sample {number}"
        yield where, decoded(source.at(*span, f"sample {number}"), Sample, where=where)


def _item(sample: Sample, where: str) -> Item:
    item_id = name_of(sample.id, what="`id`", where=where)
    told = sample.input
    messages = [{"role": "user", "content": told}] if isinstance(told, str) else told
    target = [sample.target] if isinstance(sample.target, str) else sample.target
    return Item(
        id=item_id,
        category="sample",
        request=request_of(_turns(messages, sample, where), where=where),
        origin={"target": target, **({"metadata": sample.metadata} if sample.metadata else {})},
    )


def _recorded(sample: Sample, policy_id: str, *, where: str) -> Recorded:
    turns = _turns(sample.messages, sample, where)
    _told_usage(turns, sample.model_usage)
    item_id = str(sample.id)
    stop, error = StopReason.COMPLETED, None
    if sample.error is not None:
        stop, error = StopReason.ERROR, f"inspect: {sample.error.message}"[:300]
    elif sample.limit is not None:
        stop, error = LIMITS.get(sample.limit.type, StopReason.MAX_ROUNDS), sample.limit.type
    scores, parts = _scores(sample.scores or {})
    return Recorded(
        item_id=item_id,
        trajectory=trajectory_of(
            turns,
            item_id=item_id,
            repeat=sample.epoch - 1,
            policy_id=policy_id,
            stop=stop,
            error=error,
            wall_s=sample.total_time or 0.0,
        ),
        scores=scores,
        parts=parts,
        unscored=None if scores else "the log holds no score between 0 and 1 of this sample",
    )


def _scores(told: Mapping[str, Score]) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """What decides (values from 0 to 1), and every other number."""
    scores: dict[str, float | None] = {}
    parts: dict[str, float | None] = {}
    for name, score in told.items():
        value = score.value
        for key, one in value.items() if isinstance(value, dict) else ((None, value),):
            full = name if key is None else f"{name}.{key}"
            number = _number(one)
            if number is not None:
                (scores if key is None and 0 <= number <= 1 else parts)[full] = number
    return scores, parts


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return LETTERS.get(value)
    return float(value) if isinstance(value, int | float) else None


def _turns(messages: Iterable[Any], sample: Sample, where: str) -> list[Turn]:
    turns = []
    for number, message in enumerate(messages, 1):
        place = f"{where}: message {number}"
        if not isinstance(message, Mapping) or str(message.get("role")) not in ROLES:
            raise BadFile(f"{place}: a message needs a `role` of system, user, assistant or tool")
        turns.append(_turn(message, sample, place))
    return turns


def _turn(message: Mapping[str, Any], sample: Sample, where: str) -> Turn:
    error = message.get("error")
    content, reasoning = _content(message.get("content"), sample)
    if isinstance(error, Mapping) and not content:
        content = str(error.get("message", ""))
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(c, Mapping) for c in calls):
        raise BadFile(f"{where}: `tool_calls` must be a list of objects")
    return Turn(
        role=ROLES[str(message["role"])],
        content=content,
        reasoning=reasoning,
        calls=tuple(
            raw_call(str(c.get("id", "")), str(c.get("function", "")), c.get("arguments"))
            for c in calls
        ),
        call_id=str(message.get("tool_call_id") or ""),
        name=str(message.get("function") or ""),
        error=bool(error) if message["role"] == "tool" else None,
        model=str(message.get("model") or ""),
    )


def _content(value: Any, sample: Sample) -> tuple[str | None, str | None]:
    """Text and reasoning; what was moved to the attachments is put back."""
    if isinstance(value, str):
        return _attached(value, sample), None
    if not isinstance(value, list):
        return text_of_content(value), None
    said, thought = [], []
    for part in value:
        if isinstance(part, Mapping) and part.get("type") == "reasoning":
            thought.append(_attached(str(part.get("reasoning", "")), sample))
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            said.append(_attached(part["text"], sample))
        else:
            said.append(text_of_content([part]) or "")
    return "\n".join(said), "\n".join(thought) or None


def _attached(text: str, sample: Sample) -> str:
    mark = "attachment://"
    return sample.attachments.get(text.removeprefix(mark), text) if text.startswith(mark) else text


def _told_usage(turns: list[Turn], told: Mapping[str, Mapping[str, Any]]) -> None:
    """The usage of the whole sample on its last answer: the log has none by answer."""
    answers = [t for t in turns if t.role == "assistant"]
    if not answers or not told:
        return
    sums = {
        key: sum(n for u in told.values() if isinstance(n := u.get(key), int))
        for key in ("input_tokens", "output_tokens")
    }
    for answer in answers:
        answer.usage = Usage(input_tokens=0, output_tokens=0)
    answers[-1].usage = Usage(**sums)
