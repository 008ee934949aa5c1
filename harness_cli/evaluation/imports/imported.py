"""What every reader of another tool's files hands over: items, and rollouts recorded of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import Finding

RECORDED = "recorded"
"""Name of the judge of an imported run: the tool that wrote the file."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the caller said about a file that does not say it itself."""

    name: str | None = None
    """Of the evalset; None: from what the file says, else from its name."""
    tasks: str | None = None
    """Text of a task list whose ids are the only ones there are."""
    policy: str | None = None
    simulator: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """One rollout as another tool recorded and scored it."""

    item_id: str
    trajectory: Trajectory
    scores: dict[str, float | None] = field(default_factory=dict)
    """What decides: passed when each is 1. Empty: the file says nothing of success."""
    parts: dict[str, float | None] = field(default_factory=dict)
    """Scores beside it that decide nothing."""
    findings: tuple[Finding, ...] = ()
    unscored: str | None = None
    """Why nothing is known of success."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A file as it was understood."""

    kind: str
    header: EvalsetHeader
    items: tuple[Item, ...]
    rollouts: Callable[[], Iterable[Recorded]] | None = None
    """Streams them anew at each call; None for a file that records none."""
    repeats: int = 1
    policy: str = ""
    policy_id: str = ""
    simulator: str = ""
    judge_id: str = f"{RECORDED}@unnamed"
    notes: tuple[str, ...] = ()
    """What a reader of the result must know: what was left out, guessed or changed."""
    unsupported: tuple[str, ...] = ()
    """Parts of the file that have no meaning here, each with its place."""

    def recorded(self) -> Iterator[Recorded]:
        """The rollouts, none when the file records none."""
        return iter(self.rollouts() if self.rollouts is not None else ())


Reader = Callable[..., Imported]
