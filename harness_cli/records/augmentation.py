"""`states/<name>.yaml`: one augmented harness state, and how its names follow from the base's."""

import msgspec


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
    items: tuple[str, ...] = ()
    """Items that run under this state; where no map of a set lists any, they are dealt out."""
