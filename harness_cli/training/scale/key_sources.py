"""Key trees out of the engines themselves; run where an engine is installed.

    python -m harness_cli.training.scale.key_sources verl FOLDER
    python -m harness_cli.training.scale.key_sources roll FOLDER      (ROLL's checkout on sys.path)

Writes one file a configuration. Names and types of keys, nothing else.
"""

import dataclasses
import sys
import typing
from pathlib import Path
from typing import Any, Final

from harness_cli.errors import UsageError
from harness_cli.records.canonical import write_json
from harness_cli.training.scale.key_tree import OPEN, Tree

VERL: Final = {
    "verl-ppo-dp": ("ppo_trainer", ()),
    "verl-ppo-megatron": ("ppo_trainer", ("model_engine=megatron",)),
    "verl-sft-fsdp": ("sft_trainer_engine", ()),
    "verl-sft-megatron": ("sft_trainer_engine", ("engine=megatron", "optim=megatron")),
}
FLOATS: Final = ("top_p", "temperature", "entropy_coeff", "weight_decay")
"""Written as whole numbers in the defaults, floats in the classes."""
_PLAIN: Final = {bool: "bool", int: "int", float: "float", str: "str"}


def verl_trees() -> dict[str, Tree]:
    """The composed reference configurations of the installed verl."""
    import verl
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    folder = Path(verl.__file__).parent / "trainer" / "config"
    found: dict[str, Tree] = {}
    with initialize_config_dir(str(folder), version_base=None):
        for name, (config, overrides) in VERL.items():
            made = compose(config, overrides=list(overrides))
            found[name] = _of_values(OmegaConf.to_container(made, resolve=False))
    return found


def roll_trees() -> dict[str, Tree]:
    """The fields of ROLL's configuration classes."""
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    return {"roll-agentic": _of_class(AgenticConfig)}


def _of_values(value: Any) -> Any:
    """Types of composed values. An interpolation and an empty value say nothing of the type."""
    if isinstance(value, dict):
        made = {str(k): "float" if k in FLOATS else _of_values(v) for k, v in value.items()}
        return made or OPEN
    if isinstance(value, list):
        return "list"
    if value is None or (isinstance(value, str) and (value == "???" or "${" in value)):
        return "any"
    return _PLAIN.get(type(value), "any")


def _of_class(kind: Any) -> Tree:
    hints = typing.get_type_hints(kind)
    return {f.name: _of_hint(hints[f.name]) for f in dataclasses.fields(kind)}


def _of_hint(hint: Any) -> Any:
    """The type of one field: a section for a dataclass, `open` for a mapping."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _of_class(hint)
    if hint is dict or origin is dict:
        return OPEN
    if hint is list or origin in (list, tuple):
        return "list"
    if origin is typing.Literal:
        kinds = {_PLAIN.get(type(v), "any") for v in inner if v is not None}
        return "|".join(sorted(kinds))
    if inner:  # a union
        parts = [_of_hint(part) for part in inner if part is not type(None)]
        sections = [part for part in parts if isinstance(part, dict)]
        if sections or OPEN in parts:
            return OPEN if OPEN in parts else sections[0]
        return "any" if "any" in parts else "|".join(sorted({str(p) for p in parts}))
    return _PLAIN.get(hint, "any")


def main() -> None:
    """Write the trees of one engine."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("verl", "roll"):
        raise UsageError("key_sources verl|roll FOLDER")
    trees = verl_trees() if sys.argv[1] == "verl" else roll_trees()
    for name, tree in trees.items():
        write_json(Path(sys.argv[2], f"{name}.json"), tree)


if __name__ == "__main__":
    main()
