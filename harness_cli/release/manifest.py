"""Build a release manifest, and check one against a repository: every digest made anew."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness_cli import __version__
from harness_cli.records.canonical import canonical_json, digest
from harness_cli.records.gates import GateResult, GatesFile
from harness_cli.records.harness import HarnessState
from harness_cli.records.manifest import (
    EvidenceLine,
    Manifest,
    Predicate,
    Subject,
)
from harness_cli.release.checks import Check, compared
from harness_cli.release.decide import decide
from harness_cli.release.evidence import RunEvidence, lines_sha256
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts
from harness_cli.release.inventory import differences, inventory, tools_sha256

RECOMPUTED = ("latency", "regression", "capability")
"""Gate kinds that `verify` decides again from the committed evidence alone."""


def statement(predicate: Predicate) -> Manifest:
    """The in-toto Statement around a predicate; its subjects are the two switches' contents."""
    return Manifest(
        subject=(
            Subject(name="harness", digest={"gitTree": predicate.harness["tree"]}),
            Subject(name="policy", digest={"sha256": digest(predicate.policy)}),
        ),
        predicate=predicate,
    )


def check_shape(manifest: Manifest, name: str, plain: dict[str, Any]) -> list[Check]:
    """The statement speaks of what it binds. `plain` is its JSON, with fields unknown here."""
    predicate = manifest.predicate
    settings = plain.get("predicate", {}).get("gate_settings", [])
    tests = {
        "file name": predicate.id == name,
        "subjects": manifest.subject == statement(predicate).subject,
        "gate settings": digest(settings) == predicate.gates_sha256,
        "outcome": decide(predicate.gates).promotes,
    }
    return [Check(what, "verified" if good else "wrong") for what, good in tests.items()]


def check_harness(manifest: Manifest, state: HarnessState | None) -> list[Check]:
    """The bound commit still holds the bound tree, inventory, tool schemas and lock."""
    bound = manifest.predicate
    if state is None:
        return [Check("harness", "wrong", f"commit {bound.harness.get('commit')} is not here")]
    found = differences(bound.inventory, inventory(state))
    pairs = {
        "harness tree": (bound.harness["tree"], state.id),
        "tool schemas": (bound.tools_sha256, tools_sha256(state)),
        "MCP lock": (bound.mcp_lock_sha256, digest(state.lock)),
    }
    checks = [
        Check(what, "verified" if a == b else "wrong", "" if a == b else f"{a} is now {b}")
        for what, (a, b) in pairs.items()
    ]
    checks.append(Check("inventory", "wrong" if found else "verified", "; ".join(found[:5])))
    return checks


def check_evalsets(manifest: Manifest, found: Mapping[str, str]) -> list[Check]:
    """Evalset and catalogue digests, made anew from the bound commit's files."""
    bound = dict(manifest.predicate.evalsets)
    if "catalogue" in found:  # which only evalsets of the harness have
        bound["catalogue"] = manifest.predicate.catalogue_sha256
    return [
        Check(f"evalset {name}", *compared(found.get(name), sha)) for name, sha in bound.items()
    ]


def check_evidence(
    manifest: Manifest,
    lines: Mapping[str, tuple[EvidenceLine, ...]] | None,
    standing: Facts | None = None,
) -> list[Check]:
    """The evidence file holds the bound lines, and the gates come out as they are recorded."""
    bound = manifest.predicate
    if lines is None:
        return [Check("evidence", "wrong", "the evidence file is missing")]
    checks = []
    for evidence in bound.evidence:
        sha = lines_sha256(lines.get(evidence.run, ()))
        checks.append(Check(f"evidence {evidence.run}", *compared(sha, evidence.evidence_sha256)))
    again = {g.name: g for g in gates_again(manifest, lines, standing)}
    same = bound.versions.get("harness") == __version__
    for recorded in bound.gates:
        checks.append(gate_check(recorded, again.get(recorded.name), same_version=same))
    return checks


def gate_check(
    recorded: GateResult, again: GateResult | None, *, same_version: bool = True
) -> Check:
    """One recorded gate beside what the evidence gives now.

    Another version of this program may say it in other words and give more numbers; the outcome,
    and every number that both give, must be the same.
    """
    what = f"gate {recorded.name}"
    if again is None:
        return Check(what, "not re-checked", f"{recorded.kind}: {recorded.summary}")
    if canonical_json(again) == canonical_json(recorded):
        return Check(what, "verified", recorded.summary)
    if recorded.outcome != again.outcome:
        return Check(what, "wrong", f"recorded {recorded.outcome}, evidence gives {again.outcome}")
    both = recorded.numbers.keys() & again.numbers.keys()
    numbers = [{k: g.numbers[k] for k in sorted(both)} for g in (recorded, again)]
    if same_version or canonical_json(numbers[0]) != canonical_json(numbers[1]):
        return Check(what, "wrong", f"recorded `{recorded.summary}`, it is `{again.summary}`")
    return Check(what, "verified", f"{recorded.summary} (as another version said it)")


def gates_again(
    manifest: Manifest,
    lines: Mapping[str, tuple[EvidenceLine, ...]],
    standing: Facts | None = None,
) -> tuple[GateResult, ...]:
    """The gates that rest on evidence, on the bound calibration and on approvals, decided again.

    `standing` holds what approvals are decided on; None where they cannot be decided here.
    """
    bound = manifest.predicate
    kinds = RECOMPUTED if "standing" not in bound.judge else (*RECOMPUTED, "judge")
    if standing is not None:
        kinds = (*kinds, "approvals")
    return run_gates(
        GatesFile(gates=bound.gate_settings),
        replace(
            standing or Facts(),
            runs=runs_by_gate(manifest, lines, "candidate"),
            incumbent_runs=runs_by_gate(manifest, lines, "incumbent"),
            base_runs=runs_by_gate(manifest, lines, "base"),
            incumbent=bound.incumbent,
            judge=bound.judge,
            at=bound.created,
        ),
        kinds=kinds,
    )


def runs_by_gate(
    manifest: Manifest, lines: Mapping[str, tuple[EvidenceLine, ...]], role: str
) -> dict[str, RunEvidence]:
    """Gate name → the bound run of that role which it was decided on."""
    found = {}
    for evidence in manifest.predicate.evidence:
        if evidence.role != role:
            continue
        for gate in evidence.gates:
            found[gate] = RunEvidence(
                run=evidence.run,
                lines=lines.get(evidence.run, ()),
                planned=evidence.n,
                repeat=evidence.repeat,
                need=evidence.need,
                judge_id=evidence.judge_id,
                evalset=evidence.evalset,
                evalset_digest=evidence.evalset_digest,
                fresh=evidence.fresh,
                started=evidence.started,
                concurrency=evidence.concurrency,
            )
    return found


def manifest_differences(a: Manifest, b: Manifest) -> list[tuple[str, str, str]]:
    """(what, in a, in b) for everything that two manifests bind differently."""
    one, two = a.predicate, b.predicate
    rows = [
        ("policy", str(one.policy["id"]), str(two.policy["id"])),
        ("harness tree", str(one.harness["tree"]), str(two.harness["tree"])),
        ("judge", str(one.judge.get("id")), str(two.judge.get("id"))),
        ("catalogue", one.catalogue_sha256, two.catalogue_sha256),
        ("gate settings", one.gates_sha256, two.gates_sha256),
        ("limits", digest(one.thresholds), digest(two.thresholds)),
    ]
    for key in sorted({*one.evalsets, *two.evalsets}):
        rows.append((f"evalset {key}", one.evalsets.get(key, ""), two.evalsets.get(key, "")))
    before = {(m.kind, m.name): m.sha256 for m in one.inventory}
    after = {(m.kind, m.name): m.sha256 for m in two.inventory}
    for kind, name in sorted({*before, *after}):
        pair = before.get((kind, name), "absent"), after.get((kind, name), "absent")
        rows.append((f"{kind} {name}", *pair))
    return [row for row in rows if row[1] != row[2]]
