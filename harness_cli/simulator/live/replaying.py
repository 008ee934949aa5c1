"""A recorded episode played again: the same trajectories, byte for byte, or an error that says what
differs."""

import msgspec

from harness_cli.errors import ProviderError, UsageError
from harness_cli.judges.base import Judge
from harness_cli.models.base import Deadline
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.episode import EpisodeRecord
from harness_cli.simulator.live.episode import Episode, Finished, Start
from harness_cli.simulator.live.settings import Settings, checked
from harness_cli.simulator.live.shop import Shop
from harness_cli.simulator.live.states import Draws
from harness_cli.simulator.live.viewers import RecordedViewer


async def replay(
    record: EpisodeRecord, shop: Shop, draws: Draws, *, rewards: Judge | None = None
) -> tuple[Finished, ...]:
    """Play a recorded episode again: the same trajectories, byte for byte.

    Raises `UsageError` where shop or state are others than then, or anything came out differently.
    """
    for what, then, now in (
        ("catalogue", record.catalogue, shop.world.digest),
        ("harness", record.base_id, draws.base.state.id),
    ):
        if then != now:
            raise UsageError(f"the episode was recorded with another {what}: `{then[:12]}`")
    drawn = draws.base if record.state_seed is None else draws.numbered(record.state_seed)
    episode = Episode(
        shop,
        drawn,
        checked(msgspec.convert(record.settings, Settings)),
        Start(record.seed, record.group, record.rollout),
        viewer=RecordedViewer(record.lines) if record.lines else None,
        rewards=rewards,
    )
    policy = Repeating(record.actions, record.policy_id)
    done = await episode.play(policy)
    for number, (then, made) in enumerate(zip(record.trajectories, done, strict=False)):
        if trajectory_digest(made.trajectory) != then:
            raise UsageError(f"request {number} of the episode came out differently than recorded")
    if len(done) < len(record.trajectories):
        raise UsageError(f"only {len(done)} of {len(record.trajectories)} requests came up again")
    return done[: len(record.trajectories)]


class Repeating:
    """The answers of a recorded episode, in order."""

    def __init__(self, actions: tuple[ChatReply, ...], policy_id: str) -> None:
        self.name, self.id = policy_id.partition("@")[0], policy_id
        self._left = iter(actions)

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:  # noqa: ARG002
        """The next one. Raises `ProviderError` when there is none."""
        reply = next(self._left, None)
        if reply is None:
            raise ProviderError.of("bad_request", "the record ends here", retryable=False)
        return reply

    async def close(self) -> None:
        """Nothing is held."""
