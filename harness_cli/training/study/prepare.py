"""The ground of a study, made once: copy of the project, base, augmented states, lessons.

Everything lies under `$XDG_STATE_HOME/harness/studies/NAME/`; each step leaves what is whole alone,
so a study that was stopped goes on where it was.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.variants import States
from harness_cli.harness.load import load_state
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.canonical import write_atomic
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.study import Study, StudyData
from harness_cli.records.training import SftJob
from harness_cli.store.checkin import commit_paths, start_repository
from harness_cli.store.checkpoints import RECORD
from harness_cli.store.folders import written_whole
from harness_cli.store.project import Project
from harness_cli.store.state import state_folder
from harness_cli.training.drawn_states import draw_states
from harness_cli.training.masking import Tools
from harness_cli.training.study.bound import bind
from harness_cli.training.study.golden import Setting, Shop, lessons
from harness_cli.training.template_source import tools_for

BASE: Final = "models/base"
"""The base's folder in the copy of the project."""
Said = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ground:
    """A study with its own copy of the project."""

    study: Study
    folder: Path
    project: Project

    @property
    def base(self) -> str:
        """Reference of the base, as jobs name it: its folder in the copy of the project."""
        return BASE


def open_ground(study: Study, source: Path) -> Ground:
    """The copy of the project, made where there is none.

    Raises `UsageError` without a project, and for a study that was begun as another.
    """
    folder = state_folder("studies", study.name)
    target = folder / "project"
    given = (source / study.project).resolve()
    if not (given / "harness.yaml").is_file():
        raise UsageError(f"`{study.project}` is no project", hint="it holds harness.yaml")
    bind(folder, study, given)
    if not (target / "harness.yaml").is_file():
        skipped = shutil.ignore_patterns(".harness", ".git")
        with written_whole(target) as part:
            shutil.copytree(given, part, ignore=skipped, dirs_exist_ok=True)
            names = [part / name for name in ("harness_repo", "evalsets", "harness.yaml")]
            commit_paths(start_repository(part), names, "The project of a study")
    return Ground(study, folder, Project.read(target))


def copy_base(ground: Ground, reference: str) -> None:
    """A checkpoint from elsewhere as the base, with the study's template where it names one."""
    from harness_cli.models.template_source import template_for
    from harness_cli.training.opening import open_base

    target = ground.project.root / BASE
    if (target / "config.json").is_file():
        return
    found = open_base(ground.project, reference)
    template = template_for(ground.project.root, found.folder, ground.study.template)
    with written_whole(target) as part:
        skipped = shutil.ignore_patterns(RECORD)
        shutil.copytree(found.folder, part, ignore=skipped, dirs_exist_ok=True)
        (part / "chat_template.jinja").write_text(template.source, encoding="utf-8")


async def prepare(ground: Ground, said: Said) -> None:
    """States of the variant sets, and lessons; the base has to be there (`base_made`)."""
    study, project = ground.study, ground.project
    base = load_state(project)
    for evalset, recipe in study.variants.items():
        where = project.evalsets / evalset / "states"
        job = SftJob(states=study.variant_states, recipe=recipe, seed=study.state_seed + 1)
        draw_states(project, job, where, base, ())
        said(f"{evalset}: {study.variant_states} states of {recipe}")
    if study.data:
        await _lessons(ground, base, said)


async def _lessons(ground: Ground, base: HarnessState, said: Said) -> None:
    study, project = ground.study, ground.project
    loaded = load_evalset(project, study.training_set, split="dev")
    items = list(loaded.items)
    shop = Shop(base, loaded.world, GroundedJudge())
    most = max(data.states for data in study.data.values())
    settings = [Setting("original", base, AugmentationMap(state="original"))]
    if most:
        job = SftJob(states=most, recipe=study.recipe, seed=study.state_seed)
        states, names = draw_states(project, job, project.root / "train" / "states", base, ())
        settings += [_setting(states, name) for name in names if states is not None]
    tools = tools_for(project.root, ground.base, ground.base)
    for name, data in study.data.items():
        path = project.root / "train" / f"{name}.jsonl"
        if path.is_file():
            continue
        pairs = dealt(items[: data.items], settings, data, seed=study.state_seed)
        rows = await _rows(shop, pairs, tools, data.together)
        write_atomic(path, b"".join(row + b"\n" for row in rows))
        said(f"train/{name}.jsonl: {len(rows)} rows of {len(pairs)} golds")


def dealt(
    items: Sequence[Item], settings: Sequence[Setting], data: StudyData, *, seed: int
) -> list[tuple[Item, Setting]]:
    """Which item is played in which states: the original first where it is asked for."""
    draw = Random(f"{seed}/dealt")
    augmented = settings[1 : 1 + data.states]
    found: list[tuple[Item, Setting]] = []
    for item in items:
        mine = [settings[0]] if data.original or not augmented else []
        left = data.each - len(mine)
        if augmented and left > 0:
            mine += draw.sample(augmented, min(left, len(augmented)))
        found += [(item, setting) for setting in mine]
    return found


async def _rows(
    shop: Shop, pairs: Sequence[tuple[Item, Setting]], tools: Tools, together: int
) -> list[bytes]:
    made = lessons(shop, pairs, tools, together=together)
    return [msgspec.json.encode(row) async for row in made]


def _setting(states: States | None, name: str) -> Setting:
    assert states is not None
    return Setting(name, states.state(name), states.maps[name])
