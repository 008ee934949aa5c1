"""A run as a log of inspect_ai (EvalLog version 2, JSON), so that `inspect view` opens it.

Samples are written one at a time, in the order in which the rollouts ended.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness_cli import __version__
from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.exports.inspect_sample import sample_of
from harness_cli.records.canonical import atomic_file
from harness_cli.records.item import Item
from harness_cli.records.journal import ItemRecord
from harness_cli.records.run import MetricSummary, Report
from harness_cli.store.journal import read_at
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder

STATUS = {"complete": "success", "failed": "error"}
"""Ours → inspect's; an interrupted run, or one out of budget, is `cancelled`."""
_encode = msgspec.json.Encoder().encode
_item = msgspec.json.Decoder(ItemRecord).decode


def export_inspect(
    project: Project, run: RunFolder, path: Path, *, folder: bool = False
) -> tuple[Path, int]:
    """Write the log of a finished run: the file, and the number of its samples.

    A folder gets a file of the name that `inspect view` lists; `folder` says that `path` is to be
    one, though it may not be there yet. The file appears whole or not at all. Raises `BadFile`,
    `UsageError`.
    """
    report = run.report()
    if folder and path.parent.is_dir() and not path.exists():
        path.mkdir()
    if path.is_dir():
        path /= listed_name(report)
    items = _items(project, report)
    count = 0
    if not path.parent.is_dir():
        raise UsageError(f"no folder `{path.parent}` to write `{path.name}` into")
    with atomic_file(path) as file:
        file.write(_encode(_head(report))[:-1] + b',"samples":[')
        for sample in _samples(run, report, items):
            file.write((b",\n" if count else b"\n") + _encode(sample))
            count += 1
        file.write(b"\n]}\n")
    return path, count


def listed_name(report: Report) -> str:
    """Time, task and id, as inspect names its logs: a folder's view shows no other JSON files."""
    run = report.run
    task = re.sub(r"[^A-Za-z0-9]+", "-", f"{run.evalset.name} {run.evalset.split or ''}").strip("-")
    return f"{run.started.replace(':', '-')}_{task}_{run.id}.json"


def is_listed(name: str) -> bool:
    """`inspect view` shows a file of this name when it is given its folder."""
    return re.match(r"\d{4}-\d{2}-\d{2}T\d{2}[:-]\d{2}[:-]\d{2}.*_.*\.json$", name) is not None


def _items(project: Project, report: Report) -> dict[str, Item]:
    """The items of the run, for their targets: none where they changed, or are sealed."""
    ref = report.run.evalset
    try:
        evalset = load_evalset(project, ref.name, split=ref.split)
    except UsageError:
        return {}
    if evalset.digest != ref.digest or evalset.items.sealed is not None:
        return {}
    return {item.id: item for item in evalset.items}


def _samples(run: RunFolder, report: Report, items: dict[str, Item]) -> Iterator[dict[str, Any]]:
    places = {(p.item, p.repeat): p.offset for p in run.places()}
    for trajectory in run.trajectories():
        key = (trajectory.item_id or "", trajectory.repeat)
        if key not in places:  # its item never ended: the report does not count it either
            continue
        result = _item(read_at(run.journal, places[key])).result
        yield sample_of(trajectory, result, items.get(key[0]), run=run.id, report=report)


def _head(report: Report) -> dict[str, Any]:
    """Everything but the samples."""
    run = report.run
    status = STATUS.get(report.status, "cancelled")
    head: dict[str, Any] = {
        "version": 2,
        "status": status,
        "eval": _spec(report),
        "plan": {"name": "harness", "steps": [_solver(report)], "config": {}},
        "results": {
            "total_samples": report.planned,
            "completed_samples": report.planned - report.counts.get("missing", 0),
            "scores": [_score(m) for m in report.metrics],
        },
        "stats": {
            "started_at": run.started,
            "completed_at": run.started,
            "model_usage": {run.policy_id: _usage(report)},
        },
    }
    if status == "error":
        told = f"the run ended {report.status}"
        head["error"] = {"message": told, "traceback": told, "traceback_ansi": told}
    return head


def _spec(report: Report) -> dict[str, Any]:
    run = report.run
    split = f"/{run.evalset.split}" if run.evalset.split else ""
    spec: dict[str, Any] = {
        "eval_id": run.id,
        "run_id": run.id,
        "created": run.started,
        "task": run.evalset.name + split,
        "task_id": run.id,
        "task_version": 0,
        "task_args": {"profile": run.profile, "seed": run.seed, "agent": run.agent},
        "dataset": {
            "name": run.evalset.name + split,
            "samples": run.evalset.n,
            "shuffled": False,
        },
        "model": run.policy_id,
        "config": {"epochs": run.repeat, **({"limit": run.limit} if run.limit else {})},
        "packages": {"harness-evolution": __version__},
        "scorers": [{"name": m.metric, "options": {}, "metadata": {}} for m in report.metrics],
        "metadata": {
            "harness_id": run.harness_id,
            "judge_id": run.judge_id,
            "evalset_digest": run.evalset.digest,
            "counts": report.counts,
            "pass_hat": report.pass_hat,
            "imported": msgspec.to_builtins(run.imported),
        },
    }
    if run.harness_commit:
        commit = run.harness_commit
        spec["revision"] = {"type": "git", "origin": "", "commit": commit, "dirty": run.dirty}
    return spec


def _solver(report: Report) -> dict[str, Any]:
    run = report.run
    params = {"harness": run.harness_id, "pipeline": run.pipeline}
    return {"solver": run.agent, "params": params, "params_passed": params}


def _score(summary: MetricSummary) -> dict[str, Any]:
    values: dict[str, float] = {}
    if summary.mean is not None:
        values["mean"] = summary.mean
    if summary.interval is not None:
        values |= {"ci95_low": summary.interval.low, "ci95_high": summary.interval.high}
    return {
        "name": summary.metric,
        "scorer": summary.metric,
        "scored_samples": summary.scored,
        "unscored_samples": summary.of - summary.scored,
        "params": {},
        "metrics": {k: {"name": k, "value": v, "params": {}} for k, v in values.items()},
    }


def _usage(report: Report) -> dict[str, int]:
    asked = int(report.usage.get("input_tokens") or 0)
    said = int(report.usage.get("output_tokens") or 0)
    return {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}


def finished(run: RunFolder) -> RunFolder:
    """The run, where it has a report. Raises `BadFile` with the command that makes one."""
    if not run.report_file.exists():
        raise BadFile(
            f"run `{run.id}` is not finished: there is no report to export",
            hint=f"`harness eval --resume {run.id}`",
        )
    return run
