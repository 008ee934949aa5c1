"""Everything the gates look at, from the project: runs, the incumbent's evidence, approvals."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.harness.load import load_state
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.records.harness import HarnessState
from harness_cli.records.manifest import Approval, Channel, EvidenceLine, Manifest
from harness_cli.records.reader import parse_json, read_text
from harness_cli.records.run import RunConfig
from harness_cli.release.bound_settings import uncommitted_calibration, uncommitted_settings
from harness_cli.release.candidate import (
    MEASURED,
    Pair,
    evidence_of,
    judge_of,
    planned,
    run_for,  # fmt: skip
)
from harness_cli.release.channels import manifest_names, read_channel, read_manifest
from harness_cli.release.clock import now, too_old
from harness_cli.release.evidence import RunEvidence, read_evidence
from harness_cli.release.gates.facts import Drift, Facts
from harness_cli.release.manifest import runs_by_gate
from harness_cli.release.people import authors, signed_keys
from harness_cli.release.signing import trust_of
from harness_cli.release.ssh import Trust, principals
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunFolder, RunStore

APPROVALS = "approvals.jsonl"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is to be promoted, and against what."""

    project: Project
    gates: GatesFile
    pair: Pair
    named: RunFolder | None
    """The run that names it; None where it is planned before anything was run."""
    state: HarnessState | None
    """The harness at the pair's commit; None when it is not there."""
    channel: Channel
    incumbent: Manifest | None
    trust: Trust = field(default_factory=lambda: Trust(allowed=None))
    """Whose signatures count."""

    @property
    def asked(self) -> RunConfig:
        """What its run was asked for. Raises `UsageError` before there is one."""
        if self.named is None:
            raise UsageError("nothing of the candidate was run yet", hint="harness promote --plan")
        return self.named.config()


def candidate(project: Project, gates: GatesFile, pair: Pair, named: RunFolder | None) -> Candidate:
    """The candidate beside the channel's manifests."""
    channel, incumbent = serving(project)
    return Candidate(
        project=project,
        gates=gates,
        pair=pair,
        named=named,
        state=state_of(project, pair),
        channel=channel,
        incumbent=incumbent,
        trust=trust_of(project),
    )


def serving(project: Project) -> tuple[Channel, Manifest | None]:
    """The project's channel, and the manifest that its harness switch names."""
    channel = read_channel(project.manifests, project.config.channel)
    name = channel.harness
    there = name in manifest_names(project.manifests)
    return channel, read_manifest(project.manifests, name) if name and there else None


def beside_now(candidate: Candidate) -> Candidate:
    """The same candidate beside what its channel serves now; its harness is not read again."""
    channel, incumbent = serving(candidate.project)
    return replace(candidate, channel=channel, incumbent=incumbent)


def state_of(project: Project, pair: Pair) -> HarnessState | None:
    """The harness state at the pair's commit."""
    if pair.commit is None:
        return None
    try:
        return load_state(project, pair.commit)
    except HarnessError:
        return None


def missing(candidate: Candidate) -> list[tuple[Gate, str]]:
    """Gates whose runs do not exist yet: (gate, `candidate`, `incumbent` or `base`).

    One whose run is there and cannot be read is broken, which `gather` says.
    """
    wanted, at = list[tuple[Gate, str]](), now()
    for gate in candidate.gates.gates:
        if gate.kind in MEASURED:
            with suppress(BadFile):
                wanted += [(gate, role) for role in roles_missing(candidate, gate, at)]
    return wanted


def roles_missing(candidate: Candidate, gate: Gate, at: str) -> list[str]:
    """Whose runs one gate lacks."""
    found = list[str]()
    run = run_for(candidate.project, gate, candidate.pair, candidate.named)
    if run is None or too_old(gate, run.config().started, at):
        found.append("candidate")
    elif (
        candidate.incumbent is not None
        and gate.kind != "latency"
        and incumbent_run(candidate, gate) is None
    ):
        found.append("incumbent")
    if gate.base_policy is not msgspec.UNSET and base_run(candidate, gate) is None:
        found.append("base")
    return found


Role = dict[str, RunEvidence]


def evidence_for(candidate: Candidate, gate: Gate, runs: Role, old: Role, base: Role) -> None:
    """The runs of one gate, by its name: the candidate's, the incumbent's, the base policy's."""
    run = run_for(candidate.project, gate, candidate.pair, candidate.named)
    if run is not None:
        runs[gate.name] = evidence_of(run)
    before = incumbent_run(candidate, gate) if gate.kind != "latency" else None
    if before is not None:
        old[gate.name] = before
    found = base_run(candidate, gate)
    if found is not None:
        base[gate.name] = found


def gather(candidate: Candidate, *, drift: Drift, approvals: Iterable[Approval]) -> Facts:
    """The facts of a candidate. `drift` comes from asking the servers, None when not asked.

    A run that cannot be read makes an error of its gate, and of no other.
    """
    runs, old, base = Role(), Role(), Role()
    errors: dict[str, str] = {}
    for gate in candidate.gates.gates:
        if gate.kind not in MEASURED:
            continue
        try:
            evidence_for(candidate, gate, runs, old, base)
        except BadFile as exc:
            errors[gate.name] = str(exc)
    config, approvals = candidate.asked, tuple(approvals)
    trust, subject = candidate.trust, candidate.pair.subject
    return Facts(
        runs=runs,
        incumbent_runs=old,
        base_runs=base,
        incumbent=candidate.incumbent.predicate.id if candidate.incumbent else None,
        at=now(),
        subject=subject,
        approvals=approvals,
        authors=authors_of(candidate) or (),
        signers=frozenset(principals(trust.allowed)) if trust.allowed else frozenset(),
        signed=signed_keys((a for a in approvals if a.subject == subject), trust),
        drift=drift,
        errors=errors,
        provenance=tuple(provenance(candidate, runs)),
        judge=judge_of(candidate.project, config.judge, config.judge_id),
    )


def authors_of(candidate: Candidate) -> tuple[str, ...] | None:
    """Who made the edit, since the commit that the channel serves."""
    manifest = candidate.incumbent
    base = str(manifest.predicate.harness.get("commit")) if manifest else None
    return authors(candidate.project, base, candidate.pair.commit)


def incumbent_run(candidate: Candidate, gate: Gate) -> RunEvidence | None:
    """The incumbent's run for a gate: a fitting run folder, else its committed evidence.

    A run under the candidate's judge and evalset digest is preferred over any other.
    """
    manifest = candidate.incumbent
    if manifest is None:
        return None
    bound = manifest.predicate
    pair = Pair(
        policy=str(bound.policy.get("name", "")),
        policy_id=bound.policy["id"],
        policy_settings={},
        harness_id=bound.harness["tree"],
        commit=bound.harness.get("commit"),
    )
    wanted = run_for(candidate.project, gate, candidate.pair, candidate.named)
    found = run_for(candidate.project, gate, pair, None)
    committed = runs_by_gate(manifest, bound_lines(candidate.project, manifest), "candidate")
    options = [evidence_of(found)] if found else []
    if gate.name in committed:
        options.append(committed[gate.name])
    if wanted is not None:
        mine = wanted.config()
        for option in options:
            if (option.judge_id, option.evalset_digest) == (mine.judge_id, mine.evalset.digest):
                return option
        return None
    return options[0] if options else None


def base_run(candidate: Candidate, gate: Gate) -> RunEvidence | None:
    """The run of the base policy that a capability gate names, under the candidate's harness."""
    if gate.kind != "capability" or gate.base_policy is msgspec.UNSET:
        return None
    project = candidate.project
    wanted = run_for(project, gate, candidate.pair, candidate.named)
    if wanted is None:
        return None
    mine = wanted.config()
    found = [
        run
        for run in RunStore(project.runs).list()
        if (config := run.config()).policy == gate.base_policy
        and (config.evalset.name, config.evalset.digest) == (gate.evalset, mine.evalset.digest)
        and (config.agent, config.judge_id) == (mine.agent, mine.judge_id)
        and (config.harness_id == candidate.pair.harness_id or config.agent == "bare")
        and not (config.only or config.imported)
        and run.status() == "complete"
    ]
    return evidence_of(max(found, key=lambda r: (planned(r.config()), r.id))) if found else None


def bound_lines(project: Project, manifest: Manifest) -> dict[str, tuple[EvidenceLine, ...]]:
    """The committed evidence of a manifest, by run; empty where the file is gone."""
    path = project.manifests / "evidence" / f"{manifest.predicate.id}.jsonl.zst"
    if not path.is_file():
        return {}
    lines: dict[str, list[EvidenceLine]] = {}
    for line in read_evidence(path.read_bytes(), name=path.name):
        lines.setdefault(line.run, []).append(line)
    return {run: tuple(found) for run, found in lines.items()}


def provenance(candidate: Candidate, runs: dict[str, RunEvidence]) -> list[str]:
    """What keeps the candidate from being a committed, whole, reproducible state."""
    pair, state = candidate.pair, candidate.state
    found = []
    if pair.dirty:
        found.append("the run was made from uncommitted files: commit them and evaluate again")
    elif state is None:
        found.append(f"commit {pair.commit} of the run is not in this repository")
    elif state.id != pair.harness_id:
        found.append(f"the harness at {pair.commit} is {state.id}, the run had {pair.harness_id}")
    found += uncommitted_calibration(candidate.project, candidate.gates, candidate.asked.judge)
    found += uncommitted_settings(candidate.project, pair)
    evalsets = candidate.project.evalsets
    if Repo.open(evalsets).dirty(evalsets):
        found.append(f"`{evalsets.name}/` has uncommitted changes: commit them")
    stale = {
        name: run.evalset
        for name, run in runs.items()
        if run.config is not None and not run.complete
    }
    found += [f"the run of `{e}` for gate `{g}` is not complete" for g, e in stale.items()]
    found += [
        f"run `{run.run}` was imported: it was not measured here"
        for run in runs.values()
        if run.config is not None and run.config.imported is not None
    ]
    found += [
        f"run `{run.run}` was graded by a judge that is not committed: commit its harness"
        for run in runs.values()
        if run.config is not None and run.config.judge_dirty
    ]
    found += [
        f"run `{run.run}` of `{run.evalset}` replayed answers"
        for run in runs.values()
        if not run.fresh
    ]
    return found


def read_approvals(project: Project) -> list[Approval]:
    """Every approval on record, oldest first."""
    path = project.manifests / APPROVALS
    if not path.is_file():
        return []
    name = f"{project.manifests.name}/{APPROVALS}"
    lines = enumerate(read_text(path, name=name).splitlines(), 1)
    return [parse_json(line, Approval, name=f"{name}:{n}") for n, line in lines if line.strip()]
