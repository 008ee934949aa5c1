"""The one decision function: gate results in, a verdict and its exit code out.

The table, the JSON, the JUnit file, the manifest and the exit code all ask here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from harness_cli.records.gates import GateResult

EXIT_CODES = {"ERROR": 1, "DRIFT": 12, "FAIL": 10, "INCONCLUSIVE": 11, "PENDING": 3, "PASS": 0}
"""Outcome → exit code, the worst first: of several the first wins (ARCHITECTURE, exit codes)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """May the candidate be promoted?"""

    outcome: str
    blocking: tuple[str, ...]
    """Names of the enforced gates that stand in the way."""

    @property
    def promotes(self) -> bool:
        """Only a PASS promotes; INCONCLUSIVE never does."""
        return self.outcome == "PASS"

    @property
    def exit_code(self) -> int:
        """The exit code of the verb."""
        return EXIT_CODES[self.outcome]


def decide(results: Iterable[GateResult]) -> Decision:
    """The verdict over all enforced gates. No enforced gate at all is INCONCLUSIVE."""
    enforced = [r for r in results if r.mode == "enforce"]
    if not enforced:
        return Decision(outcome="INCONCLUSIVE", blocking=())
    present = {r.outcome for r in enforced}
    outcome = next(o for o in EXIT_CODES if o in present)
    return Decision(
        outcome=outcome, blocking=tuple(r.name for r in enforced if r.outcome != "PASS")
    )
