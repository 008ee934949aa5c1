"""HSA-SFT data: what a teacher did under original and augmented states, as lessons of students.

    teach ──▶ rejected? ──▶ hook retries pruned ──▶ agent | tool | response ──▶ rows, tokens, card

Every candidate and every lesson is either a row or a line of `left_out.jsonl` with its reason.
"""

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.harness.tools import offered
from harness_cli.records.canonical import digest, sha256
from harness_cli.records.item import Item
from harness_cli.records.training import (
    DataCard,
    DataFile,
    LeftOut,
    Provenance,
    SftJob,
    SftRow,
    TokenisedRow,
)
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult
from harness_cli.store.project import Project
from harness_cli.store.runs import Key
from harness_cli.training.conversation import Conversation, conversation_of, pruned
from harness_cli.training.data_set import counted_reasons, streamed, unfinished, write_data_set
from harness_cli.training.masking import Masked, Order, Tools, mask_all
from harness_cli.training.readings import SFT
from harness_cli.training.rejection import kept_whole, rejected
from harness_cli.training.students import Lesson, lesson, tools_column
from harness_cli.training.teaching import Taught
from harness_cli.training.teaching_plan import ORIGINAL
from harness_cli.training.template_source import tools_for

_json = msgspec.json.Encoder().encode
"""Keys stay in the order in which they were sampled and shown."""


@dataclass(slots=True)
class Lessons:
    """What comes of a teacher's work, in order of item, state, candidate and student."""

    rows: list[SftRow] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    """The same lessons for the tokeniser."""
    left_out: list[LeftOut] = field(default_factory=list)
    retries: Counter[str] = field(default_factory=Counter)
    candidates: int = 0
    seen: set[str] = field(default_factory=set)


def lessons_of(taught: Taught, job: SftJob) -> Lessons:
    """Filter the candidates and make the students' lessons of what is left."""
    found = Lessons()
    results = {Key(r.item_id, r.repeat): r for r in taught.run.results()}
    items = {item.id: item for item in taught.evalset.items}
    done = {
        Key(str(t.item_id), t.repeat): t
        for t in taught.run.trajectories(lambda key: key in results)
    }
    for key in sorted(done):
        found.candidates += 1
        _candidate(taught, job, found, items[key.item], results[key], done.pop(key))
    return found


def _candidate(
    taught: Taught,
    job: SftJob,
    found: Lessons,
    item: Item,
    result: ItemResult,
    trajectory: Trajectory,
) -> None:
    state, candidate = taught.place(result.repeat)
    out = LeftOut(item=item.id, state=state, candidate=candidate, reason="")
    why = rejected(result, trajectory, job.accept)
    if why is not None:
        found.left_out.append(msgspec.structs.replace(out, reason=why[0], detail=why[1]))
        return
    whole = conversation_of(trajectory)
    kept, how = _retried(whole, job, item.id)
    found.retries[how] += 1
    origin = Provenance(
        evalset=taught.evalset.header.name,
        split=str(taught.evalset.ref.split),
        item=item.id,
        state=state,
        harness=taught.state(state).id,
        map_sha256=_map_digest(taught, state),
        teacher=taught.teacher,
        judge=taught.judge,
        accuracy=result.scores.get("accuracy"),
        effectiveness=result.scores.get("effectiveness"),
        verdict=result.state,
        candidate=candidate,
        retries=how,
        refused_outputs=whole.failures,
        trajectory_sha256=result.trajectory_sha256,
    )
    tools = tools_column(offered(taught.state(state), overlay=item.overlay.tools))
    for student in job.students:
        made = lesson(student, kept, thinking=job.thinking == "keep", include_last=job.include_last)
        if not isinstance(made, str):
            same = sha256(_json([student, made.messages, made.trained, tools]))
            if same not in found.seen:
                found.seen.add(same)
                found.rows.append(_row(made, tools, origin))
                found.orders.append(Order(made, tools, _sampled(made, kept)))
                continue
            made = "duplicate"
        found.left_out.append(msgspec.structs.replace(out, reason=made, student=student))


def _retried(whole: Conversation, job: SftJob, item: str) -> tuple[Conversation, Any]:
    """The conversation with its hook retries or without, and which it is.

    A call whose arguments are no object cannot be shown again as it was: such retries are pruned.
    """
    if not whole.failures:
        return whole, "none"
    if kept_whole(item, job.keep_retries, job.seed) and not whole.malformed:
        return whole, "kept"
    return pruned(whole), "pruned"


def _map_digest(taught: Taught, state: str) -> str:
    return "" if state == ORIGINAL or taught.states is None else digest(taught.states.maps[state])


def _sampled(made: Lesson, conversation: Conversation) -> dict[int, tuple[int, ...]] | None:
    """Ids the teacher's server sampled, where the lesson shows its turns unchanged."""
    return conversation.sampled() or None if made.student == "agent" else None


def _row(made: Lesson, tools: list[dict[str, Any]] | None, origin: Provenance) -> SftRow:
    alone = made.student == "response"
    return SftRow(
        id=f"{origin.item}@{origin.state}#{origin.candidate}/{made.student}",
        student=made.student,
        messages=() if alone else made.messages,
        prompt=tuple(made.prompt) if alone else (),
        completion=tuple(made.completion) if alone else (),
        tools=_json(tools).decode() if tools else "",
        provenance=origin,
    )


@dataclass(slots=True)
class Tokenised:
    """What became of the lessons as tokens."""

    kept: set[str] = field(default_factory=set)
    """Ids of the rows that could be masked."""
    files: dict[str, DataFile] = field(default_factory=dict)
    masks: Counter[str] = field(default_factory=Counter)
    template_sha256: str = ""
    tokenizer_sha256: str = ""


def tokenise(
    found: Lessons, tools: Tools, job: SftJob, folder: Path, *, processes: int = 1
) -> Tokenised:
    """Write tokens and labels of every lesson; what cannot be masked is left out with its reason.

    Raises `HarnessError` naming the longest row where rows are over the limit and the job does not
    say to drop them (a row cut in the middle would teach half an answer), and where no row is left.
    """
    template, tokenizer = tools.open()
    made = Tokenised(template_sha256=template.sha256, tokenizer_sha256=tokenizer.sha256)
    long: list[tuple[int, str]] = []
    with ExitStack() as stack:
        files = {
            student: stack.enter_context(streamed(folder / f"{student}.tokens.jsonl"))
            for student in dict.fromkeys(job.students)
        }
        all_masked = mask_all(tools, found.orders, processes=processes)
        for row, result in zip(found.rows, all_masked, strict=True):
            if isinstance(result, str):
                _leave(found, row, "cannot be masked", result)
            elif (length := len(result.row.input_ids)) > job.max_tokens:
                long.append((length, row.id))
                _leave(found, row, "over long", f"{length} tokens")
            else:
                made.kept.add(row.id)
                made.masks[result.method] += 1
                made.masks["other context"] += not result.same_context
                tokens = _tokens(row, result)
                trained = sum(label >= 0 for label in tokens.labels)
                files[row.student].add(tokens, tokens=length, trained=trained)
        if long and job.over_long == "refuse":
            longest, name = max(long)
            raise HarnessError(
                f"{len(long)} rows are longer than {job.max_tokens} tokens; `{name}` has {longest}",
                hint=f"max_tokens: {longest}, or over_long: drop; the teacher's work is kept",
            )
        _refuse_empty(found, len(made.kept))
        made.files = {f"{name}.tokens.jsonl": file.written for name, file in files.items()}
    return made


def _refuse_empty(found: Lessons, rows: int) -> None:
    if not rows:
        reasons = counted_reasons(found.left_out).items()
        said = ", ".join(f"{n} × {reason}" for reason, n in reasons)
        raise HarnessError(f"no row is left of {found.candidates} candidates: {said}")


def _leave(found: Lessons, row: SftRow, reason: str, detail: str) -> None:
    origin = row.provenance
    found.left_out.append(
        LeftOut(
            item=origin.item,
            state=origin.state,
            candidate=origin.candidate,
            student=row.student,
            reason=reason,
            detail=detail,
        )
    )


def _tokens(row: SftRow, result: Masked) -> TokenisedRow:
    return TokenisedRow(
        id=row.id,
        student=row.student,
        input_ids=tuple(result.row.input_ids),
        labels=tuple(result.row.labels()),
        segment_ids=tuple(result.row.segment_ids),
    )


def write_sft(
    project: Project, taught: Taught, job: SftJob, folder: Path, *, processes: int = 1
) -> DataCard:
    """Filter, prune, tokenise and write a teacher's work. Raises where no row is left."""
    found = lessons_of(taught, job)
    unfinished(folder)
    tokenised = Tokenised(kept={row.id for row in found.rows})
    _refuse_empty(found, len(tokenised.kept))
    if job.template is not None:
        tools = tools_for(project.root, job.template, job.tokenizer)
        tokenised = tokenise(found, tools, job, folder, processes=processes)
    files = {
        f"{student}.jsonl": [
            row for row in found.rows if row.student == student and row.id in tokenised.kept
        ]
        for student in dict.fromkeys(job.students)
    }
    names = [n for n in taught.names if n != ORIGINAL]
    card = DataCard(
        kind="sft",
        evalset=taught.evalset.header.name,
        split=str(taught.evalset.ref.split),
        evalset_digest=taught.evalset.digest,
        catalogue_digest=taught.evalset.ref.catalogue_digest,
        harness=taught.base.id,
        states={name: taught.state(name).id for name in names},
        teacher=taught.teacher,
        judge=taught.judge,
        job=msgspec.to_builtins(job),
        candidates=found.candidates,
        left_out=counted_reasons(found.left_out),
        retries=dict(sorted(found.retries.items())),
        template_sha256=tokenised.template_sha256,
        tokenizer_sha256=tokenised.tokenizer_sha256,
        masks=dict(sorted(tokenised.masks.items())),
        notes=_notes(taught, found),
    )
    return write_data_set(folder, card, files, found.left_out, reading=SFT, written=tokenised.files)


def _notes(taught: Taught, found: Lessons) -> tuple[str, ...]:
    notes = [*taught.warnings]
    if taught.teacher.startswith("builtin@"):
        notes.append(
            "The teacher is `builtin`, a retrieval policy that stands in where there is no key: "
            "it shows the form of the data, not the quality of a strong model's."
        )
    if found.retries["kept"]:
        notes.append(
            "Rows with `retries: kept` hold outputs that hooks refused. The token files have no "
            "loss on them; TRL's `assistant_only_loss` on the message files has."
        )
    return tuple(notes)
