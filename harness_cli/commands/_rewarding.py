"""`harness judge rewards` and `harness check --rewards`: whether rewards can teach anything."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import judge_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet

if TYPE_CHECKING:
    from harness_cli.harness.findings import Finding
    from harness_cli.judges.rewards.report import RewardReport

FAILED = 2


def rewards(
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge", help="Default: the role `reward_judge`, or by rule.",
            autocompletion=judge_names,
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="Judge the same rollouts so often: noise.")
    ] = 1,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Six rewards on good and corrupted rollouts: what separates, and how noisy each is."""
    import asyncio

    from harness_cli.commands._show import emit_json, note
    from harness_cli.judges.rewards.report import report_rewards
    from harness_cli.store.project import Project

    project = Project.find(directory)
    report = asyncio.run(report_rewards(project, judge, repeats=repeat))
    if as_json:
        emit_json({"rewards": report})
    else:
        show(report)
        if not quiet:
            note(f"{report.judge} on {report.probes} probes, good and corrupted by construction")
    if report.faults:
        raise typer.Exit(FAILED)


def show(report: "RewardReport") -> None:
    """The table of one reward judge."""
    from harness_cli.commands._show import table

    noise = {n.dimension: n for n in report.noise}
    rows = []
    for s in report.separations:
        row = [s.dimension, s.good, s.corrupted, s.unscored, _shown(s.auc), _shown(s.gap)]
        if noise:
            n = noise[s.dimension]
            row += [_shown(n.deviation), _shown(n.reliability)]
        rows.append((*row, s.fault or "separates"))
    heads = ["reward", "good", "corrupted", "unscored", "AUC", "gap"]
    heads += ["noise sd", "reliability"] if noise else []
    table((*heads, "verdict"), rows)


def reward_findings(root: Path, *, quiet: bool) -> "list[Finding]":
    """Findings of `harness check --rewards`; the table is shown unless `quiet`."""
    import asyncio

    from harness_cli.errors import BadFile
    from harness_cli.judges.rewards.report import findings_of, report_rewards, unreadable
    from harness_cli.judges.rewards.separation import FOLDER
    from harness_cli.store.project import Project

    project = Project.read(root)
    path = f"{project.config.evalsets}/{FOLDER}/probes.jsonl"
    try:
        report = asyncio.run(report_rewards(project))
    except BadFile as exc:
        return [unreadable(exc, path)]
    if not quiet:
        show(report)
    return findings_of(report, path)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
