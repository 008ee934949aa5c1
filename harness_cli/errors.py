"""Every exception this package raises on purpose.

    HarnessError                 exit 1    shown as a message and a hint, never a traceback
    ├── UsageError               exit 2    options or settings that cannot be meant
    │   ├── BadFile              exit 2    a file that does not match its schema
    │   ├── UnknownName          exit 2    a skill, tool, policy, evalset … that does not exist
    │   └── MissingExtra         exit 2    an optional dependency is not installed
    ├── RepoError                exit 1    git refused: dirty tree, unknown revision
    ├── MaskError                exit 1    a chat template or row whose trained text is in doubt
    ├── NeedsPerson              exit 3    a proposal to confirm, an approval missing
    ├── Stale                    exit 12   the base moved, MCP tools drifted
    │   └── Locked               exit 12   another run holds the lock
    ├── BudgetReached            exit 13   money, tokens or wall clock
    ├── Interrupted              exit 130  ^C; the run can be resumed
    └── RolloutError             never shown: recorded on the trajectory or verdict it ended
        ├── ProviderError        the model endpoint failed
        ├── ToolError            a tool could not run
        ├── HookError            a hook failed to decide
        └── JudgeError           a judge gave no usable verdict

Anything else that escapes is a bug in this package: exit 70, with its traceback.
Gate outcomes (10, 11) are results, not exceptions: `release.decide` names their exit codes.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def nearest_and_known(word: str, known: Sequence[str], *, most: int | None = None) -> str:
    """A hint: the nearest of the words that are known, then all of them, or the first `most`."""
    near = get_close_matches(word, known, n=1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    more = " …" if most is not None and len(known) > most else ""
    return f"{meant}known: {', '.join(known[:most]) or 'none'}{more}"


class HarnessError(Exception):
    """A failure the user can act on. `hint` says how."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(HarnessError):
    """Options or settings that cannot be meant as they stand."""

    exit_code = 2


class BadFile(UsageError):
    """A file that does not match its schema; the message carries file and line or path."""


class UnknownName(UsageError):
    """A name that nothing answers to."""

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str]) -> "UnknownName":
        """The error for `name`, with the nearest known name first in its hint."""
        hint = nearest_and_known(name, sorted(known), most=12)
        return cls(f"no {kind} named `{name}`", hint=hint)


class MissingExtra(UsageError):
    """An optional dependency is not installed."""

    @classmethod
    def of(cls, what: str, extra: str) -> "MissingExtra":
        """The error for a feature that needs `pip install 'harness-evolution[extra]'`."""
        return cls(f"{what} needs the extra `{extra}`", hint=f"make install EXTRA={extra}")


class RepoError(HarnessError):
    """Git refused: a dirty tree, an unknown revision, no repository."""


class MaskError(HarnessError):
    """It cannot be told which text of a rendered conversation a policy generated: no row."""


class NeedsPerson(HarnessError):
    """Only a person may go on: a proposal to confirm, an approval that is missing."""

    exit_code = 3


class Stale(HarnessError):
    """The base moved since this was made, or what a server lists drifted from its lock."""

    exit_code = 12


class Locked(Stale):
    """Another process holds the lock."""


class BudgetReached(HarnessError):
    """Money, tokens or wall clock of a run are spent."""

    exit_code = 13


class Interrupted(HarnessError):
    """^C; what was written can be resumed."""

    exit_code = 130


class RolloutError(HarnessError):
    """A failure inside a rollout: recorded where it happened, never the end of a run."""


class ProviderError(RolloutError):
    """The model endpoint failed.

    `kind` is one of rate_limit, server, transport, malformed, timeout, stalled, auth,
    bad_request, budget; `retryable` says whether the same call may succeed later.
    """

    kind = "transport"
    retryable = True
    status: int | None = None
    retry_after_s: float | None = None

    @classmethod
    def of(
        cls,
        kind: str,
        message: str,
        *,
        retryable: bool,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> "ProviderError":
        """A classified provider failure."""
        error = cls(message)
        error.kind, error.retryable = kind, retryable
        error.status, error.retry_after_s = status, retry_after_s
        return error


class ToolError(RolloutError):
    """A tool could not run. `kind` is a `records.trajectory.ToolErrorKind` value."""

    kind = "unavailable"

    @classmethod
    def of(cls, kind: str, message: str) -> "ToolError":
        """A classified tool failure."""
        error = cls(message)
        error.kind = kind
        return error


class HookError(RolloutError):
    """A hook failed to decide: it did not start, ran out of time, or answered no JSON."""


class JudgeError(RolloutError):
    """A judge gave no usable verdict; the item is unscored, never the worst grade."""
