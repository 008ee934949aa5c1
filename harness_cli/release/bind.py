"""What a manifest binds: the candidate, its evidence, the gates' answers, the people."""

import re
from collections.abc import Mapping

from harness_cli import __version__
from harness_cli.errors import Stale
from harness_cli.records.canonical import digest
from harness_cli.records.gates import GateResult
from harness_cli.records.manifest import Evidence, Predicate
from harness_cli.release.candidate import settings_of
from harness_cli.release.evidence import RunEvidence, lines_sha256
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gather import Candidate, authors_of
from harness_cli.release.inventory import inventory, tools_sha256
from harness_cli.store.repo import Repo


def bound_runs(facts: Facts) -> list[RunEvidence]:
    """Every run that a gate rests on, once."""
    runs = {run.run: run for part in by_role(facts).values() for run in part.values()}
    return [runs[name] for name in sorted(runs)]


def predicate(
    candidate: Candidate,
    facts: Facts,
    results: tuple[GateResult, ...],
    *,
    at: str,
    evidence_file_sha256: str,
) -> Predicate:
    """What the manifest binds. Only called once the provenance gate has found a state."""
    state, project = candidate.state, candidate.project
    if state is None:
        raise Stale("the candidate's commit is not in this repository")
    config = candidate.asked
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
        evidence_file_sha256=evidence_file_sha256,
        gates=results,
        approvals=tuple(a for a in facts.approvals if a.subject == facts.subject),
        authors=authors_of(candidate),
        incumbent=facts.incumbent,
        versions={"harness": __version__},
    )


def by_role(facts: Facts) -> dict[str, Mapping[str, RunEvidence]]:
    """Gate name → run, for each role that a run may have."""
    return {
        "candidate": facts.runs,
        "incumbent": facts.incumbent_runs,
        "base": facts.base_runs,
    }


def evidence_rows(facts: Facts) -> list[Evidence]:
    """Each run once per role, with the gates that were decided on it."""
    rows = []
    for role, runs in by_role(facts).items():
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
                    repeat=run.repeat,
                    need=run.need,
                    report_sha256=run.report_sha256,
                    evidence_sha256=lines_sha256(run.lines),
                    started=run.config.started if run.config else run.started,
                    fresh=run.fresh,
                    concurrency=run.concurrency,
                )
            )
    return rows


def manifest_id(candidate: Candidate, at: str) -> str:
    """`<channel>-<policy>-<day>-<n>`: n is the first that is free."""
    day = at[:10].replace("-", "")
    policy = re.sub(r"[^a-z0-9]+", "-", candidate.pair.policy.casefold()).strip("-") or "policy"
    stem = f"{candidate.channel.name}-{policy}-{day}"
    taken = {p.stem for p in candidate.project.manifests.glob(f"{stem}-*.json")}
    return next(name for n in range(1, 10_000) if (name := f"{stem}-{n}") not in taken)
