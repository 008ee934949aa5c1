"""Promotion: gates, then evidence, manifest and switch, in an order that a crash cannot break."""

from dataclasses import dataclass

from harness_cli import __version__
from harness_cli.errors import Stale
from harness_cli.records.canonical import canonical_json, digest, write_atomic, write_json
from harness_cli.records.gates import GateResult
from harness_cli.records.manifest import Approval, Evidence, Manifest, Predicate
from harness_cli.release.channels import read_channel, switched, write_channel
from harness_cli.release.commit import channels_locked, commit_channel
from harness_cli.release.decide import Decision, decide
from harness_cli.release.evidence import RunEvidence, lines_sha256, write_evidence
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gather import APPROVALS, Candidate, read_approvals, settings_of
from harness_cli.release.inventory import inventory, tools_sha256
from harness_cli.release.manifest import statement
from harness_cli.store.checkin import refuse_busy
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


@dataclass(frozen=True, slots=True)
class Promotion:
    """What the gates said, and what was made when they let the candidate through."""

    results: tuple[GateResult, ...]
    decision: Decision
    manifest: Manifest | None = None
    commit: str | None = None


def judge_candidate(candidate: Candidate, facts: Facts) -> Promotion:
    """The gates alone: nothing is written."""
    results = run_gates(candidate.gates, facts)
    return Promotion(results=results, decision=decide(results))


def promote(candidate: Candidate, facts: Facts, *, at: str, by: str) -> Promotion:
    """Gates, and where they all pass: evidence, manifest, channel switch, one commit.

    The switch is written last; a program killed before that leaves a manifest nobody serves.
    Raises `Stale` when the channel moved since the candidate was compared with its incumbent.
    """
    judged = judge_candidate(candidate, facts)
    if not judged.decision.promotes:
        return judged
    project = candidate.project
    with channels_locked(project, "harness promote"):
        now = read_channel(project.manifests, candidate.channel.name)
        if now != candidate.channel:
            raise Stale(
                f"channel `{now.name}` moved while the gates ran",
                hint="`harness promote` again compares with what it serves now",
            )
        refuse_busy(project.manifests)
        made = statement(predicate(candidate, facts, judged.results, at=at))
        name = made.predicate.id
        lines = [line for run in bound_runs(facts) for line in run.lines]
        evidence = project.manifests / "evidence" / f"{name}.jsonl.zst"
        write_evidence(evidence, lines)
        write_json(project.manifests / f"{name}.json", made)
        channel = switched(now, policy=name, harness=name, action="promote", by=by, at=at)
        write_channel(project.manifests, channel)
        sha = commit_channel(project, channel, f"promote {name}")
    return Promotion(results=judged.results, decision=judged.decision, manifest=made, commit=sha)


def bound_runs(facts: Facts) -> list[RunEvidence]:
    """Every run that a gate rests on, once."""
    runs = {run.run: run for run in (*facts.runs.values(), *facts.incumbent_runs.values())}
    return [runs[name] for name in sorted(runs)]


def predicate(
    candidate: Candidate, facts: Facts, results: tuple[GateResult, ...], *, at: str
) -> Predicate:
    """What the manifest binds. Only called once the provenance gate has found a state."""
    state, project = candidate.state, candidate.project
    if state is None:
        raise Stale("the candidate's commit is not in this repository")
    config = candidate.named.config()
    return Predicate(
        id=manifest_id(candidate, at),
        created=at,
        policy=settings_of(candidate.pair),
        harness={
            "tree": state.id,
            "commit": candidate.pair.commit,
            "folder": project.config.harness,
            "evalsets_commit": Repo.open(project.evalsets).head(),
        },
        inventory=inventory(state),
        tools_sha256=tools_sha256(state),
        mcp_lock_sha256=digest(state.lock),
        thresholds={
            profile: project.limits(profile) for profile in ("production", "replay", "offline")
        },
        evalsets={
            f"{e.evalset}/{e.split}" if e.split else e.evalset: e.evalset_digest
            for e in evidence_rows(facts)
        },
        catalogue_sha256=config.evalset.catalogue_digest,
        judge=dict(facts.judge),
        gates_sha256=digest(list(candidate.gates.gates)),
        gate_settings=candidate.gates.gates,
        evidence=tuple(evidence_rows(facts)),
        gates=results,
        approvals=tuple(a for a in facts.approvals if a.subject == facts.subject),
        incumbent=facts.incumbent,
        versions={"harness": __version__},
    )


def evidence_rows(facts: Facts) -> list[Evidence]:
    """Each run once per role, with the gates that were decided on it."""
    rows = []
    for role, runs in (("candidate", facts.runs), ("incumbent", facts.incumbent_runs)):
        for name in sorted({run.run for run in runs.values()}):
            gates = tuple(sorted(g for g, run in runs.items() if run.run == name))
            run = runs[gates[0]]
            rows.append(
                Evidence(
                    run=run.run,
                    role=role,
                    gates=gates,
                    evalset=run.evalset,
                    evalset_digest=run.evalset_digest,
                    split=run.config.evalset.split if run.config else None,
                    judge_id=run.judge_id,
                    n=run.planned,
                    report_sha256=run.report_sha256,
                    evidence_sha256=lines_sha256(run.lines),
                )
            )
    return rows


def manifest_id(candidate: Candidate, at: str) -> str:
    """`<channel>-<day>-<tree>-<n>`: n is the first that is free."""
    day = at[:10].replace("-", "")
    stem = f"{candidate.channel.name}-{day}-{candidate.pair.harness_id[:8]}"
    taken = {p.stem for p in candidate.project.manifests.glob(f"{stem}-*.json")}
    return next(name for n in range(1, 10_000) if (name := f"{stem}-{n}") not in taken)


def record_approval(project: Project, approval: Approval) -> None:
    """One more line in the record of approvals; the same approval twice is one."""
    with channels_locked(project, "harness promote --approve"):
        known = read_approvals(project)
        if any((a.by, a.subject) == (approval.by, approval.subject) for a in known):
            return
        lines = [canonical_json(a) for a in (*known, approval)]
        write_atomic(project.manifests / APPROVALS, b"\n".join(lines) + b"\n")
