"""Where things stand: what serves, what waits for whom, which pairs are proven."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from harness_cli.records.counting import counted
from harness_cli.release.channels import list_channels, list_manifests, pair_of, proven_pairs
from harness_cli.serving.jobs import jobs
from harness_cli.serving.rooms import rooms
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

ANSWER_S = 2.0
"""An endpoint of this machine that says nothing for so long does not serve."""


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


class EvaluatedPair(msgspec.Struct, frozen=True, kw_only=True):
    """A (policy, harness) pair that was measured or proven: one cell of the grid."""

    policy: str
    harness: str
    verdict: str
    """`proven`, or `evaluated`: no manifest says that it passed its gates."""
    manifest: str | None = None
    runs: int = 0
    newest: str | None = None
    """Its newest complete run."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """A process that serves, and whether that is what its channel wants.

    An endpoint of `harness serve up` is a policy alone; a live room is a policy in a harness.
    """

    name: str
    url: str
    """Where an endpoint listens; `pid N` of a live room."""
    kind: Literal["policy", "room"] = "policy"
    channel: str = ""
    """What it is held against: the channel it was told to serve, else the project's."""
    policy: str | None
    """The id that the process itself reports; None where it does not answer."""
    desired: str | None
    """The policy that the channel wants served."""
    harness: str | None = None
    """The harness that the process reports; None where it serves none."""
    desired_harness: str | None = None
    agrees: bool
    """On every axis that it serves."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """`harness status`."""

    channels: tuple[Switches, ...]
    waiting: tuple[Waiting, ...]
    proven: tuple[ProvenPair, ...]
    grid: tuple[EvaluatedPair, ...] = ()
    live: tuple[Live, ...] = ()


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
        grid=evaluated(project, pairs),
        live=live(project, channels),
    )


def evaluated(project: Project, pairs: Mapping[tuple[str, str], str]) -> tuple[EvaluatedPair, ...]:
    """Every pair with a complete run of a committed harness, or with a manifest."""
    runs: dict[tuple[str, str], list[str]] = {pair: [] for pair in pairs}
    for run in RunStore(project.runs).list():
        config = run.config()
        whole = config.agent == "harness" and not (config.dirty or config.only or config.imported)
        if whole and run.status() == "complete":
            runs.setdefault((config.policy_id, config.harness_id), []).append(run.id)
    return tuple(
        EvaluatedPair(
            policy=pair[0],
            harness=pair[1],
            verdict="proven" if pair in pairs else "evaluated",
            manifest=pairs.get(pair),
            runs=len(found),
            newest=max(found, default=None),
        )
        for pair, found in sorted(runs.items())
    )


def live(project: Project, channels: Sequence[Switches]) -> tuple[Live, ...]:
    """What the processes started by `harness serve up` report, beside what is desired."""
    known = {c.channel: c for c in channels}
    found = []
    for job, state in jobs(project.root):
        served = health(job.url) if state == "up" else None
        wanted = known.get(project.config.channel)
        desired = wanted.policy if wanted else None
        found.append(
            Live(
                name=job.name,
                url=job.url,
                channel=project.config.channel,
                policy=served,
                desired=desired,
                agrees=served is not None and served == desired,
            )
        )
    for room in rooms(project.root):
        name = room.channel or project.config.channel
        wanted = known.get(name)
        pair = (wanted.policy, wanted.harness) if wanted else (None, None)
        found.append(
            Live(
                name=room.name,
                url=f"pid {room.pid}",
                kind="room",
                channel=name,
                policy=room.policy_id,
                desired=pair[0],
                harness=room.harness_id,
                desired_harness=pair[1],
                agrees=(room.policy_id, room.harness_id) == pair,
            )
        )
    return tuple(found)


def health(url: str) -> str | None:
    """The policy id that an endpoint on this machine reports; None where it does not answer."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        connection = HTTPConnection(str(parts.hostname), parts.port, timeout=ANSWER_S)
        connection.request("GET", "/health")
        told = msgspec.json.decode(connection.getresponse().read(1 << 16), type=dict[str, Any])
    except (OSError, HTTPException, msgspec.DecodeError):
        return None
    return str(told["policy_id"]) if "policy_id" in told else None


def unfinished(project: Project) -> list[Waiting]:
    """Runs that stopped before their end."""
    return [
        Waiting(
            what=f"run {run.id} of {run.config().evalset.name} is {status}",
            who="whoever ran it",
            command=f"harness eval --resume {run.id}",
        )
        for run in RunStore(project.runs).list()
        # One that was scored again is whole once the run is that it was made from.
        if (status := run.status()) not in ("complete", "running") and not run.config().rescored_of
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
