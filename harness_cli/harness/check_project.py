"""A whole project under the linter: harness, evalsets, catalogue, gates, manifests, settings."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.harness.check import check_files
from harness_cli.harness.check_config import check_config
from harness_cli.harness.findings import Finding, of_error, ordered
from harness_cli.harness.load import files_at, folder_files, is_harness
from harness_cli.harness.reading import read_record, read_value
from harness_cli.records.augmentation import AugmentationMap, DrawnStates
from harness_cli.records.config import ProjectConfig
from harness_cli.records.counting import counted
from harness_cli.records.gates import GatesFile
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.manifest import Channel, Manifest
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import FILE
from harness_cli.store.repo import Repo

READ = (".md", ".yaml", ".json")
"""Ends of the names of files that a harness is made of."""
T = TypeVar("T")
_item = msgspec.json.Decoder(Item).decode


def check_project(root: Path, *, rev: str | None = None) -> list[Finding]:
    """Every finding of a project, by place; paths are relative to `root`.

    `rev` checks the harness of that revision, or of that folder, in place of the working files.
    """
    config, found = check_config(root)
    found += _harness(root, config, rev)
    found += _evalsets(root, config)
    found += _gates(root, config)
    found += _manifests(root, config)
    return ordered(found)


def project_root(start: Path) -> Path:
    """The folder with `harness.yaml` around `start`, readable or not."""
    here = start.resolve()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder
    raise UsageError(
        f"no `{FILE}` in `{here}` or above it",
        hint="`harness init` makes a project here; -C DIR names another folder",
    )


def _harness(root: Path, config: ProjectConfig, rev: str | None) -> list[Finding]:
    folder = root / config.harness
    try:
        repo = Repo.open(folder)
        if rev is not None and is_harness(Path(rev)):
            files = folder_files(Path(rev))
        else:
            files = repo.working_files(folder) if rev is None else files_at(repo, folder, rev)[0]
    except HarnessError as exc:
        if rev is not None:
            raise
        return [
            Finding(path=config.harness, rule="harness/git", message=str(exc), fix=exc.hint or "")
        ]
    found = check_files(files)
    if rev is None:
        found += [_left_out(p) for p in repo.ignored_files(folder) if p.endswith(READ)]
    return [msgspec.structs.replace(f, path=f"{config.harness}/{f.path}") for f in found]


def _left_out(path: str) -> Finding:
    """A part of the harness by its name that is none: whoever wrote it believes it counts."""
    return Finding(
        path=path,
        level="warning",
        rule="file/ignored",
        message="git ignores this file, so the harness goes without it",
        fix="`git add -f` it, or move it away",
    )


def _evalsets(root: Path, config: ProjectConfig) -> Iterator[Finding]:
    folder = root / config.evalsets
    if not folder.is_dir():
        message = "there is no folder of evalsets"
        yield Finding(path=config.evalsets, rule="evalset/none", level="warning", message=message)
        return
    catalogues: set[str] = set()
    for place in sorted(p for p in folder.iterdir() if p.is_dir()):
        header, items = place / "evalset.yaml", place / "items.jsonl"
        name = f"{config.evalsets}/{place.name}"
        if header.is_file():
            made, findings = _file(header, EvalsetHeader, f"{name}/evalset.yaml", "evalset/header")
            yield from findings
            if made is not None:
                yield from _named(made, place.name, f"{name}/evalset.yaml")
                catalogues |= {made.catalogue} if made.catalogue else set()
            if made is not None and made.items_of is not None:
                yield from _shared(made, place, name, folder)
            else:
                yield from check_items(items, f"{name}/items.jsonl", made)
        elif items.is_file():
            message = "items without a header are no evalset"
            yield Finding(path=name, rule="evalset/header", message=message, fix="add evalset.yaml")
    for catalogue in sorted(catalogues):
        yield from _catalogue(folder / catalogue, f"{config.evalsets}/{catalogue}")


def _shared(header: EvalsetHeader, place: Path, name: str, folder: Path) -> Iterator[Finding]:
    """A set with the items of another one: that one is there, and the maps of states are maps."""
    if not (folder / str(header.items_of) / "evalset.yaml").is_file():
        message = f"its items are those of `{header.items_of}`, which is no evalset"
        yield Finding(path=f"{name}/evalset.yaml", rule="evalset/items_of", message=message)
    if str(header.states).endswith(".json"):
        path = f"{name}/{header.states}"
        yield from _file(place / str(header.states), DrawnStates, path, "evalset/state")[1]
        return
    for file in sorted((place / header.states).glob("*.yaml")) if header.states else ():
        path = f"{name}/{header.states}/{file.name}"
        yield from _file(file, AugmentationMap, path, "evalset/state")[1]


def _named(header: EvalsetHeader, folder: str, path: str) -> Iterator[Finding]:
    if header.name != folder:
        message = f"the name `{header.name}` differs from its folder `{folder}`"
        yield Finding(path=path, rule="evalset/name", message=message, fix=f"`name: {folder}`")


def check_items(file: Path, path: str, header: EvalsetHeader | None) -> Iterator[Finding]:
    """Every line of `items.jsonl` that is no item, ids that stand twice, splits that miscount."""
    if not file.is_file():
        yield Finding(path=path, rule="evalset/items", message="the evalset has no items")
        return
    lines: dict[str, int] = {}
    counts: Counter[str] = Counter()
    with file.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else raw.strip()
            if not line:
                continue
            try:
                item = _item(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as exc:
                yield from _bad_line(line, number, path, exc)
                continue
            counts[item.split] += 1
            if item.id in lines:
                message = f"the id `{item.id}` stands on line {lines[item.id]} as well"
                yield Finding(path=path, line=number, rule="evalset/id", message=message)
            lines.setdefault(item.id, number)
    for split, planned in (header.splits if header else {}).items():
        if counts[split] != planned:
            message = (
                f"split `{split}` has {counted(counts[split], 'item')}, the header says {planned}"
            )
            yield Finding(path=path, rule="evalset/count", message=message)


def _bad_line(line: bytes, number: int, path: str, exc: Exception) -> Iterator[Finding]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        yield Finding(
            path=path, line=number, rule="evalset/item", message=f"no JSON: {exc}",
            fix="one item a line, written by a JSON writer",
        )  # fmt: skip
        return
    for finding in read_value(value, Item, path, "evalset/item", "")[1]:
        yield msgspec.structs.replace(finding, line=number)


def _catalogue(folder: Path, path: str) -> Iterator[Finding]:
    try:
        read_catalogue(folder)
    except BadFile as exc:
        yield of_error(exc, path, "catalogue/file")


def _gates(root: Path, config: ProjectConfig) -> Iterator[Finding]:
    file = root / config.gates
    if not file.is_file():
        yield Finding(
            path=config.gates, rule="gates/missing", level="warning",
            message="no gate file: nothing can be promoted", fix="`harness init` writes one",
        )  # fmt: skip
        return
    gates, findings = _file(file, GatesFile, config.gates, "gates/file")
    yield from findings
    names = Counter(gate.name for gate in gates.gates) if gates else Counter()
    for name in [n for n, times in names.items() if times > 1]:
        message = f"two gates are named `{name}`"
        yield Finding(path=config.gates, rule="gates/name", message=message, fix="rename one")
    for gate in gates.gates if gates else ():
        header = root / config.evalsets / (gate.evalset or "") / "evalset.yaml"
        if gate.evalset and not header.is_file():
            message = f"gate `{gate.name}` measures on `{gate.evalset}`, which is no evalset"
            fix = "`harness evalset import ifeval WHERE`" if gate.evalset == "ifeval" else ""
            yield Finding(path=config.gates, rule="gates/evalset", message=message, fix=fix)


def _manifests(root: Path, config: ProjectConfig) -> Iterator[Finding]:
    folder = root / config.manifests
    kinds: tuple[tuple[str, Any], ...] = (("*.json", Manifest), ("channels/*.json", Channel))
    for pattern, kind in kinds:
        for file in sorted(folder.glob(pattern)):
            path = f"{config.manifests}/{file.relative_to(folder).as_posix()}"
            yield from _file(file, kind, path, "manifest/file")[1]


def _file(file: Path, kind: type[T], path: str, rule: str) -> tuple[T | None, list[Finding]]:
    return read_record(file.read_bytes(), kind, path, rule)
