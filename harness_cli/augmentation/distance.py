"""How much a dimension changed: edit distance in tokens, summed over the files it touched."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from harness_cli.augmentation.draft import JUDGES
from harness_cli.augmentation.states import Change
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.store.tree import Entry

_TOKEN = re.compile(r"[A-Za-z0-9_]+|[\u3400-\u9fff]|[^\sA-Za-z0-9_]")
"""A word, a Chinese character, or a sign."""


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """What a dimension changed in one state."""

    tokens: int
    """Levenshtein distance in tokens: of files that are new or gone, all their tokens."""
    of: int
    """Tokens of the state before."""
    files: int
    moves: dict[str, int] = {}
    """Kind of change → how often."""

    @property
    def share(self) -> float:
        """Tokens changed of those there were; above 1 where more was added than there was."""
        return self.tokens / self.of if self.of else 0.0


def edits(change: Change) -> Edits:
    """How much one dimension changed."""
    before, after = _host(change.before), _host(change.after)
    pairs = paired(before, after, change.names)
    told = [(a, b) for a, b in pairs if a != b]
    return Edits(
        tokens=sum(distance(_tokens(a), _tokens(b)) for a, b in told),
        of=sum(len(_tokens(entry.data)) for entry in before.values()),
        files=len(told),
        moves=dict(change.moves),
    )


def paired(
    before: Mapping[str, Entry], after: Mapping[str, Entry], given: AugmentationMap
) -> list[tuple[bytes, bytes]]:
    """Contents before and after, by file; a renamed file is the same one."""
    left = dict(after)
    found = []
    for path, entry in before.items():
        now = path if path in left else _moved(path, given)
        other = left.pop(now, None)
        found.append((entry.data, other.data if other else b""))
    return found + [(b"", entry.data) for entry in left.values()]


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Levenshtein distance of two sequences.

    Source: Myers 1999, bit-parallel form of Hyyrö 2003; one step of big integers a token of `b`.
    """
    if not a or not b:
        return len(a) + len(b)
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    last, mask = 1 << (len(a) - 1), (1 << len(a)) - 1
    plus, minus, score = mask, 0, len(a)
    for token in b:
        match = places.get(token, 0)
        zero = (((match & plus) + plus) ^ plus) | match | minus
        up = minus | ~(zero | plus) & mask
        down = plus & zero
        score += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        plus = (down << 1 | ~(zero | up)) & mask
        minus = up & zero & mask
    return score


@lru_cache(maxsize=4096)
def _tokens(data: bytes) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(data.decode("utf-8", "replace")))


def _host(files: Mapping[str, Entry]) -> dict[str, Entry]:
    """The files without those of judges, which nothing changes, and without the lock."""
    return {
        p: e for p, e in files.items() if not p.startswith(JUDGES) and not p.endswith(".lock.json")
    }


def _moved(path: str, given: AugmentationMap) -> str:
    folder, _, rest = path.partition("/")
    if folder == "skills":
        name, _, inside = rest.partition("/")
        return f"skills/{given.skills.get(name, name)}/{inside}"
    names = {"tools": given.tools, "hooks": given.hooks}.get(folder, {})
    name = rest.removesuffix(".yaml")
    return f"{folder}/{names.get(name, name)}.yaml"
