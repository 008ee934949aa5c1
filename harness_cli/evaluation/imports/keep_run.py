"""An imported run on disk: journal, config and reports as our own runs have them, and its mark."""

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness_cli import __version__
from harness_cli.evaluation.imports.imported import RECORDED, Imported, Recorded
from harness_cli.evaluation.redaction import Cleaner
from harness_cli.evaluation.results import item_result
from harness_cli.evaluation.summary import write_reports
from harness_cli.evaluation.texts import Texts
from harness_cli.records.canonical import write_json
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.item import Item
from harness_cli.records.journal import (
    ItemRecord,
    JournalRecord,
    NoteRecord,
    TrajectoryRecord,
    VerdictRecord,
)
from harness_cli.records.run import EvalsetRef, ImportedFrom, Report, RunConfig
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import AssertionResult, ItemResult, Judging, Verdict
from harness_cli.store.journal import line_of
from harness_cli.store.redact import Redactor
from harness_cli.store.runs import RunFolder, RunStore

AGENT = "imported"
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Scored:
    """What one recorded rollout came to: by its own record, or by a judge of ours."""

    verdict: Verdict | None
    assertions: tuple[AssertionResult, ...] = ()
    error: str | None = None
    judging: Judging | None = None
    """What the votes of a panel took."""


def as_recorded(one: Recorded, judge: str) -> Scored:
    """The scores that the file holds."""
    if one.unscored is not None or not one.scores:
        why = one.unscored or "the file records no score"
        return Scored(Verdict(judge=judge, findings=one.findings, unscored_reason=why))
    return Scored(Verdict(judge=judge, scores=one.scores, findings=one.findings))


def result_of(item: Item, one: Recorded, scored: Scored, *, digest: str = "") -> ItemResult:
    """The line of a report; never timed, since another machine made it."""
    made = item_result(
        item,
        one.trajectory,
        scored.verdict,
        scored.assertions,
        judge_error=scored.error,
        timed=False,
        digest=digest,
    )
    parts = {k: v for k, v in one.parts.items() if k not in made.scores}
    return msgspec.structs.replace(
        made, scores={**made.scores, **parts}, judging=scored.judging or made.judging
    )


def run_config(
    imported: Imported,
    ref: EvalsetRef,
    *,
    run_id: str,
    file: str,
    sha256: str,
    judge: tuple[str, str] | None,
    command: tuple[str, ...],
) -> RunConfig:
    """`run.json` of an imported run; `judge` is name and id of one of ours, None for the file's."""
    name, judge_id = judge or (RECORDED, imported.judge_id)
    return RunConfig(
        id=run_id,
        evalset=ref,
        repeat=imported.repeats,
        agent=AGENT,
        harness_id="",
        policy=imported.policy,
        policy_id=imported.policy_id,
        judge=name,
        judge_id=judge_id,
        started=_now(),
        command=command,
        versions={"harness": __version__, "python": platform.python_version()},
        fresh=False,
        imported=ImportedFrom(
            kind=imported.kind,
            file=file,
            sha256=sha256,
            user_simulator=imported.simulator,
            rescored=judge is not None,
            notes=imported.notes,
        ),
    )


class RunWriter:
    """Writes the rollouts of one run in order, secrets masked, long prompts once."""

    def __init__(self, folder: RunFolder, *, source: str) -> None:
        self._folder = folder
        redactor = Redactor.from_environment()
        self._cleaner = Cleaner(redactor.once)
        self._texts = Texts(redactor.text)
        self._file = folder.journal.open("ab")
        detail = {"from": source}
        self._append(NoteRecord(event="imported", at=_now(), pid=os.getpid(), detail=detail))

    def cleaned(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory without secrets, which is what is scored and kept."""
        return self._cleaner.record(trajectory)

    def add(self, item: Item, one: Recorded, scored: Scored) -> ItemResult:
        """One rollout with its score."""
        texts, compact = self._texts.compact(one.trajectory)
        for text in texts:
            self._append(text)
        repeat = one.trajectory.repeat
        self._append(TrajectoryRecord(item=item.id, repeat=repeat, trajectory=compact))
        result = self._cleaner.record(
            result_of(item, one, scored, digest=trajectory_digest(compact))
        )
        verdict = self._cleaner.record(scored.verdict) if scored.verdict else None
        self._append(
            VerdictRecord(item=item.id, repeat=repeat, verdict=verdict, error=scored.error)
        )
        self._append(ItemRecord(item=item.id, repeat=repeat, resumed=True, result=result))
        return result

    def close(self, config: RunConfig, *, metrics: tuple[str, ...]) -> Report:
        """Make it durable and write `run.json` and the reports."""
        planned = config.evalset.n * config.repeat
        write_json(self._folder.path / "run.json", config)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return write_reports(self._folder, planned=planned, status="complete", metrics=metrics)

    def abandon(self) -> None:
        """Give the file back; the folder is thrown away by who made it."""
        self._file.close()

    def _append(self, record: JournalRecord) -> None:
        self._file.write(line_of(_encode(record)))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def staged(store: RunStore, run_id: str) -> Iterator[RunFolder]:
    """A folder that becomes the run when the block ends well, and nothing otherwise."""
    store.path.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(dir=store.path.parent, prefix=".importing-"))
    try:
        inner = stage / run_id
        inner.mkdir()
        yield RunFolder(inner)
        inner.rename(store.path / run_id)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
