"""What a sandbox is made from: a project's shop, harness and rewards, and the options of a process.

Shared by `simulator.server`, `simulator.mcp_server` and `harness serve sandbox`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness_cli.harness.load import load_state
from harness_cli.judges.base import Judge
from harness_cli.judges.rewards.open import reward_judge
from harness_cli.models.base import Policy
from harness_cli.models.open import open_policy
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.shop import Shop, open_shop
from harness_cli.simulator.live.states import Draws, augmented_by
from harness_cli.simulator.live.viewers import ModelViewer, Viewer
from harness_cli.store.project import Project

USER = "user_simulator"


@dataclass(frozen=True)
class Rooms:
    """Everything that rooms of one project share."""

    shop: Shop
    draws: Draws
    rewards: Judge | None = None
    settings: Settings = field(default_factory=Settings)
    user: Policy | None = None
    """The role `user_simulator`: it plays the viewer where dialogues have several turns."""

    def viewer(self, settings: Settings) -> Callable[[], Viewer] | None:
        """What makes the viewer of an episode; None: the library's own words."""
        user = self.user
        if user is None or settings.turns == 1:
            return None
        return lambda: ModelViewer(user)

    async def close(self) -> None:
        """Close the judge and the model that plays viewers."""
        if self.rewards is not None:
            await self.rewards.close()
        if self.user is not None:
            await self.user.close()


def open_rooms(folder: Path, *, rev: str | None = None, rewards: bool = True) -> Rooms:
    """The rooms of the project around `folder`, under its harness at `rev` (the working files).

    Raises what a project, a harness, scenarios or a catalogue that cannot be read raise.
    """
    project = Project.find(folder)
    state = load_state(project, rev)
    user = None
    if USER in project.config.roles:
        name, config = project.policy(project.config.roles[USER])
        user = open_policy(name, config, root=project.root)
    return Rooms(
        shop=open_shop(project.evalsets),
        draws=Draws(state, augmented_by(state)),
        rewards=reward_judge(project) if rewards else None,
        user=user,
    )
