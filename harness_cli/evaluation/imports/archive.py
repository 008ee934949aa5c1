"""Members of a zip archive, read as bytes within bounds; nothing is ever unpacked to disk.

Python's zipfile lists the members; those of method 93 (Zstandard, as inspect_ai writes them) are
read here, since Python 3.11 cannot.
"""

import struct
import zipfile
import zlib

import zstandard

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.source import RECORD_BYTES, Source

MOST_MEMBERS = 200_000
STORED, DEFLATED, ZSTANDARD = 0, 8, 93
_LOCAL = struct.Struct("<4s5H3I2H")


class Archive:
    """One archive. Raises `BadFile` for what is none, and for members without measure."""

    def __init__(self, source: Source) -> None:
        self._source = source
        try:
            with zipfile.ZipFile(source.path) as archive:
                infos = archive.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as exc:
            raise BadFile(
                f"{source.name}: no whole zip archive: {exc}", hint="copy the file again"
            ) from exc
        if len(infos) > MOST_MEMBERS:
            raise BadFile(f"{source.name}: {len(infos):,} members, at most {MOST_MEMBERS:,}")
        self._members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            if info.filename in self._members:
                raise BadFile(f"{source.name}: the member `{info.filename[:80]}` stands twice")
            self._members[info.filename] = info

    @property
    def names(self) -> list[str]:
        """The members in order. Names are looked up, never used as paths."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """The bytes of one member."""
        info = self._members.get(name)
        where = f"{self._source.name}: {name[:80]}"
        if info is None:
            raise BadFile(f"{self._source.name}: there is no member `{name[:80]}`")
        if info.flag_bits & 0x1:
            raise BadFile(f"{where}: encrypted", hint="decrypt the archive first")
        if max(info.file_size, info.compress_size) > RECORD_BYTES:
            raise BadFile(f"{where}: {info.file_size:,} bytes, more than {RECORD_BYTES:,}")
        data = self._unpacked(self._packed(info, where), info, where)
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise BadFile(f"{where}: damaged: its size or sum is another than the archive says")
        return data

    def _packed(self, info: zipfile.ZipInfo, where: str) -> bytes:
        """The bytes as they lie in the file, behind the member's own header."""
        at = info.header_offset
        head = bytes(self._source.data[at : at + _LOCAL.size])
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise BadFile(f"{where}: the archive is damaged")
        *_, name_length, extra_length = _LOCAL.unpack(head)
        start = at + _LOCAL.size + name_length + extra_length
        return bytes(self._source.data[start : start + info.compress_size])

    def _unpacked(self, packed: bytes, info: zipfile.ZipInfo, where: str) -> bytes:
        """Never more than the member says it has: a bomb says little and holds much."""
        most = info.file_size
        try:
            if info.compress_type == STORED:
                return packed
            if info.compress_type == DEFLATED:
                return zlib.decompressobj(-15).decompress(packed, most + 1)
            if info.compress_type == ZSTANDARD:
                reader = zstandard.ZstdDecompressor().stream_reader(packed)
                return bytes(reader.read(most + 1))
        except (zlib.error, zstandard.ZstdError) as exc:
            raise BadFile(f"{where}: damaged: {exc}") from exc
        raise BadFile(
            f"{where}: packed by method {info.compress_type}",
            hint="`inspect log convert --to json` unpacks it",
        )
