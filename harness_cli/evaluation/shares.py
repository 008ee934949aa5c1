"""`NAME=SHARE` options: who gets how much of [0, 1)."""

import math
from collections.abc import Sequence

from harness_cli.errors import UsageError
from harness_cli.stats.online import checked_shares


def parse_arms(words: Sequence[str]) -> dict[str, float]:
    """Arm → share, in the order given. Raises `UsageError` naming the word that is wrong."""
    shares = parse_shares(words, option="--arm", example="control=0.9")
    try:
        checked_shares(shares)
    except ValueError as exc:
        total = sum(shares.values())
        raise UsageError(
            f"the shares of the arms sum to {total:g}", hint="they may sum to 1 at most"
        ) from exc
    return shares


def parse_shares(words: Sequence[str], *, option: str, example: str) -> dict[str, float]:
    """Name → share, up to 1 or in percent. Raises `UsageError` naming the word that is wrong."""
    shares: dict[str, float] = {}
    for word in words:
        name, mark, number = word.rpartition("=")
        name = name.strip()
        if not mark or not name:
            raise UsageError(f"{option} {word}: no share", hint=f"{option} {example}")
        if name in shares:
            raise UsageError(f"{option} {word}: `{name}` is named twice")
        try:
            share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            share = math.nan
        if not 0 < share <= 1:
            raise UsageError(
                f"{option} {word}: `{number}` is no share above 0 and up to 1",
                hint=f"{option} {example}",
            )
        shares[name] = share
    return shares
