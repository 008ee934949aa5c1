"""The room that an engine's rollout workers work in: a plain folder, nothing of git needed.

    room/room.json              what the job says of rollouts and rewards
    room/harness.yaml           the project's settings
    room/harness/               the base state, file by file
    room/evalsets/catalogue/    and scenarios/, where tasks come from live rooms
    room/items.jsonl            where tasks are items

A worker opens it once. The state of a group is drawn from the group's name alone, so that all
rollouts of a group share it wherever they run.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.errors import Stale
from harness_cli.harness.load import load_folder
from harness_cli.judges.base import Judge
from harness_cli.judges.rewards.open import reward_judge
from harness_cli.models.base import Policy
from harness_cli.records.canonical import write_atomic, write_json
from harness_cli.records.chat import Generation
from harness_cli.records.item import Item
from harness_cli.records.reader import dump_yaml, parse_json, read_json
from harness_cli.records.room import RoomCard
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.shop import open_shop
from harness_cli.simulator.live.states import Draws, augmented_by
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import FILE, Project
from harness_cli.training.playing import (
    Ground,
    ItemsGround,
    Place,
    Played,
    Playground,
    RoomsGround,
)

CARD: Final = "room.json"
ITEMS: Final = "items.jsonl"
HARNESS: Final = "harness"


@dataclass
class Room:
    """An open room."""

    card: RoomCard
    ground: Playground
    judge: Judge
    _playing: int = 0
    _step: str = ""

    @classmethod
    def open(cls, root: Path) -> "Room":
        """Read a room. Raises `Stale` where harness or catalogue are not those of its card."""
        card = read_json(root / CARD, RoomCard, name=CARD)
        project = Project.read(root)
        base = load_folder(project.harness)
        catalogue = project.evalsets / "catalogue"
        world = read_catalogue(catalogue)
        for what, found, meant in (
            ("harness", base.id, card.harness),
            ("catalogue", world.digest, card.catalogue),
        ):
            if found != meant:
                raise Stale(
                    f"the room's {what} is `{found}`, it was made with `{meant}`",
                    hint="make the job folder anew: harness train … --engine",
                )
        _under_git(project)
        ground: Playground
        if card.rooms is None:
            made_of = Ground(
                base=base,
                world=world,
                recipe=card.recipe,
                limits=project.limits("offline"),
                catalogue=catalogue,
                pipeline=card.pipeline,
                pool=card.pool,
                seed=card.seed,
            )
            ground = ItemsGround(made_of, _items(root / ITEMS), card.augmented)
        else:
            ground = RoomsGround(
                open_shop(project.evalsets),
                Draws(base, augmented_by(base, card.recipe), pool=card.pool, seed=card.seed),
                msgspec.convert(card.rooms.settings, Settings),
                range(card.rooms.first, card.rooms.first + card.rooms.tasks),
                card.augmented,
            )
        return cls(card, ground, reward_judge(project, card.judge))

    async def play(self, place: Place, policy: Policy) -> Played:
        """One rollout of the production loop, in the state of its group."""
        card = self.card
        generation = Generation(
            temperature=card.temperature,
            top_p=1.0,
            max_tokens=card.new_tokens,
            max_tokens_ceiling=card.new_tokens,
        )
        step = place.group.partition(":")[0]
        if step != self._step and not self._playing:
            # What was drawn and compiled for the groups of an earlier step serves nobody any more.
            self._step = step
            await self.ground.settle()
        self._playing += 1
        try:
            return await self.ground.play(place, policy, generation)
        finally:
            self._playing -= 1

    async def scores(self, played: Played) -> Mapping[str, float | None]:
        """The reward judge's scores, in the base's names."""
        verdict = await self.judge.judge(played.item, played.judged, played.world)
        return verdict.scores


def write_room(
    project: Project,
    files: Mapping[str, bytes],
    card: RoomCard,
    root: Path,
    *,
    items: Sequence[Item] = (),
    catalogue: str = "catalogue",
) -> None:
    """Make a room's folder; `files` are those of the base harness."""
    config = msgspec.structs.replace(project.config, harness=HARNESS, evalsets="evalsets")
    write_atomic(root / FILE, dump_yaml(msgspec.to_builtins(config)).encode())
    for path, data in files.items():
        write_atomic(root / HARNESS / path, data)
    _copy(project.evalsets / catalogue, root / "evalsets" / "catalogue")
    if card.rooms is not None:
        _copy(project.evalsets / "scenarios", root / "evalsets" / "scenarios")
    if items:
        lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
        write_atomic(root / ITEMS, lines)
    write_json(root / CARD, card)


def harness_files(project: Project) -> dict[str, bytes]:
    """Every file of the working harness, the judges' own harnesses included."""
    from harness_cli.store.repo import Repo

    found = Repo.open(project.harness).working_files(project.harness)
    return {path: entry.data for path, entry in found.items()}


def _copy(source: Path, target: Path) -> None:
    for file in sorted(source.rglob("*")):
        if file.is_file():
            write_atomic(target / file.relative_to(source), file.read_bytes())


def _items(path: Path) -> dict[str, Item]:
    lines = path.read_bytes().splitlines()
    items = [parse_json(line, Item, name=f"{ITEMS}:{n}") for n, line in enumerate(lines, 1)]
    return {item.id: item for item in items}


def _under_git(project: Project) -> None:
    """A judge with a harness of its own is read from a repository: make one where there is none."""
    judges: Mapping[str, Any] = project.config.judges
    if any(j.kind == "panel" for j in judges.values()) and not (project.root / ".git").exists():
        subprocess.run(["git", "init", "-q"], cwd=project.root, check=True)
