"""What the two switches of a channel select, for a process that is to serve it."""

from dataclasses import dataclass

from harness_cli.errors import HarnessError, Stale
from harness_cli.release.channels import read_channel, read_manifest
from harness_cli.store.project import Project


@dataclass(frozen=True, slots=True)
class Serves:
    """A policy in a harness, by names that a process can load, and by what they must come to."""

    policy: str | None = None
    """Name in harness.yaml; None is its default one."""
    commit: str | None = None
    """Of the harness; None is the working files."""
    channel: str | None = None
    policy_id: str | None = None
    harness_id: str | None = None

    def check(self, policy_id: str, harness_id: str) -> None:
        """Raise `Stale` where what was loaded is not what the channel's manifests bind."""
        for what, wanted, found in (
            ("policy", self.policy_id, policy_id),
            ("harness", self.harness_id, harness_id),
        ):
            if wanted is not None and wanted != found:
                raise Stale(
                    f"channel `{self.channel}` serves the {what} {wanted}, here it is {found}",
                    hint="bring its settings in harness.yaml back to those of the manifest"
                    if what == "policy"
                    else "harness manifest verify says what changed",
                )


def served_by(project: Project, name: str) -> Serves:
    """What a channel serves now. Raises `HarnessError` where it serves nothing."""
    channel = read_channel(project.manifests, name)
    if channel.policy is None or channel.harness is None:
        raise HarnessError(f"channel `{name}` serves nothing", hint="harness status")
    policy = read_manifest(project.manifests, channel.policy).predicate.policy
    harness = read_manifest(project.manifests, channel.harness).predicate.harness
    return Serves(
        policy=str(policy["name"]),
        commit=str(harness["commit"]),
        channel=name,
        policy_id=str(policy["id"]),
        harness_id=str(harness["tree"]),
    )


def manifest_of(project: Project, name: str) -> str:
    """The manifest that a channel's harness switch names. Raises where it serves nothing."""
    channel = read_channel(project.manifests, name)
    if channel.harness is None:
        raise HarnessError(f"channel `{name}` serves nothing", hint="harness status")
    return channel.harness
