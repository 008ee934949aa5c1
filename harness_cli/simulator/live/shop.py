"""What all rooms of a process share: the catalogue, the scenarios, narrowed views of both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness_cli.errors import UnknownName
from harness_cli.harness.memo import Memo
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.harness import HarnessState
from harness_cli.runtime.prepared import Prepared, prepare
from harness_cli.simulator.live.room import RoomState, narrowed
from harness_cli.simulator.live.script import draw_script
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.states import KEPT
from harness_cli.simulator.live.stream import Stream
from harness_cli.simulator.scenarios.draws import generator, pick
from harness_cli.simulator.scenarios.library import Family, Library, Phrases, read_library
from harness_cli.store.catalogue import read_catalogue


@dataclass
class Shop:
    """Immutable but for its memory of narrowed catalogues. Serves any number of rooms."""

    world: Catalogue
    library: Library
    _narrowed: dict[str, Catalogue] = field(default_factory=dict)
    _prepared: Memo[Prepared] = field(default_factory=lambda: Memo(KEPT))

    def prepared(self, state: HarnessState) -> Prepared:
        """A state compiled once for all its rollouts."""
        return self._prepared.get(
            (state,), "", lambda: prepare(state, kind="harness", pipeline="default", overlay=())
        )

    def stream(self, settings: Settings, seed: int, name: str) -> Stream:
        """A fresh room of its own, from a seed. Raises `UnknownName` for a room that is none."""
        rooms = {r.id: r for r in self.world.rooms}
        if settings.room is not None and settings.room not in rooms:
            raise UnknownName.of("room", settings.room, rooms)
        room = settings.room or pick(generator(seed, "room"), sorted(rooms))
        if room not in self._narrowed:
            self._narrowed[room] = narrowed(self.world, rooms[room])
        viewers = self.library.context.viewers
        script = draw_script(self._narrowed[room], rooms[room], settings, viewers, seed)
        return Stream(RoomState(self._narrowed[room], script), self.library, settings, seed, name)


def open_shop(evalsets: Path, catalogue: str = "catalogue") -> Shop:
    """The shop of a project's `evalsets/` folder."""
    library = read_library(evalsets / "scenarios")
    return Shop(read_catalogue(evalsets / catalogue), of_training(library))


def of_training(library: Library) -> Library:
    """The library without its test families, so that no room can draw one."""

    def kept(families: tuple[Family, ...]) -> tuple[Family, ...]:
        return tuple(f for f in families if f.split == "dev")

    context = library.context
    refs: Mapping[str, dict[str, Phrases]] = context.refs
    return Library(
        scenarios=tuple(
            msgspec.structs.replace(s, families=kept(s.families)) for s in library.scenarios
        ),
        context=msgspec.structs.replace(
            context,
            refs={kind: {"dev": by["dev"]} for kind, by in refs.items()},
            chatter={"dev": context.chatter["dev"]},
        ),
    )
