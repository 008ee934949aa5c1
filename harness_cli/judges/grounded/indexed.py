"""The index of the last catalogue, kept by the process: its next run has the same one."""

from dataclasses import dataclass, field

from harness_cli.judges.grounded.focus import Resolver
from harness_cli.judges.grounded.world import World, index
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item


@dataclass(frozen=True, slots=True)
class Indexed:
    """A catalogue as the judge knows it."""

    world: World
    _resolvers: dict[tuple[str, ...], Resolver] = field(default_factory=dict)
    """By the products of a room, in link order."""

    def resolver(self, item: Item) -> Resolver:
        """The resolver of an item's room."""
        room = item.request.room
        known = self.world.catalogue.room(room.id)
        products = room.products or (known.products if known else ())
        if products not in self._resolvers:
            self._resolvers[products] = Resolver(self.world, products)
        return self._resolvers[products]


_last: list[Indexed] = []


def indexed(catalogue: Catalogue) -> Indexed:
    """The index of a catalogue; that of the call before when it says the same."""
    if not _last or _last[0].world.catalogue != catalogue:
        _last[:] = [Indexed(index(catalogue))]
    return _last[0]
