"""What a demo did, as a value: the same that is narrated."""

from typing import Any, Protocol

import msgspec


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One measured harness of the demo."""

    name: str
    harness_id: str
    run: str
    scores: dict[str, float | None]
    counts: dict[str, int]
    edits: tuple[str, ...] = ()
    delta: dict[str, Any] = {}
    """Metric → mean difference and interval against the stage that was selected before."""
    fixed: int = 0
    broken: int = 0
    credit: tuple[dict[str, Any], ...] = ()
    """Each hunk's mark, with what it promised, what came of that and what broke."""
    advice: str = ""
    """Whether another stage is advised after this one."""
    decision: str = ""
    """What the gates said."""
    manifest: str | None = None
    seconds: float = 0.0


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """The whole demo."""

    folder: str
    policy: str
    judge: str
    evalset: str
    evalset_digest: str
    frozen: bool
    """Harness, items and policy are the ones that were frozen before the proposer existed."""
    unfrozen: tuple[str, ...] = ()
    """What changed since; the base was measured here anew in any case."""
    stages: tuple[Stage, ...] = ()
    advice: str = ""
    selected: str = ""
    verified: bool = False
    rolled_back_to: str = ""
    verified_after_rollback: bool = False
    seconds: float = 0.0


class Narrator(Protocol):
    """Where the demo speaks to: a terminal, or nobody under `--json`."""

    def say(self, text: str = "") -> None:
        """One line of narration."""

    def command(self, text: str) -> None:
        """The command a user would type for what happens next."""

    def rows(self, columns: list[str], rows: list[list[Any]]) -> None:
        """A table."""
