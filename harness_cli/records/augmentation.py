"""What harness-state augmentation is asked for, and what it did to one state (TR §3.2).

`augment.yaml` is a recipe; `states/<name>.yaml` says how the names of one augmented state follow
from the base's; `states.json` of an evalset keeps states as recipe and seed alone.
"""

from typing import Literal, get_args

import msgspec

from harness_cli.records.bounds import AtLeastOne, Share

DimensionName = Literal[
    "skill_identifiers", "skill_content", "tool_definitions", "system_prompt", "hook_variants"
]
DIMENSIONS: tuple[DimensionName, ...] = get_args(DimensionName)
"""The five dimensions of TR §3.2, in the order in which the report lists them."""


class Dimension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One dimension of a recipe."""

    strength: Share = 0.5
    """The chance, 0 to 1, that one thing which could be changed is changed."""
    moves: tuple[str, ...] = ()
    """Only these kinds of change; none named: all of the dimension's (docs/augmentation.md)."""


class Paraphrase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paraphrases by a language model or of the harness's own, beside the curated ones."""

    policy: str = ""
    """Policy of harness.yaml that writes them; none, where `wordings` are all there is."""
    judge: str | None = None
    """Policy of harness.yaml that says of each whether it means the same; another than `policy`."""
    share: Share = 0.5
    """The chance that a text which has one is put in a model's words."""
    wordings: dict[str, tuple[str, ...]] = {}
    """Texts of this very harness (a description, a rule) and what else they may be said in: written
    by whoever keeps the harness, and held to the same checks as a model's."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`augment.yaml`: which dimensions, how strong, how often a state may be drawn again."""

    schema: int = 1
    dimensions: dict[DimensionName, Dimension] = msgspec.field(
        default_factory=lambda: {name: Dimension() for name in DIMENSIONS}
    )
    skip: Share = 0.0
    """The chance, 0 to 1, that a state leaves a dimension out."""
    count: AtLeastOne = 1
    """States that `harness augment` draws when nobody says how many."""
    keep: tuple[str, ...] = ()
    """Skills that are never masked."""
    attempts: AtLeastOne = 20
    """Draws for one state before it is given up."""
    paraphrase: Paraphrase | None = None


class AugmentationMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an augmented state calls things; names that are not listed are as in the base.

    Every renaming is one to one, so that expectations go one way and trajectories the other.
    """

    schema: int = 1
    state: str
    """Its name: the file's, without `.yaml`."""
    base: str = ""
    """Id of the harness that was augmented."""
    seed: int | None = None
    recipe: str = ""
    """Digest of the recipe it was drawn by."""
    folder: str | None = None
    """The augmented harness as a folder, relative to this file …"""
    tree: str | None = None
    """… or as a tree id or revision of the harness's repository."""
    skills: dict[str, str] = {}
    """Skill of the base → its name here."""
    tools: dict[str, str] = {}
    """Tool of the base → its name here."""
    parameters: dict[str, dict[str, str]] = {}
    """Tool of the base → its parameter → that parameter's name here."""
    loader: str = "load_skill"
    """Tool of the base whose argument is a skill's name."""
    hooks: dict[str, str] = {}
    """Hook of the base → its name here."""
    blocks: dict[str, str] = {}
    """Prompt block of the base → its name here."""
    constraints: dict[str, dict[str, int]] = {}
    """Pipeline → constraint that was moved → its value here."""
    masked_skills: tuple[str, ...] = ()
    """Skills of the base that are missing here."""
    masked_rules: dict[str, int] = {}
    """Skill of the base → rules of it that are missing here."""
    added_skills: tuple[str, ...] = ()
    """Skills that the base does not have."""
    dimensions: tuple[str, ...] = ()
    """The dimensions that changed anything."""
    items: tuple[str, ...] = ()
    """Items that run under this state; where no map of a set lists any, they are dealt out."""


class DrawnState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One state of an evalset, kept as what it is drawn from."""

    state: str
    item: str
    """The item that runs under it."""
    seed: int
    tree: str
    """Harness id it comes to on the base it was drawn from."""
    discards: int = 0
    """Draws before it that were not valid."""
    dimensions: tuple[str, ...] = ()
    """The dimensions that changed anything in it."""


class DrawnStates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`states.json` of an evalset: every state as base, recipe and seed."""

    schema: int = 1
    base: str
    """Id of the harness that the trees were drawn from."""
    recipe: Recipe
    states: tuple[DrawnState, ...]
