"""Where things stand: what serves, what waits for whom, which pairs are proven."""

import msgspec

from harness_cli.records.counting import counted
from harness_cli.release.channels import list_channels, list_manifests, pair_of, proven_pairs
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore


class Switches(msgspec.Struct, frozen=True, kw_only=True):
    """One channel: what its two switches select, and since when."""

    channel: str
    policy_manifest: str | None
    policy: str | None
    harness_manifest: str | None
    harness: str | None
    since: str
    by: str
    proven: bool


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only a person, or a command of theirs, moves on."""

    what: str
    who: str
    command: str


class ProvenPair(msgspec.Struct, frozen=True, kw_only=True):
    """A (policy, harness) pair that passed its gates."""

    policy: str
    harness: str
    manifest: str
    created: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """`harness status`."""

    channels: tuple[Switches, ...]
    waiting: tuple[Waiting, ...]
    proven: tuple[ProvenPair, ...]


def status_of(project: Project) -> Status:
    """The project's status, from its files alone."""
    manifests = list_manifests(project.manifests)
    pairs = proven_pairs(manifests.values())
    channels = []
    for channel in list_channels(project.manifests):
        policy = manifests.get(channel.policy or "")
        harness = manifests.get(channel.harness or "")
        last = channel.history[-1] if channel.history else None
        channels.append(
            Switches(
                channel=channel.name,
                policy_manifest=channel.policy,
                policy=policy.predicate.policy["id"] if policy else None,
                harness_manifest=channel.harness,
                harness=harness.predicate.harness["tree"] if harness else None,
                since=last.at if last else "unknown",
                by=last.by if last else "unknown",
                proven=bool(policy and harness and pair_of(policy, harness) in pairs),
            )
        )
    return Status(
        channels=tuple(channels),
        waiting=(*unfinished(project), *unreviewed(project)),
        proven=tuple(
            ProvenPair(
                policy=policy,
                harness=harness,
                manifest=name,
                created=manifests[name].predicate.created,
            )
            for (policy, harness), name in pairs.items()
        ),
    )


def unfinished(project: Project) -> list[Waiting]:
    """Runs that stopped before their end."""
    return [
        Waiting(
            what=f"run {run.id} of {run.config().evalset.name} is {status}",
            who="whoever ran it",
            command=f"harness eval --resume {run.id}",
        )
        for run in RunStore(project.runs).list()
        if (status := run.status()) not in ("complete", "running")
    ]


def unreviewed(project: Project) -> list[Waiting]:
    """Proposals in the project folder with hunks that nobody has decided."""
    from harness_cli.errors import HarnessError
    from harness_cli.records.diagnosis import Proposal
    from harness_cli.records.reader import read_yaml

    found = []
    for path in sorted(project.root.glob("*.yaml")):
        if path.name in (project.gates.name, "harness.yaml"):
            continue
        try:
            proposal = read_yaml(path, Proposal, name=path.name)
        except HarnessError:
            continue  # another YAML file of the user's
        open_ = sum(op.decision.state == "pending" for e in proposal.edits for op in e.ops)
        if open_:
            found.append(
                Waiting(
                    what=f"{path.name}: {counted(open_, 'hunk')} undecided",
                    who="a reviewer",
                    command=f"harness edit apply {path.name}",
                )
            )
    return found
