"""Runs and trajectories on the terminal."""

import json
from pathlib import Path

import msgspec

from harness_cli.commands._show import emit_json, line, table
from harness_cli.commands._verdict import verdict_lines
from harness_cli.evaluation import noise_text
from harness_cli.evaluation.noise import kept
from harness_cli.evaluation.report import repeat_lines
from harness_cli.evaluation.verdicts import verdict_of
from harness_cli.records.counting import counted
from harness_cli.records.trajectory import HookEvent, Step, Trajectory
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

_LONG = 400


def show_run(name: str, folder: Path, *, as_json: bool, quiet: bool) -> None:
    """What was asked, how far it came, and the metrics of its report."""
    run = RunStore(Project.find(folder).runs).get(name)
    config, status = run.config(), run.status()
    report = run.report() if run.report_file.exists() else None
    if as_json:
        emit_json({"run": config, "status": status, "report": report})
        return
    if quiet:
        line(f"{run.id} {status}")
        return
    split = f"/{config.evalset.split}" if config.evalset.split else ""
    line(f"{run.id}  {status}  {config.evalset.name}{split}, {counted(config.evalset.n, 'item')}")
    dirty = " (uncommitted files)" if config.dirty else ""
    imported = config.imported
    if imported is not None:
        simulator = f", user simulator {imported.user_simulator}" if imported.user_simulator else ""
        line(f"imported from {imported.file} ({imported.kind}){simulator}: never promoted")
    else:
        line(f"harness {config.harness_id[:12]}{dirty}")
    line(f"policy {config.policy_id}  judge {config.judge_id}")
    if report is not None:
        line("  ".join(f"{key} {value}" for key, value in report.counts.items()))
        rows = [
            [m.metric, m.mean, _interval(m.interval), f"{m.scored} of {m.of}"]
            for m in report.metrics
        ]
        table(["metric", "mean", "95 % interval", "scored"], rows)
        for said in repeat_lines(report):
            line(said)
    noise = kept(run)
    if noise is not None:
        line(noise_text.title(noise))
        table(noise_text.COLUMNS, noise_text.metric_rows(noise))


def _interval(interval: object) -> str:
    low, high = getattr(interval, "low", None), getattr(interval, "high", None)
    return "–" if low is None else f"{low:.4g} … {high:.4g}"


def show_trajectory(
    item: str, run_name: str, repeat: int, folder: Path, *, as_json: bool, quiet: bool
) -> None:
    """One rollout: messages, calls, results, hooks, reply."""
    run = RunStore(Project.find(folder).runs).get(run_name)
    found = run.trajectory(item, repeat)
    said = verdict_of(run, item, repeat)
    if as_json:
        emit_json({"run": run.id, "trajectory": found, "verdict": said.verdict if said else None})
        return
    if not quiet:
        for step in found.steps:
            _step(step)
        for event in found.hooks:
            line(_hook(event))
    _end(found)
    for words in verdict_lines(said, votes=not quiet):
        line(words)


def _step(step: Step) -> None:
    line(f"── step {step.index}" + (" (fallback policy)" if step.fallback else ""))
    for message in step.messages:
        content = message.get("content")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        line(f"  {message.get('role')}: {_short(text)}")
    if step.reply.reasoning:
        line(f"  reasoning: {_short(step.reply.reasoning)}")
    for call in step.calls:
        line(f"  → {call.name}({_short(call.arguments_raw)})")
        error = f" [{call.result.error}]" if call.result.error else ""
        line(f"  ← {_short(call.result.content)}{error}")
    for event in step.hooks:
        line(_hook(event))
    if step.reply.content:
        line(f"  assistant: {_short(step.reply.content)}")


def _hook(event: HookEvent) -> str:
    check = f" ({event.check})" if event.check else ""
    return f"  hook {event.hook}{check} at {event.event}: {event.outcome} {event.reason}".rstrip()


def _end(found: Trajectory) -> None:
    for message in found.tail:
        line(f"  {message.get('role')}: {_short(str(message.get('content')))}")
    line(f"reply: {found.reply or '(silent)'}")
    for action in found.actions:
        line(f"action: {json.dumps(msgspec.to_builtins(action), ensure_ascii=False)}")
    line(f"stop {found.stop}, route {found.route}, {found.wall_s:.3f} s")
    if found.error:
        line(f"error: {found.error}")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
