"""Channels: two switches each, policy and harness, and their append-only history."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path

from harness_cli.errors import HarnessError, UnknownName, UsageError
from harness_cli.records.canonical import write_json
from harness_cli.records.manifest import Channel, Manifest, SwitchEvent
from harness_cli.records.reader import read_json
from harness_cli.release.reading import read_file

log = logging.getLogger("harness.release")
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class NotProven(HarnessError):
    """A pair that never passed its gates together."""

    def __init__(self, channel: str, policy: str, harness: str) -> None:
        super().__init__(
            f"policy of `{policy}` with harness of `{harness}` was never proven together",
            hint=f"`harness rollback {channel}` moves both switches back",
        )
        self.policy, self.harness = policy, harness


def channel_path(manifests: Path, name: str) -> Path:
    """Where a channel's switches stand; the name cannot leave the folder."""
    if not NAME.fullmatch(name):
        raise UsageError(f"`{name}` is no channel name", hint="lowercase letters, digits, hyphens")
    return manifests / "channels" / f"{name}.json"


def read_channel(manifests: Path, name: str) -> Channel:
    """The channel, or an empty one that has served nothing yet."""
    path = channel_path(manifests, name)
    return read_json(path, Channel) if path.is_file() else Channel(name=name)


def list_channels(manifests: Path) -> list[Channel]:
    """Every channel that has been switched."""
    return [read_json(p, Channel) for p in sorted((manifests / "channels").glob("*.json"))]


def list_manifests(manifests: Path) -> dict[str, Manifest]:
    """Every manifest by id, in the order in which they were made."""
    found = [read_file(path) for path in sorted(manifests.glob("*.json"))]
    found.sort(key=lambda m: (m.predicate.created, m.predicate.id))
    return {m.predicate.id: m for m in found}


def manifest_names(manifests: Path) -> list[str]:
    """Every manifest's id, readable or not."""
    return sorted(path.stem for path in manifests.glob("*.json"))


def read_manifest(manifests: Path, name: str) -> Manifest:
    """The manifest of that id."""
    known = {p.stem for p in manifests.glob("*.json")}
    if name not in known:
        raise UnknownName.of("manifest", name, known)
    return read_file(manifests / f"{name}.json")


def pair_of(policy: Manifest, harness: Manifest) -> tuple[str, str]:
    """The (policy id, harness id) that two switches select."""
    return policy.predicate.policy["id"], harness.predicate.harness["tree"]


def proven_pairs(manifests: Iterable[Manifest]) -> dict[tuple[str, str], str]:
    """Every pair that passed its gates → the manifest that says so."""
    return {pair_of(m, m): m.predicate.id for m in manifests}


def switched(
    channel: Channel,
    *,
    policy: str | None,
    harness: str | None,
    action: str,
    by: str,
    at: str,
    reason: str = "",
) -> Channel:
    """The channel after one switch; history only grows."""
    event = SwitchEvent(at=at, by=by, action=action, policy=policy, harness=harness, reason=reason)
    return Channel(
        name=channel.name, policy=policy, harness=harness, history=(*channel.history, event)
    )


def write_channel(manifests: Path, channel: Channel) -> Path:
    """The switches on disk, whole or not at all."""
    path = channel_path(manifests, channel.name)
    write_json(path, channel)
    about = {"channel": channel.name, "policy": channel.policy, "harness": channel.harness}
    log.info("channel switched", extra=about)
    return path


def rolled_back(
    channel: Channel,
    manifests: dict[str, Manifest],
    *,
    axes: frozenset[str],
    by: str,
    at: str,
    reason: str = "",
) -> Channel:
    """One switch (or both) set to what it was before its last change, if that pair is proven.

    Raises `HarnessError` where there is nothing to go back to, or where the pair that would
    result never passed its gates together.
    """
    policy, harness = channel.policy, channel.harness
    if policy is None or harness is None:
        raise HarnessError(
            f"channel `{channel.name}` serves nothing, so nothing can be undone",
            hint="`harness status` lists the channels that serve",
        )
    now = content(manifests, policy, "policy"), content(manifests, harness, "harness")
    if "policy" in axes:
        policy = previous(channel, "policy", manifests)
    if "harness" in axes:
        harness = previous(channel, "harness", manifests)
    pair = content(manifests, policy, "policy"), content(manifests, harness, "harness")
    if pair == now:
        raise HarnessError(
            f"channel `{channel.name}` has no earlier state to go back to",
            hint="`harness promote` brings another pair there",
        )
    if pair not in proven_pairs(manifests.values()):
        raise NotProven(channel.name, policy, harness)
    return switched(
        channel,
        policy=policy,
        harness=harness,
        action="rollback",
        by=by,
        at=at,
        reason=reason,
    )


def previous(channel: Channel, axis: str, manifests: dict[str, Manifest]) -> str:
    """What one switch selected before: the newest earlier choice with other content.

    A rollback is history too. Choices that were rolled back from are not gone back to: walking
    the history as a stack, a promotion pushes and a rollback pops.
    """
    stack: list[str] = []
    for event in channel.history:
        value = event.policy if axis == "policy" else event.harness
        if value is None:
            continue
        if event.action == "rollback" and value in stack:
            del stack[stack.index(value) + 1 :]
        elif not stack or content(manifests, stack[-1], axis) != content(manifests, value, axis):
            stack.append(value)
    if not stack:
        raise HarnessError(
            f"the history of channel `{channel.name}` names no {axis}",
            hint=f"bring `channels/{channel.name}.json` back from git",
        )
    return stack[-2] if len(stack) > 1 else stack[-1]


def content(manifests: dict[str, Manifest], name: str, axis: str) -> str:
    """What a switch selects: the policy's id or the harness's tree."""
    if name not in manifests:
        raise UnknownName.of("manifest", name, manifests)
    predicate = manifests[name].predicate
    return str(predicate.policy["id"] if axis == "policy" else predicate.harness["tree"])
