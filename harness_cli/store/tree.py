"""Git's names for content, computed without git: blob and tree ids of files held in memory."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

FILE, EXECUTABLE, SYMLINK, GITLINK, FOLDER = "100644", "100755", "120000", "160000", "40000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file as git keeps it: its mode and its bytes.

    A symbolic link's data is its target, a gitlink's (submodule) the hex id of its commit.
    """

    mode: str
    data: bytes


def blob_id(data: bytes, *, object_format: str = "sha1") -> str:
    """The id that `git hash-object` gives to `data`."""
    return _object_id(b"blob", data, object_format)


def tree_id(files: Mapping[str, Entry], *, object_format: str = "sha1") -> str:
    """The id that `git mktree` gives to the folder that holds exactly `files`.

    `object_format` is the repository's (`sha1` or `sha256`). Source: gitformat-objects; entries
    are sorted by name as if a folder's name ended in `/` (git's base_name_compare).
    """
    folders: dict[str, dict[str, Entry]] = {}
    rows: list[tuple[bytes, str, str]] = []
    for path, entry in files.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = entry
        else:
            rows.append((encode_path(head), entry.mode, entry_id(entry, object_format)))
    for name, inside in folders.items():
        rows.append((encode_path(name), FOLDER, tree_id(inside, object_format=object_format)))
    rows.sort(key=lambda row: row[0] + (b"/" if row[1] == FOLDER else b""))
    body = b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for name, mode, oid in rows
    )
    return _object_id(b"tree", body, object_format)


def entry_id(entry: Entry, object_format: str = "sha1") -> str:
    """The object id an entry points to: its blob, or the commit of a gitlink."""
    if entry.mode == GITLINK:
        return entry.data.decode("ascii")
    return blob_id(entry.data, object_format=object_format)


def encode_path(path: str) -> bytes:
    """A path as git's bytes; names that are not UTF-8 come back as they were."""
    return path.encode("utf-8", "surrogateescape")


def decode_path(path: bytes) -> str:
    """Git's bytes as a path; a byte that is not UTF-8 becomes a lone surrogate."""
    return path.decode("utf-8", "surrogateescape")


def _object_id(kind: bytes, body: bytes, object_format: str) -> str:
    made = hashlib.new(object_format, usedforsecurity=False)
    made.update(kind + b" " + str(len(body)).encode() + b"\0")
    made.update(body)
    return made.hexdigest()
