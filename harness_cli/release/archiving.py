"""Archives of the rollouts behind a release: a ZIP file of `<run>/journal.jsonl`.

A manifest binds an archive rollout by rollout, by the digests in its evidence; so it needs none of
its own, and one that was packed anew is as good as the first.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.records.canonical import atomic_file
from harness_cli.records.manifest import Manifest
from harness_cli.store.journal import line_of, scan
from harness_cli.store.project import Project
from harness_cli.store.runs import ROLLOUTS, RunFolder, RunStore

JOURNAL = "journal.jsonl"
KEPT = frozenset({"note", "text", "trajectory", "verdict", "item"})
"""Kinds of journal records that checking needs: single calls are in the trajectories."""
LIMIT = 1 << 33
"""Bytes that a hostile archive may unpack to."""
BLOCK = 1 << 23
"""Bytes at a time: between two a thread that unpacks waits for whoever computes."""
_DATE = (1980, 1, 1, 0, 0, 0)
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    manifest: str
    file: str
    runs: tuple[str, ...]
    missing: tuple[str, ...]
    """Runs of the evidence whose folders are not here."""


def archive_path(project: Project, name: str) -> Path:
    """`manifests/archive/<id>.zip`: where `verify` looks unasked."""
    return project.manifests / "archive" / f"{name}.zip"


def write_archive(project: Project, manifest: Manifest, path: Path) -> Archived:
    """The rollouts of every run that a manifest rests on and whose folder is here.

    Raises `UsageError` where there is none.
    """
    wanted = sorted({evidence.run for evidence in manifest.predicate.evidence})
    here = {run.id: run for run in RunStore(project.runs).list() if run.id in wanted}
    if not here:
        raise UsageError(
            f"no run of `{manifest.predicate.id}` is in `{project.config.runs}`",
            hint="archive a release where it was measured, before `harness runs prune`",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, run in sorted(here.items()):
            for source in dict.fromkeys((run.journal, run.rollouts)):
                info = zipfile.ZipInfo(f"{name}/{source.name}", _DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                with made.open(info, "w", force_zip64=True) as member:
                    for line in scan(source):
                        if line.kind in KEPT:
                            member.write(line_of(line.data))
    return Archived(
        manifest=manifest.predicate.id,
        file=str(path),
        runs=tuple(sorted(here)),
        missing=tuple(name for name in wanted if name not in here),
    )


@contextmanager
def runs_of(path: Path, wanted: set[str]) -> Iterator[Mapping[str, RunFolder]]:
    """The named runs of an archive, or of a folder of runs, as far as they are there.

    Raises `BadFile` where it is no archive.
    """
    if path.is_dir():
        yield {name: RunFolder(path / name) for name in wanted if (path / name / JOURNAL).is_file()}
        return
    with TemporaryDirectory(prefix="harness-rollouts-") as made:
        unpack(path, Path(made), wanted)
        names = {name for name in wanted if (Path(made) / name / JOURNAL).is_file()}
        yield {name: RunFolder(Path(made) / name) for name in sorted(names)}


@dataclass(frozen=True, slots=True)
class Begun:
    """Runs of an archive on their way; `runs` waits for them."""

    name: str
    """The archive's file, or the folder of runs."""
    runs: Callable[[], Mapping[str, RunFolder]]


@contextmanager
def begun(path: Path, wanted: set[str]) -> Iterator[Begun]:
    """`runs_of`, begun by a thread, which works on while its caller checks other things.

    `runs` raises what `runs_of` does; after it no thread is left.
    """
    with ExitStack() as stack, ThreadPoolExecutor(1) as beside:
        found = beside.submit(stack.enter_context, runs_of(path, wanted))

        def runs() -> Mapping[str, RunFolder]:
            beside.shutdown()
            return found.result()

        yield Begun(path.name, runs)


def unpack(path: Path, folder: Path, wanted: set[str]) -> None:
    """The journals of the wanted runs; a member of any other name is left where it is."""
    left = LIMIT
    names = {f"{run}/{file}": run for run in wanted for file in (JOURNAL, ROLLOUTS)}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                run = names.get(info.filename)
                if run is None or not _RUN.fullmatch(run):
                    continue
                target = folder / info.filename
                target.parent.mkdir(exist_ok=True)
                with archive.open(info) as member, target.open("wb") as file:
                    while block := member.read(BLOCK):
                        left -= len(block)
                        if left < 0:
                            raise BadFile(f"{path.name}: unpacks to more than {LIMIT} bytes")
                        file.write(block)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as exc:
        if isinstance(exc, HarnessError):
            raise
        raise BadFile(f"{path.name}: no whole archive of rollouts: {exc}") from exc
