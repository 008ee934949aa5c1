"""Weights of a checkpoint folder as they lie on disk: safetensors headers and values, no torch.

A safetensors file is an 8-byte little-endian length, that many bytes of JSON (name → dtype, shape,
byte range), and the data. A folder holds one file, or several and `model.safetensors.index.json`.
The header is all that most questions need: 70 GB of weights are asked in milliseconds.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from harness_cli.errors import BadFile

INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"
CONFIG: Final = "config.json"
LONGEST_HEADER: Final = 100_000_000
"""Bytes; the bound of the safetensors library itself."""
PIECE: Final = 1 << 24

SIZES: Final = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
"""Bytes of one element; types below a byte (F4, F6) are known by their range alone."""
FLOATS: Final = {"F16": np.float16, "F32": np.float32, "F64": np.float64}


class Stored(Protocol):
    """A tensor whose bytes can be had, on disk or in memory."""

    @property
    def dtype(self) -> str:
        """As safetensors spells it."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Its axes."""
        ...

    @property
    def size(self) -> int:
        """Its bytes."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Its data, little-endian."""
        ...


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as a header describes it. `start` and `end` are bytes of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    start: int
    end: int

    @property
    def count(self) -> int:
        """Its elements."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.end - self.start

    def pieces(self) -> Iterator[bytes]:
        """Its data, at most 16 MiB at a time."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            left = self.size
            while left:
                data = file.read(min(PIECE, left))
                if not data:
                    raise BadFile(f"`{self.path}` ends within `{self.name}`", hint="copy it anew")
                left -= len(data)
                yield data

    def data(self) -> bytes:
        """Its data, whole."""
        return b"".join(self.pieces())

    def values(self) -> NDArray[np.float32]:
        """Its values as float32; raises `BadFile` for types that are no plain numbers."""
        return as_floats(self.data(), self.dtype, self.name).reshape(self.shape)

    def floats(self) -> Iterator[NDArray[np.float32]]:
        """Its values flat, a piece at a time: a look at every value costs 64 MiB at most."""
        return (as_floats(piece, self.dtype, self.name) for piece in self.pieces())


@dataclass(frozen=True, slots=True)
class Weights:
    """What a folder or a file holds, by name; `index` is the folder's index where it has one."""

    place: Path
    tensors: Mapping[str, Tensor]
    files: tuple[Path, ...]
    index: Mapping[str, str] | None = None
    """Name → file, as the index says it; None without one."""
    total_size: int | None = None
    """`metadata.total_size` of the index."""
    metadata: Mapping[str, str] | None = None
    """`__metadata__` of a single file."""


def read_weights(place: Path) -> Weights:
    """The headers of a checkpoint folder, or of one `.safetensors` file.

    With an index, the files it names are read; tensors that a file holds and the index does not
    name are left out, as servers leave them out (`unlisted` finds them). Raises `BadFile`.
    """
    if place.is_file():
        tensors, metadata = read_header(place)
        return Weights(place, tensors, (place,), metadata=metadata)
    if not place.is_dir():
        raise BadFile(f"no checkpoint at `{place}`", hint="a folder, or one .safetensors file")
    if (place / INDEX).is_file():
        return _indexed(place)
    single = place / SINGLE
    files = (single,) if single.is_file() else tuple(sorted(place.glob("*.safetensors")))
    if not files:
        raise BadFile(
            f"no weights in `{place}`", hint=f"expected {SINGLE} or {INDEX} with its files"
        )
    read = [read_header(path) for path in files]
    return Weights(
        place,
        {name: tensor for found, _ in read for name, tensor in found.items()},
        files,
        metadata=read[0][1] if len(files) == 1 else None,
    )


def unlisted(weights: Weights) -> dict[str, Tensor]:
    """Tensors in the folder's files that its index does not name, or names in another file.

    A server reads whole files: a second copy may win over the one that the index means.
    """
    if weights.index is None:
        return {}
    lost: dict[str, Tensor] = {}
    for path in sorted(weights.place.glob("*.safetensors")):
        found, _ = read_header(path)
        lost |= {name: t for name, t in found.items() if weights.index.get(name) != path.name}
    return lost


def read_header(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of one file and its `__metadata__`; raises `BadFile` for a file that is broken.

    Byte ranges must lie within the file and, where the type has whole bytes, fit the shape.
    """
    try:
        whole = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if whole < 8 or length > min(LONGEST_HEADER, whole - 8):
                raise BadFile(
                    f"`{path}` is no safetensors file, or is cut off",
                    hint="download or save it anew",
                )
            told = json.loads(file.read(length))
    except OSError as exc:
        raise BadFile(f"cannot read `{path}`: {exc.strerror}") from exc
    except ValueError as exc:
        raise BadFile(f"the header of `{path}` is no JSON", hint="save it anew") from exc
    if not isinstance(told, dict):
        raise BadFile(f"the header of `{path}` is no JSON object", hint="save it anew")
    metadata = told.pop("__metadata__", None) or {}
    start = 8 + length
    tensors = {name: _tensor(path, name, told[name], start, whole) for name in told}
    return tensors, {str(k): str(v) for k, v in dict(metadata).items()}


def _tensor(path: Path, name: str, told: Any, start: int, whole: int) -> Tensor:
    try:
        dtype, shape = str(told["dtype"]), tuple(int(n) for n in told["shape"])
        begin, end = (int(n) for n in told["data_offsets"])
    except (KeyError, TypeError, ValueError) as exc:
        raise BadFile(f"`{name}` in `{path}` has no dtype, shape and data_offsets") from exc
    size = SIZES.get(dtype)
    fits = size is None or end - begin == size * math.prod(shape)
    if not (0 <= begin <= end and start + end <= whole and fits and all(n >= 0 for n in shape)):
        raise BadFile(
            f"`{name}` in `{path}` does not fit its bytes, or the file is cut off",
            hint="copy or save it anew",
        )
    return Tensor(name, dtype, shape, path, start + begin, start + end)


def _indexed(place: Path) -> Weights:
    try:
        told = json.loads((place / INDEX).read_bytes())
        listed = {str(k): str(v) for k, v in dict(told["weight_map"]).items()}
        total = (told.get("metadata") or {}).get("total_size")
    except (ValueError, KeyError, TypeError) as exc:
        raise BadFile(f"`{place / INDEX}` has no `weight_map`", hint="save the model anew") from exc
    tensors: dict[str, Tensor] = {}
    names = sorted(set(listed.values()))
    for name in names:
        # A name that leaves the folder is no name of a shard.
        if Path(name).name != name or not (place / name).is_file():
            raise BadFile(f"`{place / INDEX}` names `{name}`, which is not there")
        found, _ = read_header(place / name)
        tensors |= {k: t for k, t in found.items() if listed.get(k) == name}
    size = total if isinstance(total, int) else None
    return Weights(place, tensors, tuple(place / n for n in names), listed, size)


def as_floats(data: bytes, dtype: str, name: str = "tensor") -> NDArray[np.float32]:
    """Little-endian bytes as float32, flat. BF16 is the upper half of a float32."""
    if dtype == "BF16":
        half = np.frombuffer(data, dtype="<u2").astype(np.uint32)
        return (half << 16).view(np.float32)
    kind = FLOATS.get(dtype)
    if kind is None:
        raise BadFile(f"`{name}` is {dtype}: its values cannot be read as plain numbers")
    return np.frombuffer(data, dtype=kind).astype(np.float32)


def as_bfloat16(values: NDArray[np.float32]) -> bytes:
    """Float32 rounded to the nearest BF16, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype="<f4").view(np.uint32)
    # 64 bits: the largest patterns must not wrap when rounded up.
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, 0x7FC0, rounded).astype("<u2").tobytes()


def config_of(place: Path) -> dict[str, Any]:
    """`config.json` of a checkpoint folder; raises `BadFile`."""
    path = place / CONFIG
    try:
        told = json.loads(path.read_bytes())
    except FileNotFoundError as exc:
        raise BadFile(f"`{place}` has no {CONFIG}", hint="a checkpoint folder has one") from exc
    except ValueError as exc:
        raise BadFile(f"`{path}` is no JSON: {exc}") from exc
    if not isinstance(told, dict):
        raise BadFile(f"`{path}` is no JSON object")
    return told


def digest_of(tensors: Mapping[str, Stored]) -> str:
    """One digest of names, types, shapes and values, whatever files they lie in.

    SHA-256 over the sorted tensors' own digests: the same weights in one file or in forty have
    the same digest, and no value can change without it.
    """
    whole = hashlib.sha256()
    for name in sorted(tensors):
        tensor, one = tensors[name], hashlib.sha256()
        for piece in tensor.pieces():
            one.update(piece)
        line = [name, tensor.dtype, list(tensor.shape), one.hexdigest()]
        whole.update(json.dumps(line).encode() + b"\n")
    return whole.hexdigest()
