"""Checkpoints by reference, the packaged model among them."""

from pathlib import Path

from harness_cli.store.checkpoints import find_checkpoint, is_packaged
from harness_cli.store.packaged import register_packaged


def find_model(root: Path, reference: str) -> Path:
    """The folder of a checkpoint as `find_checkpoint` finds it; `smollm2` is registered first where
    it is not. Raises `MissingExtra` where its package is not installed."""
    if is_packaged(root, reference):
        from harness_cli.models.local_model import packaged_checkpoint

        register_packaged(root, packaged_checkpoint())
    return find_checkpoint(root, reference)
