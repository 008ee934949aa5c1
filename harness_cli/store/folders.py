"""A folder that is whole or not there: written beside its place, then put into it by a rename."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_folder(part: Path, target: Path) -> None:
    """Give `part` the name `target`; what had it is removed once the new one is there."""
    old = target.with_name(f".{target.name}.old")
    if target.exists():
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
    part.rename(target)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """An empty folder that takes the place of `target` at the end; what fails leaves `target` as it
    was, and nothing beside it."""
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        replace_folder(part, target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
