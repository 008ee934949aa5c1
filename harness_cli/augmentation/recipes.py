"""`augment.yaml` as a person wrote it: a recipe, or what is wrong with it and where."""

from collections.abc import Iterator
from pathlib import Path

from harness_cli.errors import BadFile, nearest_and_known
from harness_cli.records.augmentation import DimensionName, Recipe
from harness_cli.records.reader import line_of, parse_yaml, read_text

MOVES: dict[DimensionName, tuple[str, ...]] = {
    "skill_identifiers": ("rename", "describe", "plausible", "noise", "mask"),
    "skill_content": ("paraphrase", "mask", "reorder", "layout"),
    "tool_definitions": ("rename", "parameters", "describe", "reorder"),
    "system_prompt": ("blocks", "entries", "numbers", "paraphrase"),
    "hook_variants": ("message", "retries", "repair", "rename"),
}
"""Dimension → the kinds of change that it knows (docs/augmentation.md)."""


def read_recipe(path: Path, *, name: str | None = None) -> Recipe:
    """The recipe of a file. Raises `BadFile` with line and fix for what no recipe says."""
    shown = name or str(path)
    text = read_text(path, name=shown)
    recipe = parse_yaml(text, Recipe, name=shown)
    if recipe.schema != 1:
        raise BadFile(f"{shown}: schema {recipe.schema} is not known", hint="this is 1")
    for dimension, move in _unknown(recipe):
        line = line_of(text, f"$.dimensions.{dimension}.moves")
        raise BadFile(
            f"{shown}:{line}: `{dimension}` has no move `{move}`",
            hint=nearest_and_known(move, MOVES[dimension]),
        )
    return recipe


def recipe_of(root: Path, name: str | None) -> Recipe:
    """The recipe that a job names, a path relative to `root`; the usual one where it names none."""
    return Recipe() if name is None else read_recipe(root / name, name=name)


def _unknown(recipe: Recipe) -> Iterator[tuple[DimensionName, str]]:
    for name, dimension in recipe.dimensions.items():
        for move in dimension.moves:
            if move not in MOVES[name]:
                yield name, move
