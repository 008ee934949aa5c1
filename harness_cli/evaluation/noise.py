"""The A/A noise floor of a run: measured, kept beside it, found again by what compares runs."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness_cli.errors import UsageError
from harness_cli.evaluation.by_item import HEADLINE, collected
from harness_cli.records.canonical import write_json
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.records.noise import GateOutlook, MetricNoise, Noise
from harness_cli.records.reader import read_json, read_yaml
from harness_cli.records.run import EvalsetRef, RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.noise import noise_of
from harness_cli.stats.power import can_pass, gate_items_needed, noninferiority_power
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

FILE = "noise.json"
ALIKE = ("policy_id", "harness_id", "judge_id", "agent", "profile", "repeat")
NONINFERIORITY = ("regression", "capability")


def measure(runs: Sequence[RunFolder], gates: Iterable[Gate] = ()) -> Noise:
    """The noise of two or more runs of the same thing, or of the repeats of one.

    Raises `UsageError` where the runs are not of one policy, harness, judge and evalset, or where
    one run without repeats stands alone.
    """
    configs = [run.config() for run in runs]
    _refuse_unlike(configs)
    first = configs[0]
    if len(runs) == 1 and first.repeat < 2:
        raise UsageError(
            f"run `{first.id}` has one rollout an item: nothing to set it against",
            hint="harness eval --aa, or --repeat 2",
        )
    items, digests = _scores(runs)
    metrics = _metrics(items)
    alike = [len(set(d)) == 1 for d in digests.values() if len(d) > 1 and all(d)]
    return Noise(
        runs=tuple(config.id for config in configs),
        evalset=first.evalset,
        limit=first.limit,
        policy_id=first.policy_id,
        harness_id=first.harness_id,
        judge_id=first.judge_id,
        agent=first.agent,
        profile=first.profile,
        repeat=first.repeat if len(runs) > 1 else 1,
        same_rollouts=sum(alike) / len(alike) if alike else None,
        metrics=metrics,
        gates=outlooks(gates, first.evalset, metrics),
    )


def keep(runs: Sequence[RunFolder], noise: Noise) -> None:
    """Write it beside every run that it comes from."""
    for run in runs:
        write_json(run.path / FILE, noise)


def kept(run: RunFolder) -> Noise | None:
    """The noise measured with a run, where it was."""
    path = run.path / FILE
    return read_json(path, Noise, name=f"{run.id}/{FILE}") if path.is_file() else None


def find(store: RunStore, *configs: RunConfig) -> Noise | None:
    """The newest noise floor that fits one of the runs to compare, in the order given.

    It fits when policy, judge, agent and evalset content are the same; one of the very harness is
    preferred to one of another.
    """
    known = [found for run in store.list() if (found := kept(run)) is not None]
    for harness_too in (True, False):
        for config in configs:
            for noise in known:
                if _fits(noise, config, harness_too=harness_too):
                    return noise
    return None


def floor(noise: Noise, metric: str, *, n: int, repeat: int = 1) -> float | None:
    """±c: what a difference of two runs with n items and `repeat` rollouts each may be by chance.

    The measured interval, scaled by √(items · repeats) where these differ; None for an unknown
    metric.
    """
    found = next((m for m in noise.metrics if m.metric == metric), None)
    if found is None or n < 1:
        return None
    return found.interval.high * math.sqrt(found.items * noise.repeat / (n * repeat))


def read_gates(path: Path) -> tuple[Gate, ...]:
    """The gates of a project, none where it has no file of them."""
    return read_yaml(path, GatesFile, name=path.name).gates if path.is_file() else ()


def outlooks(
    gates: Iterable[Gate],
    evalset: EvalsetRef,
    metrics: Sequence[MetricNoise],
    *,
    n: int | None = None,
) -> tuple[GateOutlook, ...]:
    """Of each non-inferiority gate on this evalset: whether it can pass, and the n it needs.

    `n` items are planned; by default as many as the noise was measured on. The noise is the least
    spread a comparison can have: real changes add to it.
    """
    named = {m.metric: m for m in metrics}
    found = []
    for gate in gates:
        noise = named.get("pass" if gate.metric == "passed" else gate.metric)
        if noise is None or gate.kind not in NONINFERIORITY or not _on(gate, evalset):
            continue
        items = n or noise.items
        enough = items >= gate.minimum_n
        needed = gate_items_needed(noise.sd, gate.margin)
        found.append(
            GateOutlook(
                gate=gate.name,
                metric=gate.metric,
                margin=gate.margin,
                n=items,
                can_pass=enough and can_pass(items, noise.sd, gate.margin),
                power=noninferiority_power(items, noise.sd, gate.margin) if enough else 0.0,
                needed=needed and max(needed, gate.minimum_n),
                minimum_n=gate.minimum_n,
            )
        )
    return tuple(found)


def forecast(store: RunStore, config: RunConfig, gates: Iterable[Gate]) -> tuple[GateOutlook, ...]:
    """What the newest noise floor that fits a run leaves of gates over the whole split; empty
    where no A/A run was made."""
    noise = find(store, config)
    if noise is None:
        return ()
    return outlooks(gates, noise.evalset, noise.metrics, n=noise.evalset.n)


def measured_with(project: Project, runs: Sequence[RunFolder]) -> Noise:
    """Measure the noise of runs against the project's gates, and keep it beside them."""
    noise = measure(runs, read_gates(project.gates))
    keep(runs, noise)
    return noise


def _on(gate: Gate, evalset: EvalsetRef) -> bool:
    return gate.evalset == evalset.name and gate.split in (None, evalset.split)


def _fits(noise: Noise, config: RunConfig, *, harness_too: bool) -> bool:
    same = (
        noise.policy_id == config.policy_id
        and noise.judge_id == config.judge_id
        and noise.agent == config.agent
        and (noise.evalset.name, noise.evalset.split, noise.evalset.digest)
        == (config.evalset.name, config.evalset.split, config.evalset.digest)
    )
    return same and (not harness_too or noise.harness_id == config.harness_id)


def _refuse_unlike(configs: Sequence[RunConfig]) -> None:
    first = configs[0]
    for other in configs[1:]:
        names = [n for n in ALIKE if getattr(first, n) != getattr(other, n)]
        if first.evalset != other.evalset or first.limit != other.limit:
            names.append("evalset")
        if names:
            raise UsageError(
                f"runs `{first.id}` and `{other.id}` differ in {', '.join(names)}: no A/A",
                hint="`harness eval --aa` makes two runs of one thing",
            )


Scores = dict[str, dict[str, list[float]]]


def _scores(runs: Sequence[RunFolder]) -> tuple[Scores, dict[str, list[str]]]:
    """Metric → item → its score in every run (or repeat), and the digests of its rollouts."""
    found: Scores = {}
    digests: dict[str, list[str]] = {}
    for run in runs:
        results = list(_watched(run.results(), digests))
        for item_id, item in collected(results)[0].items():
            for metric, values in item.scores.items():
                known = [v for v in values if v is not None]
                if len(runs) > 1:
                    known = [sum(known) / len(known)] if known else []
                found.setdefault(metric, {}).setdefault(item_id, []).extend(known)
    return found, digests


def _watched(results: Iterable[ItemResult], digests: dict[str, list[str]]) -> Iterable[ItemResult]:
    for result in results:
        digests.setdefault(result.item_id, []).append(result.trajectory_sha256)
        yield result


def _metrics(items: Scores) -> tuple[MetricNoise, ...]:
    names = [m for m in HEADLINE if m in items] + sorted(set(items) - set(HEADLINE))
    found = (noise_of(name, list(items[name].values())) for name in names)
    return tuple(noise for noise in found if noise is not None)
