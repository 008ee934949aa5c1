"""One episode of the simulator: everything that is needed to play it again, byte for byte."""

from typing import Any

import msgspec

from harness_cli.records.chat import ChatReply


class EpisodeRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of an episode file."""

    schema: int = 1
    settings: dict[str, Any] = {}
    """`simulator.live.settings.Settings`, what differs from its defaults."""
    seed: int
    group: str
    rollout: int = 0
    harness_id: str
    """Of the state it ran under."""
    base_id: str
    """Of the state that one was made from; the same where it is the base itself."""
    state_seed: int | None = None
    """Of the augmented state, in its pool."""
    catalogue: str = ""
    """Digest of the shop's catalogue."""
    policy_id: str = ""
    actions: tuple[ChatReply, ...] = ()
    """Every answer of the policy, in order."""
    lines: tuple[str | None, ...] = ()
    """What a viewer said in its own words, in order; None: it had no more to say."""
    trajectories: tuple[str, ...] = ()
    """SHA-256 of each rollout without clocks."""
