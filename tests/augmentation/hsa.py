"""The shipped harness as a base, and oracles for its items: what the tests here start from."""

import asyncio
from functools import cache
from pathlib import Path

import msgspec

from harness_cli.augmentation.golds import Gold
from harness_cli.evaluation.augmenting import golds_of, grounds_of
from harness_cli.harness.load import folder_files, loaded
from harness_cli.records.augmentation import DIMENSIONS, Dimension, Recipe
from harness_cli.records.item import Item
from harness_cli.simulator.solutions import read_oracle

ROOT = Path(__file__).parents[2]
EVALSETS = ROOT / "evalsets"
FULL = Recipe(dimensions={name: Dimension(strength=1.0) for name in DIMENSIONS})


@cache
def files():
    return folder_files(ROOT / "harness_repo")


@cache
def base():
    return loaded(files())[0]


@cache
def oracle():
    return read_oracle(EVALSETS)


@cache
def grounds():
    return grounds_of(oracle())


@cache
def dev_items():
    text = (EVALSETS / "live_stream_qa" / "items.jsonl").read_bytes()
    items = (msgspec.json.decode(line, type=Item) for line in text.splitlines())
    return tuple(item for item in items if item.split == "dev")


@cache
def golds(count: int) -> tuple[Gold, ...]:
    """Items with a right gold solution, spread over dev."""
    items = dev_items()
    step = max(1, len(items) // (count + count // 8))
    return tuple(asyncio.run(golds_of(oracle(), base(), items[::step], grounds())))[:count]


def only(name: str, *moves: str, strength: float = 1.0) -> Recipe:
    """A recipe of one dimension."""
    return Recipe(dimensions={name: Dimension(strength=strength, moves=moves)})
