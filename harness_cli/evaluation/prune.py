"""Throwing run folders away, and the refs that keep their uncommitted trees alive."""

import shutil
from collections.abc import Collection
from dataclasses import dataclass

from harness_cli.errors import RepoError
from harness_cli.evaluation.plan import RUN_REFS
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunFolder, RunStore


@dataclass(frozen=True, slots=True)
class Pruned:
    """What goes, what stays and why."""

    runs: tuple[RunFolder, ...]
    refs: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    """Run id and reason, of runs that were old enough to go."""


def prunable(project: Project, *, keep: int, protected: Collection[str]) -> Pruned:
    """All runs but the newest `keep`, those a live manifest rests on, and running ones.

    A ref goes with its run, and when its run is gone already.
    """
    runs = RunStore(project.runs).list()
    going: list[RunFolder] = []
    kept: list[tuple[str, str]] = []
    for run in runs[keep:]:
        reason = _reason(run, protected)
        if reason:
            kept.append((run.id, reason))
        else:
            going.append(run)
    # A protected run may have no folder here (a clone); its ref stays all the same.
    staying = {run.id for run in runs} - {run.id for run in going} | set(protected)
    refs = [ref for ref in _refs(project) if ref.removeprefix(RUN_REFS) not in staying]
    return Pruned(tuple(going), tuple(sorted(refs)), tuple(kept))


def prune(project: Project, pruned: Pruned) -> None:
    """Do it: folders first, so that a ref never outlives the run that needs it by accident."""
    for run in pruned.runs:
        shutil.rmtree(run.path)
    if pruned.refs:
        repo = Repo.open(project.harness)
        for ref in pruned.refs:
            repo.delete_ref(ref)


def _reason(run: RunFolder, protected: Collection[str]) -> str | None:
    if run.id in protected:
        return "evidence of a live manifest"
    holder = run.writer()
    return f"being written by process {holder.pid}" if holder else None


def _refs(project: Project) -> list[str]:
    try:
        return list(Repo.open(project.harness).refs(RUN_REFS))
    except RepoError:
        return []
