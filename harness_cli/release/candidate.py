"""The candidate pair of a promotion, and the runs that speak of a pair."""

from dataclasses import dataclass
from typing import Any

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.calibrating import standing_of
from harness_cli.records.canonical import digest, sha256
from harness_cli.records.gates import Gate, GatesFile, declared
from harness_cli.records.journal import NoteRecord
from harness_cli.records.reader import read_yaml
from harness_cli.records.run import RunConfig
from harness_cli.release.clock import now, too_old
from harness_cli.release.evidence import RunEvidence, line_of
from harness_cli.store.journal import scan
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

MEASURED = ("latency", "regression", "capability")
"""Gate kinds that rest on a run."""
PROMOTE = ("harness", "promote")
"""How the runs that a promotion makes for its gates call themselves."""
_note = msgspec.json.Decoder(NoteRecord).decode


@dataclass(frozen=True, slots=True)
class Pair:
    """A policy in a harness: what a channel's two switches select."""

    policy: str
    """Name in harness.yaml."""
    policy_id: str
    policy_settings: dict[str, Any]
    harness_id: str
    commit: str | None
    dirty: bool = False

    @property
    def subject(self) -> str:
        """What an approval speaks of."""
        return digest({"policy": self.policy_id, "harness": self.harness_id})


def pair_of_run(config: RunConfig) -> Pair:
    """The pair that a run measured."""
    return Pair(
        policy=config.policy,
        policy_id=config.policy_id,
        policy_settings=config.policy_settings,
        harness_id=config.harness_id,
        commit=config.harness_commit,
        dirty=config.dirty,
    )


def settings_of(pair: Pair) -> dict[str, Any]:
    """The policy of a pair as a manifest binds it."""
    return {"id": pair.policy_id, "name": pair.policy, "settings": pair.policy_settings}


def judge_of(project: Project, name: str, judge_id: str) -> dict[str, Any]:
    """A run's judge with its calibration, as gates decide on it and a manifest binds it."""
    found = standing_of(project, name, judge_id)
    known: dict[str, Any] = {"name": name, "id": judge_id, "standing": found.standing}
    if found.record is not None:
        record = msgspec.to_builtins(found.record)
        known |= {"changes": list(found.changes), "calibration": record}
    return known


def read_gates(project: Project) -> GatesFile:
    """The project's gate file."""
    if not project.gates.is_file():
        raise BadFile(
            f"no file `{project.config.gates}`: nothing says what may be promoted",
            hint="copy the one that `harness init` makes in an empty folder; docs/release.md",
        )
    gates = read_yaml(project.gates, GatesFile, name=project.config.gates)
    if gates.schema != 1:
        raise BadFile(f"{project.config.gates}: schema {gates.schema} is not known")
    names = [gate.name for gate in gates.gates]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadFile(f"{project.config.gates}: the gate `{twice[0]}` stands twice")
    for gate in gates.gates:
        if gate.kind in MEASURED and not gate.evalset:
            raise BadFile(
                f"{project.config.gates}: gate `{gate.name}` names no evalset",
                hint="add `evalset:` to it",
            )
    return gates


def named_run(project: Project, name: str | None) -> RunFolder:
    """The run that names the candidate: by id, or the newest complete one."""
    store = RunStore(project.runs)
    run = store.get(name) if name else store.newest(fits=is_candidates)
    imported = run.config().imported
    if imported is not None:
        raise UsageError(
            f"run `{run.id}` was imported from `{imported.file}`: it was not measured here and can "
            "never be promoted",
            hint="`harness eval` measures a harness of this project",
        )
    if run.config().agent != "harness":
        raise UsageError(f"run `{run.id}` is of `--agent {run.config().agent}`, not of the harness")
    return run


def is_candidates(config: RunConfig) -> bool:
    """A run that somebody made of a candidate, and not one that a promotion made for its gates."""
    return config.agent == "harness" and config.command[:2] != PROMOTE


def run_for(project: Project, gate: Gate, pair: Pair, named: RunFolder | None) -> RunFolder | None:
    """The run that a gate of this pair rests on: the named one, else the largest, else the newest.

    One that is too old for the gate comes behind all others. A latency gate takes runs of the
    `replay` profile and of its declared concurrency only (METHODS §1).
    """
    at = now()
    if (
        named is not None
        and fits(gate, pair, named.config())
        and timed_as_declared(gate, named)
        and not too_old(gate, named.config().started, at)
    ):
        return named
    found = [
        run
        for run in RunStore(project.runs).list()
        if fits(gate, pair, run.config())
        and run.status() == "complete"
        and timed_as_declared(gate, run)
    ]

    def rank(run: RunFolder) -> tuple[bool, int, str]:
        config = run.config()
        return not too_old(gate, config.started, at), planned(config), run.id

    return max(found, key=rank, default=None)


def fits(gate: Gate, pair: Pair, config: RunConfig) -> bool:
    """Whether a run measured this pair on the gate's items in the gate's way."""
    return (
        config.evalset.name == gate.evalset
        and (gate.split is None or config.evalset.split == gate.split)
        and (config.policy_id, config.harness_id) == (pair.policy_id, pair.harness_id)
        and (gate.kind != "latency" or config.profile == "replay")
        and config.agent != "react"
        and config.imported is None
        and not config.only
    )


def timed_as_declared(gate: Gate, run: RunFolder) -> bool:
    """Whether a run served as many requests at a time as a latency gate is declared for."""
    return gate.kind != "latency" or concurrency_of(run) in ((), (declared(gate),))


def planned(config: RunConfig) -> int:
    """Items × repeats of a run."""
    n = config.evalset.n if config.limit is None else min(config.limit, config.evalset.n)
    return n * config.repeat


def evidence_of(run: RunFolder) -> RunEvidence:
    """A run folder as the gates see it."""
    config = run.config()
    return RunEvidence(
        run=run.id,
        lines=tuple(line_of(run.id, result) for result in run.results()),
        planned=planned(config),
        repeat=config.repeat,
        need=config.need,
        complete=run.status() == "complete",
        fresh=config.fresh,
        config=config,
        judge_id=config.judge_id,
        evalset=config.evalset.name,
        evalset_digest=config.evalset.digest,
        report_sha256=sha256(run.canonical.read_bytes()) if run.canonical.is_file() else "",
        started=config.started,
        concurrency=concurrency_of(run),
    )


def concurrency_of(run: RunFolder) -> tuple[int, ...]:
    """Requests at a time of every process that worked on a run, each number once.

    From the journal: the report knows the last process alone, and a resume may have another number.
    """
    if not run.journal.is_file():
        return ()
    notes = (_note(line.data).detail for line in scan(run.journal) if line.kind == "note")
    return tuple(sorted({n for d in notes if isinstance(n := d.get("concurrency"), int)}))
