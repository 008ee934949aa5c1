"""A job's folder, `.harness/train/NAME/`: what was asked, how far it is, its curve, its states.

    job.json        the job as it was read
    state.json      who runs it, step, loss, the newest state saved, how it ended
    metrics.jsonl   one line a step; tensorboard/ the same as events
    log             what a job in the background writes
    steps/          states that --resume goes on from; one without its marker is no state

Nothing of torch is loaded here: the command line reads these files.
"""

import json
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.errors import HarnessError, Stale, UnknownName
from harness_cli.records.canonical import digest, write_json
from harness_cli.records.reader import read_json
from harness_cli.records.training_job import TrainingJob, TrainingState
from harness_cli.store.checkpoints import checked_name
from harness_cli.store.processes import alive, this_process

MARKER: Final = "complete.json"
"""Written into a state's folder after everything else: what is without it was cut short."""
_STEP: Final = "checkpoint-"
OFTEN_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of one job."""

    path: Path

    @classmethod
    def of(cls, root: Path, name: str) -> "JobFolder":
        """The folder of the job called `name`; it need not exist yet."""
        return cls(root / ".harness" / "train" / checked_name(name))

    @property
    def state_file(self) -> Path:
        """How far it is."""
        return self.path / "state.json"

    @property
    def metrics(self) -> Path:
        """One JSON line a step."""
        return self.path / "metrics.jsonl"

    @property
    def log(self) -> Path:
        """Output of a job in the background."""
        return self.path / "log"

    @property
    def lock(self) -> Path:
        """Held by the process that trains."""
        return self.path / "lock"

    @property
    def steps(self) -> Path:
        """States to go on from."""
        return self.path / "steps"

    @property
    def tensorboard(self) -> Path:
        """Events for TensorBoard."""
        return self.path / "tensorboard"

    def state(self) -> TrainingState | None:
        """`state.json`; None for a job that never began."""
        if not self.state_file.is_file():
            return None
        return read_json(self.state_file, TrainingState, name=str(self.state_file))

    def saved_steps(self) -> list[int]:
        """Steps of the whole states, oldest first."""
        found = self.steps.glob(f"{_STEP}*/{MARKER}")
        return sorted(int(path.parent.name.removeprefix(_STEP)) for path in found)

    def state_at(self, step: int) -> Path:
        """The folder of the state at a step."""
        return self.steps / f"{_STEP}{step}"

    def prune_states(self, keep: int) -> None:
        """Remove what was cut short, and whole states but the newest `keep`."""
        kept = {self.state_at(step) for step in self.saved_steps()[-keep:]}
        for path in self.steps.glob(f"{_STEP}*"):
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def curve(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`; a last one that was cut short is left out."""
        found: list[dict[str, Any]] = []
        for line in self._lines():
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        return found

    def cut_curve(self, step: int) -> None:
        """Forget what was measured behind a step: it is going to be measured again."""
        kept = [m for m in self.curve() if m["step"] <= step]
        text = "".join(json.dumps(m) + "\n" for m in kept)
        self.path.mkdir(parents=True, exist_ok=True)
        part = self.metrics.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self.metrics)

    def measure(self, step: int, values: Mapping[str, float]) -> None:
        """Add one line to the curve. What is no finite number is left out."""
        finite = {k: v for k, v in values.items() if math.isfinite(v)}
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **finite}) + "\n")

    def _lines(self) -> Iterator[str]:
        if self.metrics.is_file():
            yield from self.metrics.read_text(encoding="utf-8").splitlines()


class Running:
    """The state file of a job that this process runs."""

    def __init__(self, folder: JobFolder, state: TrainingState) -> None:
        self.folder, self.state = folder, state
        self._said = 0.0

    @classmethod
    def begin(
        cls, folder: JobFolder, job: TrainingJob, verb: str, *, steps: int, data_sha256: str
    ) -> "Running":
        """Say that this process runs the job now."""
        pid, boot, begun = this_process()
        saved = folder.saved_steps()
        made = cls(
            folder,
            TrainingState(
                name=job.name,
                verb=verb,
                pid=pid,
                boot_id=boot,
                begun=begun,
                started=now(),
                steps=steps,
                saved=saved[-1] if saved else 0,
                step=saved[-1] if saved else 0,
                job_sha256=job_digest(job),
                data_sha256=data_sha256,
            ),
        )
        made.say()
        return made

    def say(self, **changes: Any) -> None:
        """Write the state with these changes."""
        self.state = msgspec.structs.replace(self.state, **changes)
        write_json(self.folder.state_file, self.state)

    def measured(self, step: int, loss: float) -> None:
        """A step is done. The file is synced, so it is written some times a second at most."""
        if time.monotonic() - self._said >= OFTEN_S:
            self._said = time.monotonic()
            self.say(step=step, loss=loss)
        else:
            self.state = msgspec.structs.replace(self.state, step=step, loss=loss)

    def ended(self, status: str, **more: Any) -> None:
        """Say how it ended. A full disk must not hide what ended it."""
        try:
            self.say(status=status, ended=now(), pid=0, **more)
        except OSError:
            if status == "done":
                raise


class Following(Running):
    """The state of a job in a process beside the first, which alone writes it."""

    @classmethod
    def of(cls, folder: JobFolder, job: TrainingJob, verb: str) -> "Following":
        """A state that is kept here."""
        return cls(folder, TrainingState(name=job.name, verb=verb))

    def say(self, **changes: Any) -> None:
        """Keep it."""
        self.state = msgspec.structs.replace(self.state, **changes)


def main_process() -> bool:
    """Whether this is the first of the processes that train together: it alone writes."""
    return int(os.environ.get("RANK", "0")) == 0


def live_status(state: TrainingState) -> str:
    """The status, with `stale` for a job whose process is gone without a word."""
    if state.status != "running":
        return state.status
    return "running" if alive(state.pid, state.boot_id, state.begun) else "stale"


def jobs(root: Path) -> list[TrainingState]:
    """Every job that has begun, by name."""
    found = sorted((root / ".harness" / "train").glob("*/state.json"))
    return [read_json(path, TrainingState, name=str(path)) for path in found]


def job_named(root: Path, name: str | None) -> tuple[JobFolder, TrainingState]:
    """The job of that name, or the one that began last. Raises `UnknownName`."""
    known = {state.name: state for state in jobs(root)}
    if name is None and not known:
        raise UnknownName("no training job has begun", hint="harness train sft JOB.yaml")
    if name is None:
        name = max(known.values(), key=lambda s: s.started).name
    if name not in known:
        raise UnknownName.of("training job", name, known)
    return JobFolder.of(root, name), known[name]


def stopping(name: str) -> str:
    """What to do about a job that another process trains."""
    return f"wait until it is done, or harness train stop {name}"


def refuse_other(folder: JobFolder, job: TrainingJob, data_sha256: str, *, resume: bool) -> int:
    """The step to go on from; 0 begins anew.

    Raises `Stale` where the folder holds the states of another job or of other data, and
    `HarnessError` where it holds states and nobody said whether to go on.
    """
    state, saved = folder.state(), folder.saved_steps()
    if state is None or not saved:
        return 0
    if not resume:
        raise HarnessError(
            f"`{job.name}` has states up to step {saved[-1]}",
            hint="--resume goes on from there, --again forgets them and begins anew",
        )
    for what, old, new in (
        ("job", state.job_sha256, job_digest(job)),
        ("training data", state.data_sha256, data_sha256),
    ):
        if old != new:
            raise Stale(
                f"the {what} of `{job.name}` is another than the one its states are of",
                hint="--again forgets them and begins anew, or give the job another name",
            )
    return saved[-1]


def forget(folder: JobFolder) -> None:
    """Remove states and curve of an earlier try; the registered checkpoint stays."""
    for path in (folder.steps, folder.tensorboard):
        shutil.rmtree(path, ignore_errors=True)
    for path in (folder.metrics, folder.state_file):
        path.unlink(missing_ok=True)


def job_digest(job: TrainingJob) -> str:
    """The digest of what decides the weights: neither how often it saves nor how it samples."""
    kept = msgspec.to_builtins(job)
    for name in ("save_every", "keep", "served", "measured_by"):
        kept.pop(name)
    for name in ("tasks", "buckets"):  # fields that came later: a job without them is what it was
        if not kept.get(name):
            kept.pop(name, None)
    return digest(kept)


def disk_is_full(exc: BaseException) -> bool:
    """Whether an error of saving says that there is no room."""
    told = f"{exc} {exc.__cause__ or ''}"
    full = isinstance(exc, OSError) and exc.errno in (27, 28, 122)
    return full or "No space left" in told or "File too large" in told or "os error 28" in told


def now() -> str:
    """This moment, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def mark_complete(folder: Path, step: int) -> None:
    """Mark a state's folder as whole, once everything in it is on the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    write_json(folder / MARKER, {"schema": 1, "step": step})
