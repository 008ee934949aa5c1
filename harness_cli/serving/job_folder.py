"""Where the files of a serving job lie, and what they say about processes.

Under `.harness/serve/jobs/<name>/`: `desired.json` (written by the command line), `live.json` (by
the supervisor), `lock`, and a log for the supervisor, the router and each replica.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.records.canonical import write_json
from harness_cli.records.reader import read_json
from harness_cli.records.serve_job import Desired, Live, ProcessRef
from harness_cli.serving.preflight import NAME
from harness_cli.store.processes import alive

_Said = TypeVar("_Said", Desired, Live)


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The folder of one job."""

    path: Path

    @classmethod
    def of(cls, root: Path, name: str) -> "JobFolder":
        """The folder of job `name` in a project."""
        if not NAME.fullmatch(name):
            raise UsageError(f"`{name}` cannot name a serving job")
        return cls(shelf(root) / name)

    @property
    def name(self) -> str:
        """The job's name."""
        return self.path.name

    @property
    def lock(self) -> Path:
        """Held by whoever starts or changes the job."""
        return self.path / "lock"

    def log(self, of: str) -> Path:
        """The log of `supervisor`, `router` or `replica-N`."""
        return self.path / f"{of}.log"

    def desired(self) -> Desired | None:
        """What shall run; None where nothing was ever asked for."""
        return self._read("desired.json", Desired)

    def live(self) -> Live | None:
        """What runs, as the supervisor last said."""
        return self._read("live.json", Live)

    def _read(self, file: str, kind: type[_Said]) -> _Said | None:
        path = self.path / file
        try:
            return read_json(path, kind) if path.is_file() else None
        except BadFile as exc:
            hint = f"remove it; `harness serve down {self.name}` then ends what still runs"
            raise BadFile(str(exc), hint=hint) from exc

    def ask(self, desired: Desired) -> None:
        """Say what shall run."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "desired.json", desired)

    def tell(self, live: Live) -> None:
        """Say what runs."""
        write_json(self.path / "live.json", live)

    def forget(self) -> None:
        """Nothing runs and nothing shall; the logs stay."""
        for name in ("live.json", "desired.json"):
            (self.path / name).unlink(missing_ok=True)


def shelf(root: Path) -> Path:
    """The folder of all jobs of a project."""
    return root / ".harness" / "serve" / "jobs"


def job_names(root: Path) -> list[str]:
    """Jobs that were asked for and not taken down."""
    return sorted(path.parent.name for path in shelf(root).glob("*/desired.json"))


def known_job(root: Path, name: str) -> JobFolder:
    """The folder of a job that was asked for. Raises `UnknownName`."""
    if name not in job_names(root):
        raise UnknownName.of("serving job", name, job_names(root))
    return JobFolder.of(root, name)


def runs(process: ProcessRef | None) -> bool:
    """The very process that was started still runs (and is no zombie)."""
    return process is not None and alive(process.pid, process.boot_id, process.begun)


def orphans(live: Live) -> list[ProcessRef]:
    """Processes of a job whose supervisor is gone: they answer, and nobody watches them."""
    if runs(live.supervisor):
        return []
    found = [live.router, *(replica.process for replica in live.replicas)]
    return [process for process in found if process is not None and runs(process)]
