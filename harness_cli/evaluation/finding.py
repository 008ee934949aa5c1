"""One item by its id, wherever it is."""

from harness_cli.errors import UnknownName
from harness_cli.evaluation.evalsets import ITEMS, Evalset, load_evalset, load_header, names
from harness_cli.records.item import Item
from harness_cli.store.project import Project


def find_item(project: Project, item_id: str, evalset: str | None = None) -> tuple[Item, Evalset]:
    """An item of any split that is not sealed; a sealed one is opened by `harness eval` alone.

    Without the name of one, calibration sets and sets under augmented states are passed over: both
    share the ids of another set. Raises `UnknownName`.
    """
    seen: list[str] = []
    sealed = False
    known = [evalset] if evalset else names(project)
    # Loading a set reads its world as well: only those that hold the id's letters are loaded.
    for name in [n for n in known if _mentions(project, n, item_id)] or known:
        header = load_header(project, name)
        sealed = sealed or bool(header.seal.splits)
        if evalset is None and (header.role == "judge" or header.states is not None):
            continue
        splits: list[str | None] = list(header.splits) or [None]
        for split in (s for s in splits if s not in header.seal.splits):
            found = load_evalset(project, name, split=split)
            for item in found.items:
                if item.id == item_id:
                    return item, found
                seen.append(item.id)
    error = UnknownName.of("item in an unsealed split", item_id, seen)
    if sealed:
        error.hint = f"{error.hint}; sealed splits are not searched"
    raise error


def _mentions(project: Project, name: str, item_id: str) -> bool:
    path = project.evalsets / name / ITEMS
    return path.is_file() and item_id.encode() in path.read_bytes()
