"""What was made from values, found again by the identity of those values."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """A bounded memory of results keyed by the very objects they were made from.

    Identity, not an id string: `msgspec.structs.replace(state, …)` keeps the parts it does not
    change, and a changed part is another object, so a stale result can never be found. Each
    entry holds its objects, so their identity cannot be reused while it lives.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._made: OrderedDict[Hashable, tuple[tuple[Any, ...], T]] = OrderedDict()

    def get(self, objects: tuple[Any, ...], extra: Hashable, make: Callable[[], T]) -> T:
        """The result for these objects, made by `make` the first time."""
        key = (extra, *map(id, objects))
        found = self._made.get(key)
        if found is not None:
            self._made.move_to_end(key)
            return found[1]
        made = make()
        self._made[key] = (objects, made)
        if len(self._made) > self._size:
            self._made.popitem(last=False)
        return made
