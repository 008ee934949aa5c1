"""`--arm NAME=SHARE`: who gets how much of [0, 1)."""

import math
from collections.abc import Sequence

from harness_cli.errors import UsageError
from harness_cli.stats.online import checked_shares


def parse_arms(words: Sequence[str]) -> dict[str, float]:
    """Arm → share, in the order given. Raises `UsageError` naming the word that is wrong."""
    shares: dict[str, float] = {}
    for word in words:
        name, mark, number = word.rpartition("=")
        name = name.strip()
        if not mark or not name:
            raise UsageError(f"--arm {word}: no share", hint="--arm control=0.9")
        if name in shares:
            raise UsageError(f"--arm {word}: the arm `{name}` is named twice")
        shares[name] = _share(word, number)
    try:
        checked_shares(shares)
    except ValueError as exc:
        total = sum(shares.values())
        raise UsageError(
            f"the shares of the arms sum to {total:g}", hint="they may sum to 1 at most"
        ) from exc
    return shares


def _share(word: str, number: str) -> float:
    try:
        share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise UsageError(
            f"--arm {word}: `{number}` is no share above 0 and up to 1", hint="--arm control=0.9"
        )
    return share
