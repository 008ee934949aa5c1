"""What `verify` says of one thing that it looked at."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `verify` looked at."""

    what: str
    outcome: Literal["verified", "wrong", "not re-checked"]
    detail: str = ""


def compared(found: str | None, bound: str) -> tuple[Literal["verified", "wrong"], str]:
    """Equal digests are verified; an absent one is wrong, since it was bound."""
    if found == bound:
        return "verified", ""
    return "wrong", "not in the bound commit" if found is None else f"{bound} is now {found}"
