"""Safetensors written a tensor at a time, whole or not at all, without torch."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness_cli.errors import BadFile
from harness_cli.models.weights import SIZES, Tensor, as_bfloat16
from harness_cli.records.canonical import atomic_file

ALIGN = 8
"""Data starts at a multiple of this, as the safetensors library writes it."""


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor that is in memory."""

    dtype: str
    shape: tuple[int, ...]
    bytes_: bytes

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.bytes_)

    def pieces(self) -> Iterator[bytes]:
        """Its data."""
        yield self.bytes_


Written = Tensor | Made


def made(values: NDArray[np.float32], dtype: str = "BF16") -> Made:
    """Values as a tensor of type BF16, F16 or F32."""
    if dtype == "BF16":
        data = as_bfloat16(values)
    elif dtype in ("F16", "F32"):
        data = np.ascontiguousarray(values, dtype="<f2" if dtype == "F16" else "<f4").tobytes()
    else:
        raise BadFile(f"`{dtype}` is not written here", hint="BF16, F16 or F32")
    return Made(dtype, tuple(values.shape), data)


def write_safetensors(
    path: Path, tensors: Mapping[str, Written], metadata: Mapping[str, str] | None = None
) -> int:
    """Write a file beside `path` and rename it onto it; the bytes of tensors written.

    `path` may be the very file that the tensors are read from. Wide types come first, so that each
    tensor is aligned to its type; names are sorted within one.
    """
    order = sorted(tensors, key=lambda n: (-SIZES.get(tensors[n].dtype, 1), n))
    header = _header(order, tensors, metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in order:
            for piece in tensors[name].pieces():
                file.write(piece)
    return sum(tensors[n].size for n in order)


def _header(
    order: Sequence[str], tensors: Mapping[str, Written], metadata: Mapping[str, str] | None
) -> bytes:
    told: dict[str, object] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    at = 0
    for name in order:
        tensor = tensors[name]
        told[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.size],
        }
        at += tensor.size
    text = json.dumps(told, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % ALIGN)


def as_bf16(tensor: Tensor) -> Written:
    """A float32 tensor as BF16; others as they are."""
    return made(tensor.values()) if tensor.dtype == "F32" else tensor


def renamed(tensor: Written, name: str) -> Written:
    """The same bytes under another name."""
    return replace(tensor, name=name) if isinstance(tensor, Tensor) else tensor
