"""What a rollback would bring: the pair, who proved it, and what was better since, item by item."""

from collections.abc import Iterable

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.harness.diff import Change, diff_states
from harness_cli.harness.load import load_state
from harness_cli.records.manifest import Channel, Manifest
from harness_cli.release.channels import (
    NotProven,
    list_manifests,
    pair_of,
    proven_pairs,
    read_channel,
    rolled_back,
)
from harness_cli.release.clock import now
from harness_cli.release.evidence import RunEvidence
from harness_cli.release.gates.facts import scores_by_item
from harness_cli.release.gather import bound_lines
from harness_cli.release.manifest import manifest_differences, runs_by_gate
from harness_cli.release.proving import mixed_pair, proof_of
from harness_cli.stats.paired import paired
from harness_cli.store.project import Project

SWITCHES = ("policy", "harness")


class GateBack(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate's evidence says of going back."""

    gate: str
    metric: str
    evalset: str
    n: int
    """Items that both releases were measured on."""
    now: float | None
    then: float | None
    difference: float | None
    """Then minus now: below 0 is what going back costs."""
    low: float | None
    high: float | None
    breaks: tuple[str, ...]
    """Items that pass now and failed then."""
    mends: tuple[str, ...]
    """Items that fail now and passed then."""
    remark: str = ""
    """Why the two cannot be compared, where they cannot."""


class GoingBack(msgspec.Struct, frozen=True, kw_only=True):
    """`harness rollback CHANNEL --dry-run`."""

    channel: str
    policy: str
    """Manifest that the policy switch would name."""
    harness: str
    proven_by: str | None
    """Manifest that proves the pair; None: the rollback would be refused."""
    changes: tuple[tuple[str, str, str], ...]
    """(what, now, then) of everything that the two releases bind differently."""
    gates: tuple[GateBack, ...]
    rules: tuple[Change, ...] = ()
    """What would change in the harness, by meaning; empty where one of the commits is not here."""
    latency: tuple[tuple[str, str, str], ...] = ()
    """(gate, now, then) of how fast each was."""
    would_prove: tuple[str, ...] = ()
    """Commands, with their cost, that would prove the pair."""


def going_back(project: Project, name: str, axes: frozenset[str]) -> GoingBack:
    """What a rollback of these switches would bring; nothing is changed.

    Raises `HarnessError` where there is nothing to go back to.
    """
    channel = read_channel(project.manifests, name)
    known = list_manifests(project.manifests)
    try:
        back = rolled_back(channel, known, axes=axes, by="", at=now())
    except NotProven as exc:
        pair = mixed_pair(known[exc.policy], known[exc.harness])
        return GoingBack(
            channel=name,
            policy=exc.policy,
            harness=exc.harness,
            proven_by=None,
            changes=_changes(channel, known, exc.policy, exc.harness),
            gates=(),
            rules=_rules(project, known[str(channel.harness)], known[exc.harness]),
            would_prove=tuple(proof_of(project, pair)),
        )
    policy, harness = str(back.policy), str(back.harness)
    wanted = pair_of(known[policy], known[harness])
    served = pair_of(known[str(channel.policy)], known[str(channel.harness)])
    proven = proven_pairs(known.values())
    then, current = known[proven[wanted]], known.get(proven.get(served, ""))
    return GoingBack(
        channel=name,
        policy=policy,
        harness=harness,
        proven_by=then.predicate.id,
        changes=_changes(channel, known, policy, harness),
        gates=tuple(_gates(project, current, then)) if current else (),
        rules=_rules(project, known[str(channel.harness)], known[harness]),
        latency=tuple(_latency(current, then)) if current else (),
    )


def _rules(project: Project, now: Manifest, then: Manifest) -> tuple[Change, ...]:
    """The harness of one release beside that of another."""
    commits = [str(m.predicate.harness.get("commit")) for m in (now, then)]
    try:
        a, b = (load_state(project, commit) for commit in commits)
    except HarnessError:
        return ()
    return diff_states(a, b).changes


def _latency(now: Manifest, then: Manifest) -> Iterable[tuple[str, str, str]]:
    """What the latency gates of both said."""
    before = {g.name: g.summary for g in then.predicate.gates if g.kind == "latency"}
    for gate in now.predicate.gates:
        if gate.kind == "latency":
            yield gate.name, gate.summary, before.get(gate.name, "not measured")


def _changes(
    channel: Channel, known: dict[str, Manifest], policy: str, harness: str
) -> tuple[tuple[str, str, str], ...]:
    """The policy's rows from its switch, all others from the harness's."""
    found: list[tuple[str, str, str]] = []
    for before, after, wanted in (
        (channel.policy, policy, True),
        (channel.harness, harness, False),
    ):
        rows = manifest_differences(known[str(before)], known[after])
        found += [row for row in rows if (row[0] == "policy") is wanted]
    return tuple(found)


def _gates(project: Project, current: Manifest, then: Manifest) -> Iterable[GateBack]:
    new = runs_by_gate(current, bound_lines(project, current), "candidate")
    old = runs_by_gate(then, bound_lines(project, then), "candidate")
    for gate in current.predicate.gate_settings:
        if gate.kind not in ("regression", "capability") or gate.name not in new:
            continue
        told = {"gate": gate.name, "metric": gate.metric, "evalset": str(gate.evalset)}
        why = _apart(new[gate.name], old.get(gate.name))
        if why:
            yield GateBack(
                **told, n=0, now=None, then=None, difference=None, low=None, high=None,
                breaks=(), mends=(), remark=why,
            )  # fmt: skip
            continue
        a = scores_by_item(new[gate.name], gate.metric)
        b = scores_by_item(old[gate.name], gate.metric)
        both = sorted(a.keys() & b.keys())
        found = paired([b[i] - a[i] for i in both])
        passes, passed = _passing(new[gate.name]), _passing(old[gate.name])
        yield GateBack(
            **told,
            n=len(both),
            now=sum(a[i] for i in both) / len(both) if both else None,
            then=sum(b[i] for i in both) / len(both) if both else None,
            difference=found.mean,
            low=found.low,
            high=found.high,
            breaks=tuple(i for i in both if i in passes and i not in passed),
            mends=tuple(i for i in both if i in passed and i not in passes),
        )


def _apart(new: RunEvidence, old: RunEvidence | None) -> str:
    """Why two runs say nothing of each other."""
    if old is None:
        return "the earlier release was not measured on it"
    if new.evalset_digest != old.evalset_digest:
        return "the items have changed between the two"
    if new.judge_id != old.judge_id:
        return "another judge graded the earlier release"
    return ""


def _passing(run: RunEvidence) -> set[str]:
    """Items that passed; over repeats, often enough."""
    return {item for item, score in scores_by_item(run, "passed").items() if score == 1.0}
