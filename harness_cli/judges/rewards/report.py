"""One reward judge on the probe set: what separates, how noisy it is, and findings of it."""

import msgspec

from harness_cli.errors import BadFile
from harness_cli.harness.findings import Finding
from harness_cli.judges.base import Judge
from harness_cli.judges.rewards.noise import Noise, measure_noise
from harness_cli.judges.rewards.open import reward_judge
from harness_cli.judges.rewards.separation import (
    FOLDER,
    Separation,
    probe_digest,
    read_probes,
    score_probes,
    separations,
    trajectories,
)
from harness_cli.records.canonical import sha256
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.probe import Probe
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project

NOISE_PROBES = 24
"""Probes that are judged again and again: by the digests of their ids, so good and bad alike."""


class RewardReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one reward judge."""

    judge: str
    probes: int
    probes_digest: str
    separations: tuple[Separation, ...]
    noise: tuple[Noise, ...] = ()

    @property
    def faults(self) -> list[Separation]:
        """Dimensions that do not separate."""
        return [s for s in self.separations if s.fault]


async def report_rewards(
    project: Project, name: str | None = None, *, repeats: int = 1
) -> RewardReport:
    """Score every probe with the project's reward judge; with `repeats` above 1, its noise too.

    Votes of a panel are taken fresh where noise is measured. Raises `UsageError` and `BadFile`.
    """
    probes = read_probes(project.evalsets / FOLDER / "probes.jsonl")
    world = read_catalogue(project.evalsets / "catalogue")
    judge = reward_judge(project, name, fresh=repeats > 1)
    try:
        return await _report(judge, probes, world, repeats)
    finally:
        await judge.close()


async def _report(
    judge: Judge, probes: tuple[Probe, ...], world: Catalogue, repeats: int
) -> RewardReport:
    scores = await score_probes(judge, probes, world)
    noise: tuple[Noise, ...] = ()
    if repeats > 1:
        chosen = sorted(probes, key=lambda p: sha256(p.id.encode()))[:NOISE_PROBES]
        noise = await measure_noise(judge, trajectories(chosen), world, repeats=repeats)
    return RewardReport(
        judge=judge.id,
        probes=len(probes),
        probes_digest=probe_digest(probes),
        separations=separations(probes, scores),
        noise=noise,
    )


def findings_of(report: RewardReport, path: str) -> list[Finding]:
    """An error for each dimension that does not separate."""
    return [
        Finding(
            path=path,
            rule="rewards/separation",
            message=f"`{s.dimension}` of {report.judge} does not tell good rollouts from corrupted "
            f"ones: {s.fault}",
            fix=_fix(s),
        )
        for s in report.faults
    ]


def unreadable(error: BadFile, path: str) -> Finding:
    """No probes, no proof."""
    return Finding(path=path, rule="rewards/probes", message=str(error), fix=error.hint or "")


def _fix(separation: Separation) -> str:
    if separation.worst:
        return f"look at {', '.join(separation.worst[:3])}: corrupted, and scored like a good one"
    return "train with no reward that cannot tell them apart; `harness judge rewards` shows more"
