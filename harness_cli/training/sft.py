"""HSA-SFT data: what a teacher did under original and augmented states, as lessons of students.

    teach ──▶ rejected? ──▶ hook retries pruned ──▶ agent | tool | response ──▶ rows, tokens, card

Every candidate and every lesson is either a row or a line of `left_out.jsonl` with its reason.
"""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.records.training import DataCard, DataFile, SftJob, SftRow, TokenisedRow
from harness_cli.store.project import Project
from harness_cli.training.data_set import (
    Streamed,
    counted_reasons,
    streamed,
    unfinished,
    write_data_set,
)
from harness_cli.training.lessons import Lessons, left_out, lessons_of
from harness_cli.training.masking import Masked, Order, Tools, mask_all
from harness_cli.training.readings import SFT
from harness_cli.training.teaching import Taught
from harness_cli.training.teaching_plan import ORIGINAL
from harness_cli.training.template_source import tools_for

MESSAGES: Final = ".jsonl"
TOKENS: Final = ".tokens.jsonl"


@dataclass(slots=True)
class Written:
    """What became of the lessons."""

    files: dict[str, DataFile]
    masks: Counter[str] = field(default_factory=Counter)
    template_sha256: str = ""
    tokenizer_sha256: str = ""


@dataclass(slots=True)
class Files:
    """The files of each student, row by row."""

    messages: dict[str, Streamed]
    tokens: dict[str, Streamed] = field(default_factory=dict)
    masks: Counter[str] = field(default_factory=Counter)
    long: list[tuple[int, str]] = field(default_factory=list)
    """Rows over the limit, by length."""
    rows: int = 0

    def add(self, row: SftRow) -> None:
        """A row that is in the data set."""
        self.rows += 1
        self.messages[row.student].add(row)

    def add_tokens(self, row: SftRow, result: Masked) -> None:
        """The same with its tokens."""
        self.add(row)
        self.masks[result.method] += 1
        self.masks["other context"] += not result.same_context
        tokens = _tokens(row, result)
        trained = sum(label >= 0 for label in tokens.labels)
        self.tokens[row.student].add(tokens, tokens=len(tokens.input_ids), trained=trained)


def write_rows(
    found: Lessons, tools: Tools | None, job: SftJob, folder: Path, *, processes: int = 1
) -> Written:
    """Write the lessons, with `tools` also their tokens and labels; what cannot be masked is left
    out with its reason. One row is held in memory at a time, and a few in each process.

    Raises `HarnessError` naming the longest row where rows are over the limit and the job does not
    say to drop them (a row cut in the middle would teach half an answer), and where no row is left.
    """
    students = tuple(dict.fromkeys(job.students))
    with ExitStack() as stack:

        def opened(ending: str) -> dict[str, Streamed]:
            return {s: stack.enter_context(streamed(folder / f"{s}{ending}")) for s in students}

        files = Files(opened(MESSAGES), opened(TOKENS) if tools else {})
        if tools is None:
            for lesson in found.each():
                files.add(lesson.row)
        else:
            _masked(found, tools, job, files, processes)
        if files.long and job.over_long == "refuse":
            longest, name = max(files.long)
            raise HarnessError(
                f"{len(files.long)} rows are longer than {job.max_tokens} tokens; `{name}` has "
                f"{longest}",
                hint=f"max_tokens: {longest}, or over_long: drop; the teacher's work is kept",
            )
        _refuse_empty(found, files.rows)
        written = {f"{s}{TOKENS}": file.written for s, file in files.tokens.items()}
        written |= {f"{s}{MESSAGES}": file.written for s, file in files.messages.items()}
    return Written(written, files.masks)


def _masked(found: Lessons, tools: Tools, job: SftJob, files: Files, processes: int) -> None:
    """Every lesson as tokens; rows wait for theirs, a bounded number at a time."""
    waiting: deque[SftRow] = deque()

    def orders() -> Iterator[Order]:
        for lesson in found.each():
            waiting.append(lesson.row)
            yield lesson.order()

    for result in mask_all(tools, orders(), count=found.rows, processes=processes):
        row = waiting.popleft()
        if isinstance(result, str):
            found.left_out.append(left_out(row, "cannot be masked", result))
        elif (length := len(result.row.input_ids)) > job.max_tokens:
            files.long.append((length, row.id))
            found.left_out.append(left_out(row, "over long", f"{length} tokens"))
        else:
            files.add_tokens(row, result)


def _refuse_empty(found: Lessons, rows: int) -> None:
    if not rows:
        reasons = counted_reasons(found.left_out).items()
        said = ", ".join(f"{n} × {reason}" for reason, n in reasons)
        raise HarnessError(f"no row is left of {found.candidates} candidates: {said}")


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
    tools = None if job.template is None else tools_for(project.root, job.template, job.tokenizer)
    with lessons_of(taught, job, folder) as found:
        unfinished(folder)
        _refuse_empty(found, found.rows)
        written = write_rows(found, tools, job, folder, processes=processes)
    if tools is not None:
        template, tokenizer = tools.open()
        written.template_sha256, written.tokenizer_sha256 = template.sha256, tokenizer.sha256
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
        template_sha256=written.template_sha256,
        tokenizer_sha256=written.tokenizer_sha256,
        masks=dict(sorted(written.masks.items())),
        notes=_notes(taught, found),
    )
    return write_data_set(folder, card, {}, found.left_out, reading=SFT, written=written.files)


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
