"""The reward of a τ²-bench simulation: its parts, what failed, and the product made again."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness_cli.records.verdict import Finding


class DbCheck(msgspec.Struct, frozen=True):
    """Whether the database ended as it should."""

    db_match: bool = False
    db_reward: float = 0.0


class Check(msgspec.Struct, frozen=True):
    """One assertion, action or piece of information."""

    action: dict[str, Any] | None = None
    action_match: bool | None = None
    env_assertion: dict[str, Any] | None = None
    nl_assertion: str | None = None
    info: str | None = None
    met: bool | None = None

    @property
    def holds(self) -> bool:
        """Met, or matched."""
        return bool(self.met if self.action is None else self.action_match)


class RewardInfo(msgspec.Struct, frozen=True):
    """`reward_info` of a simulation; what was not looked at is absent or null."""

    reward: float
    db_check: DbCheck | None = None
    env_assertions: tuple[Check, ...] | None = None
    action_checks: tuple[Check, ...] | None = None
    nl_assertions: tuple[Check, ...] | None = None
    communicate_checks: tuple[Check, ...] | None = None
    reward_basis: tuple[str, ...] | None = None
    reward_breakdown: dict[str, float] | None = None


def _by_name(told: RewardInfo) -> dict[str, Sequence[Check]]:
    return {
        "ENV_ASSERTION": told.env_assertions or (),
        "ACTION": told.action_checks or (),
        "NL_ASSERTION": told.nl_assertions or (),
        "COMMUNICATE": told.communicate_checks or (),
    }


def recheck(told: RewardInfo) -> float | None:
    """The product of the parts that the basis names, from the single checks.

    None where the dialogue was cut: then nothing was checked and the reward is 0 by rule.
    """
    if told.reward_breakdown is None:
        return None if told.reward == 0 else 0.0
    product = 1.0
    for name in told.reward_basis or ():
        if name == "DB":
            product *= told.db_check.db_reward if told.db_check else 1.0
        elif name in _by_name(told):
            product *= math.prod(float(check.holds) for check in _by_name(told)[name])
        else:
            return None
    return product


def parts_of(told: RewardInfo) -> dict[str, float | None]:
    """The parts that decide, as recorded, and the share of expected actions that were made."""
    parts: dict[str, float | None] = {
        name.lower(): value for name, value in (told.reward_breakdown or {}).items()
    }
    actions = told.action_checks or ()
    if actions:
        parts["actions_matched"] = sum(check.holds for check in actions) / len(actions)
    return parts


def findings_of(told: RewardInfo) -> Iterator[Finding]:
    """Every part of the basis that failed, in words."""
    basis = told.reward_basis or ()
    if "DB" in basis and told.db_check is not None and not told.db_check.db_match:
        yield Finding(kind="wrong_end_state", detail="the database is not as the task leaves it")
    named = _by_name(told)
    for check in named["ENV_ASSERTION"] if "ENV_ASSERTION" in basis else ():
        if not check.holds:
            wanted = check.env_assertion or {}
            yield Finding(
                kind="wrong_end_state",
                detail=f"`{wanted.get('func_name')}` does not hold with {wanted.get('arguments')}",
            )
    for check in named["COMMUNICATE"] if "COMMUNICATE" in basis else ():
        if not check.holds:
            yield Finding(
                kind="not_communicated", detail=f"`{check.info}` was never said to the user"
            )
    for check in named["NL_ASSERTION"] if "NL_ASSERTION" in basis else ():
        if not check.holds:
            yield Finding(kind="conduct", detail=str(check.nl_assertion)[:200])
    for check in named["ACTION"] if "ACTION" in basis else ():
        if not check.holds:
            action = check.action or {}
            yield Finding(
                kind=f"{'user_' if action.get('requestor') == 'user' else ''}action_missing",
                detail=f"`{action.get('name')}` with {action.get('arguments')} was not called",
            )
