"""The augmented states of a data set: drawn once into its folder, then read from there."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness_cli.augmentation.recipes import recipe_of
from harness_cli.augmentation.states import augment
from harness_cli.errors import Stale
from harness_cli.evaluation.variants import States
from harness_cli.records.augmentation import AugmentationMap, Recipe
from harness_cli.records.canonical import digest, write_atomic
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.reader import dump_yaml, read_yaml
from harness_cli.records.training import SftJob
from harness_cli.store.project import Project


def draw_states(
    project: Project, job: SftJob, where: Path, base: HarnessState, items: Sequence[Item]
) -> tuple[States | None, tuple[str, ...]]:
    """The states of a job, and their names in order. `items` are those that run under them.

    Raises `Stale` where the folder holds states of another harness, recipe or seed.
    """
    if not job.states:
        return None, ()
    recipe = recipe_of(project.root, job.recipe)
    maps: dict[str, AugmentationMap] = {}
    for number in range(job.states):
        name = f"hsa-{number + 1:03d}"
        maps[name] = _drawn(where, name, base, recipe, job.seed * 1000 + number, items)
    return States(project, where, maps), tuple(maps)


def _drawn(
    where: Path, name: str, base: HarnessState, recipe: Recipe, seed: int, items: Sequence[Item]
) -> AugmentationMap:
    file = where / f"{name}.yaml"
    if file.exists():
        kept = read_yaml(file, AugmentationMap, name=file.name)
        if (kept.base, kept.seed, kept.recipe) != (base.id, seed, digest(recipe)):
            raise Stale(
                f"`{file}` is a state of another harness, recipe or seed",
                hint="name another folder with -o, or take the old one away",
            )
        return kept
    made = augment(base, recipe, seed, name=name, items=items)
    for path, entry in made.files.items():
        write_atomic(where / name / path, entry.data)
        (where / name / path).chmod(int(entry.mode[-3:], 8))
    given = msgspec.structs.replace(
        made.map, base=base.id, seed=seed, recipe=digest(recipe), folder=name, tree=None, items=()
    )
    write_atomic(file, dump_yaml(msgspec.to_builtins(given)).encode())
    return given
