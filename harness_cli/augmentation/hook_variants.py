"""Dimension 5 (TR §3.2): hooks that ask the same of the policy in another way.

Moves: `message` (its form), `retries` (how often a reply may be mended), `repair` (the runtime
mends what it can, where the policy was asked to), `rename`. What a hook checks never changes.
"""

from random import Random
from typing import Any

import msgspec

from harness_cli.augmentation.draft import Draft, allowed, yaml_text
from harness_cli.augmentation.renames import with_names
from harness_cli.augmentation.reworded import reworded
from harness_cli.augmentation.tables import hook_table
from harness_cli.records.augmentation import Dimension

REASON = "{reason}"


def vary(draft: Draft, draw: Random, dimension: Dimension) -> Draft:
    """The draft with other hooks."""
    changed: dict[str, str | None] = {}
    counts = {"message": 0, "retries": 0, "repair": 0}
    paths = draft.texts("hooks/", ext=".yaml")
    for path in paths:
        data = draft.data(path)
        before = msgspec.json.encode(data)
        for kind, move in MOVES.items():
            if allowed(dimension, kind) and draw.random() < dimension.strength:
                counts[kind] += move(draft, data, draw)
        if msgspec.json.encode(data) != before:
            changed[path] = yaml_text(data)
    draft = draft.written(changed).counted(**counts)
    if not allowed(dimension, "rename"):
        return draft
    names = [path[6:-5] for path in paths]
    new = _renamed(names, draw, dimension.strength)
    draft = with_names(draft, hooks=new).counted(rename=len(new))
    return draft.mapped(hooks={**draft.map.hooks, **new})


def _renamed(names: list[str], draw: Random, chance: float) -> dict[str, str]:
    """Names with another ending; the order of hooks of one priority follows the names."""
    new: dict[str, str] = {}
    for name in names:
        if draw.random() < chance:
            made = f"{name}-{draw.choice(hook_table().names.suffixes)}"
            if made not in names:
                new[name] = made
    return new


def _message(draft: Draft, data: dict[str, Any], draw: Random) -> bool:
    """What the policy is told, in another form; the reason and the advice both stay."""
    old = str(data.get("message", ""))
    lead, _, advice = old.partition(REASON)
    advice = advice.lstrip(".:; ")
    if not advice or REASON in advice:
        return False
    form = draw.choice(hook_table().forms)
    advice = reworded(draft, advice, draw, 1.0)
    filled = form.replace(REASON, f"{lead}{REASON}").replace("{advice}", advice)
    data["message"] = filled.replace("{hook}", data["name"])
    return bool(data["message"] != old)


def _retries(draft: Draft, data: dict[str, Any], draw: Random) -> bool:  # noqa: ARG001  a move
    """How often the policy may try again; never not at all."""
    if data.get("action") != "retry":
        return False
    old = data.get("max_retries", 1)
    data["max_retries"] = draw.choice(hook_table().retries)
    return bool(data["max_retries"] != old)


def _repair(draft: Draft, data: dict[str, Any], draw: Random) -> bool:  # noqa: ARG001  a move
    """The runtime cuts what is too long, where the policy was asked to say it shorter."""
    checks = {check["check"] for check in data.get("checks", ())}
    mendable = data.get("action") == "retry" and checks <= set(hook_table().repairs)
    if not mendable or not checks:
        return False
    data["action"] = "rewrite"
    return True


MOVES = {"message": _message, "retries": _retries, "repair": _repair}
