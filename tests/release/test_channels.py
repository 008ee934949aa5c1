"""Switches of a channel, and what a rollback goes back to."""

import pytest

from harness_cli.errors import HarnessError, UsageError
from harness_cli.records.manifest import Channel, Manifest, Predicate
from harness_cli.release.channels import (
    channel_path,
    previous,
    read_channel,
    rolled_back,
    switched,
    write_channel,
)
from harness_cli.release.manifest import statement

BOTH = frozenset({"policy", "harness"})


def manifest(name: str, policy: str, harness: str) -> Manifest:
    return statement(
        Predicate(
            id=name, created=name, policy={"id": policy}, harness={"tree": harness}, inventory=(),
            tools_sha256="", mcp_lock_sha256="", thresholds={}, evalsets={}, catalogue_sha256="",
            judge={}, gates_sha256="", evidence=(), gates=(), approvals=(),
        )
    )  # fmt: skip


def promoted(*names: str) -> Channel:
    channel = Channel(name="dev")
    for name in names:
        channel = switched(channel, policy=name, harness=name, action="promote", by="Ann", at=name)
    return channel


MADE = {
    "m1": manifest("m1", "p1", "h1"),
    "m2": manifest("m2", "p1", "h2"),
    "m3": manifest("m3", "p2", "h2"),
    "m4": manifest("m4", "p2", "h4"),
}


def back(channel: Channel, axes=BOTH) -> Channel:
    return rolled_back(channel, MADE, axes=axes, by="Ann", at="now")


def test_a_rollback_moves_both_switches_to_what_served_before():
    channel = back(promoted("m1", "m2"))
    assert (channel.policy, channel.harness) == ("m1", "m1")
    assert [e.action for e in channel.history] == ["promote", "promote", "rollback"]


def test_one_switch_goes_back_alone_where_the_pair_is_proven():
    channel = back(promoted("m2", "m3"), axes=frozenset({"policy"}))
    assert (channel.policy, channel.harness) == ("m2", "m3")
    with pytest.raises(HarnessError, match="never proven together"):
        back(promoted("m1", "m4"), axes=frozenset({"policy"}))


def test_a_second_rollback_goes_further_back_and_never_forward():
    channel = back(back(promoted("m1", "m2", "m4")))
    assert channel.harness == "m1"
    with pytest.raises(HarnessError, match="no earlier state"):
        back(channel)


def test_promoting_again_after_a_rollback_is_a_new_top():
    channel = back(promoted("m1", "m2"))
    channel = switched(channel, policy="m4", harness="m4", action="promote", by="A", at="t")
    assert previous(channel, "harness", MADE) == "m1"


def test_a_channel_that_serves_nothing_cannot_be_rolled_back():
    with pytest.raises(HarnessError, match="serves nothing"):
        back(Channel(name="dev"))


@pytest.mark.parametrize("name", ["../x", "a/b", "", "UPPER", ".hidden"])
def test_a_channel_name_cannot_leave_its_folder(tmp_path, name):
    with pytest.raises(UsageError):
        channel_path(tmp_path, name)


def test_a_channel_comes_back_from_disk_as_it_was(tmp_path):
    channel = promoted("m1", "m2")
    write_channel(tmp_path, channel)
    assert read_channel(tmp_path, "dev") == channel


@pytest.mark.parametrize(
    "channel", [promoted("gone"), promoted("m1", "gone"), promoted("gone", "m1")]
)
def test_a_manifest_that_is_not_there_is_named(channel):
    with pytest.raises(UsageError, match="no manifest named `gone`") as caught:
        rolled_back(channel, MADE, axes=BOTH, by="Ann", at="t")
    assert "m1" in (caught.value.hint or "")


def test_a_history_that_names_nothing_is_refused():
    channel = Channel(name="dev", policy="m1", harness="m1")
    with pytest.raises(HarnessError, match="names no policy") as caught:
        rolled_back(channel, MADE, axes=BOTH, by="Ann", at="t")
    assert "git" in (caught.value.hint or "")
