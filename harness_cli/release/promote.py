"""Promotion: gates, then evidence, manifest and switch, in an order that a crash cannot break."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harness_cli.errors import Stale
from harness_cli.records.canonical import canonical_json, sha256, write_atomic
from harness_cli.records.gates import GateResult
from harness_cli.records.manifest import Approval, Manifest
from harness_cli.release.bind import bound_runs, predicate
from harness_cli.release.channels import list_manifests, read_channel, switched, write_channel
from harness_cli.release.clock import refuse_clock
from harness_cli.release.commit import WAIT, Lock, channels_locked, commit_channel
from harness_cli.release.decide import Decision, decide
from harness_cli.release.evidence import evidence_bytes
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gather import APPROVALS, Candidate, read_approvals
from harness_cli.release.manifest import statement
from harness_cli.release.reading import manifest_bytes
from harness_cli.release.signing import release_tag, signed_by, write_signature
from harness_cli.release.ssh import MANIFEST
from harness_cli.store.checkin import refuse_busy
from harness_cli.store.project import Project


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


Anew = Callable[[Candidate], tuple[Candidate, Facts]]
"""The same candidate beside what its channel serves now, and the facts of that comparison."""


def promote(
    candidate: Candidate,
    facts: Facts,
    *,
    at: str,
    by: str,
    key: Path | None = None,
    anew: Anew | None = None,
    lock: Lock = WAIT,
) -> Promotion:
    """Gates, and where they all pass: evidence, manifest, channel switch, one commit, one tag.

    The switch is written last; a program killed before that leaves a manifest nobody serves, one
    killed before the tag leaves a release that `harness manifest sign` tags. `key` signs both.
    When the channel moved since the candidate was compared with its incumbent, `anew` compares it
    with what serves now, while nobody else can switch; without it `Stale` is raised. So it is when
    the clock stands before what is on record.
    """
    facts = replace(facts, at=at)  # what `verify` decides again with is the manifest's own day
    judged = judge_candidate(candidate, facts)
    if not judged.decision.promotes:
        return judged
    project = candidate.project
    with channels_locked(project, "harness promote", lock):
        now = read_channel(project.manifests, candidate.channel.name)
        if now != candidate.channel:
            if anew is None:
                raise Stale(
                    f"channel `{now.name}` moved while the gates ran",
                    hint="`harness promote` again compares with what it serves now",
                )
            candidate, facts = anew(candidate)
            facts = replace(facts, at=at)
            judged = judge_candidate(candidate, facts)
            if not judged.decision.promotes:
                return judged
        refuse_busy(project.manifests)
        refuse_clock(at, now, list_manifests(project.manifests).values(), facts.approvals)
        made = write_release(candidate, facts, judged.results, at=at, key=key)
        name = made.predicate.id
        channel = switched(now, policy=name, harness=name, action="promote", by=by, at=at)
        write_channel(project.manifests, channel)
        sha = commit_channel(project, channel, f"promote {name}")
        release_tag(project, name, sha, key)
    return Promotion(results=judged.results, decision=judged.decision, manifest=made, commit=sha)


def write_release(
    candidate: Candidate,
    facts: Facts,
    results: tuple[GateResult, ...],
    *,
    at: str,
    key: Path | None,
) -> Manifest:
    """Evidence, signature and manifest on disk, in this order. A key that is refused writes none.

    The manifest is last of the three: without it the others are files that nobody looks at.
    """
    project = candidate.project
    lines = evidence_bytes(line for run in bound_runs(facts) for line in run.lines)
    made = statement(
        predicate(candidate, facts, results, at=at, evidence_file_sha256=sha256(lines))
    )
    name, data = made.predicate.id, manifest_bytes(made)
    signature = signed_by(data, key, candidate.trust, MANIFEST)[0] if key else b""
    write_atomic(project.manifests / "evidence" / f"{name}.jsonl.zst", lines)
    if signature:
        write_signature(project, name, signature)
    write_atomic(project.manifests / f"{name}.json", data)
    return made


def record_approval(project: Project, approval: Approval) -> None:
    """One more line in the record of approvals; the same approval twice is one."""
    with channels_locked(project, "harness promote --approve"):
        known = read_approvals(project)
        if any(same(a, approval) for a in known):
            return
        lines = [canonical_json(a) for a in (*known, approval)]
        write_atomic(project.manifests / APPROVALS, b"\n".join(lines) + b"\n")


def same(a: Approval, b: Approval) -> bool:
    """One person's yes to one pair: said twice it is one, but signing it later is news."""
    return (a.by, a.subject) == (b.by, b.subject) and bool(a.signature) >= bool(b.signature)
