"""What `git cat-file --batch` prints, every blob held against its own name."""

from collections.abc import Sequence

from harness_cli.errors import RepoError
from harness_cli.store.tree import blob_id

DAMAGED = "git fsck names what is damaged; a fresh clone or `git fetch` brings it whole"


def batch(out: bytes, asked: Sequence[str], object_format: str) -> list[bytes]:
    """The bytes of the blobs that were asked for, in order.

    Raises `RepoError` for one that is missing, and for one whose bytes are not what its id stands
    for: git itself does not look when it reads a blob.
    """
    data, at = list[bytes](), 0
    for name in asked:
        end = out.index(b"\n", at)
        words = out[at:end].split(b" ")
        if len(words) != 3:
            raise RepoError(f"object {name} is missing", hint="git fsck")
        at = end + 1 + int(words[2])
        data.append(out[end + 1 : at])
        at += 1
        own = blob_id(data[-1], object_format=object_format)
        if words[1] == b"blob" and own != words[0].decode():
            raise RepoError(f"object {name} is damaged: it holds other bytes", hint=DAMAGED)
    return data
