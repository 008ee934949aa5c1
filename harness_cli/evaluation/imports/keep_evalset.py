"""An imported evalset on disk: whole or not at all, and never over another one."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import ITEMS, Evalset, load_evalset
from harness_cli.evaluation.imports.source import name_of
from harness_cli.evaluation.survey import HEADER
from harness_cli.records.canonical import write_atomic
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import dump_yaml
from harness_cli.store.project import Project

SHOWN = 5
RESERVED = {"catalogue"}
_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="sorted").encode


def existing_evalset(
    project: Project, header: EvalsetHeader, items: Sequence[Item]
) -> Evalset | None:
    """The evalset of that name, where it holds every item unchanged; None where there is none.

    So two result files on the same tasks are two runs on one evalset. Raises `UsageError` where
    another evalset has the name.
    """
    name = safe_name(header.name)
    if not (project.evalsets / name).exists():
        return None
    found = load_evalset(project, name)
    _same(found, items)
    return found


def write_evalset(
    project: Project, header: EvalsetHeader, items: Iterable[Item], *, source: str
) -> Evalset:
    """A new evalset, as the project has it then."""
    name = safe_name(header.name)
    items = list(items)
    made = msgspec.structs.replace(
        header,
        name=name,
        splits=dict(Counter(item.split for item in items)),
        notes=f"{header.notes} (imported from `{source}`)".strip(),
    )
    write_folder(project.evalsets / name, made, items)
    return load_evalset(project, name)


def safe_name(name: str, *, hint: str = "--name NAME") -> str:
    """A folder name. Raises `UsageError` for one that leads elsewhere."""
    try:
        text = name_of(name, what="the name", where="--name")
    except BadFile as exc:
        raise UsageError(str(exc)) from exc
    if "/" in text or "\\" in text or text.startswith(".") or text in RESERVED:
        raise UsageError(f"`{text}` cannot be the name of an evalset", hint=hint)
    return text


def _same(found: Evalset, items: Sequence[Item]) -> None:
    known = {item.id: _sorted(item) for item in found.items}
    alien = [i.id for i in items if i.id not in known]
    other = [i.id for i in items if i.id in known and known[i.id] != _sorted(i)]
    if alien or other:
        said = "are not in it" if alien else "are other ones there"
        shown = ", ".join(f"`{i}`" for i in (alien or other)[:SHOWN])
        raise UsageError(
            f"the evalset `{found.header.name}` exists and {len(alien or other)} of the file's "
            f"items {said}: {shown}",
            hint="--name NAME imports them as an evalset of their own",
        )


def write_folder(folder: Path, header: EvalsetHeader, items: Iterable[Item]) -> None:
    """A new folder, written beside the evalsets, then renamed: a killed program leaves none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(dir=folder.parent.parent, prefix=".importing-"))
    try:
        default = msgspec.to_builtins(EvalsetHeader(name=""))
        told = msgspec.to_builtins(header).items()
        plain = {k: v for k, v in told if v != default[k] or k == "schema"}
        write_atomic(stage / ITEMS, b"".join(_encode(item) + b"\n" for item in items))
        write_atomic(stage / HEADER, dump_yaml(plain).encode())
        stage.chmod(0o755)
        stage.rename(folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
