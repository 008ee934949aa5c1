"""A release's manifest out of the repository, and an envelope of it checked against the release."""

from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.records.canonical import write_atomic
from harness_cli.release.channels import read_manifest
from harness_cli.release.checks import Check
from harness_cli.release.dsse import envelope, read_envelope, signer
from harness_cli.release.reading import parse_manifest
from harness_cli.release.signing import read_signed
from harness_cli.release.ssh import Trust
from harness_cli.store.project import Project

LIMIT = 1 << 26
"""An envelope of more bytes is none of a manifest."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    manifest: str
    file: str
    form: str
    """`DSSE envelope` or `Statement`."""


def write_export(
    project: Project, name: str, path: Path, key: Path | None, *, dsse: bool
) -> Exported:
    """The manifest's bytes in a file, or in an envelope that `key` signs.

    Raises `UsageError` where a key is needed or cannot sign envelopes; nothing is written then.
    """
    read_manifest(project.manifests, name)
    data = read_signed(project, name).data
    if not path.parent.is_dir():
        raise UsageError(f"no folder `{path.parent}` to write `{path.name}` into")
    if dsse and key is None:
        raise UsageError(
            "an envelope needs a signing key",
            hint="--key KEY, or HARNESS_SIGNING_KEY; --plain writes the Statement alone",
        )
    write_atomic(path, envelope(data, key) if dsse and key else data)
    form = "DSSE envelope" if dsse else "Statement"
    return Exported(manifest=name, file=str(path), form=form)


def enveloped(path: Path, name: str | None) -> str:
    """The id of the manifest in an envelope. Raises `BadFile` where it is another one than `name`.

    The id comes from bytes that nobody has checked yet: it only says what to compare with.
    """
    payload, _ = read_envelope(_bytes(path), name=path.name)
    found = parse_manifest(payload, name=path.name).predicate.id
    if name not in (None, found):
        raise BadFile(f"{path.name}: holds the manifest `{found}`, not `{name}`")
    return found


def check_envelope(project: Project, name: str, path: Path, trust: Trust) -> Check:
    """The envelope's payload is the manifest, and an allowed signer's key made its signature."""
    what = "envelope"
    payload, found = read_envelope(_bytes(path), name=path.name)
    if payload != read_signed(project, name).data:
        return Check(what, "wrong", f"it holds other bytes than `{name}.json`")
    who, problem = signer(found, payload, trust)
    return Check(what, "verified", f"signed by {who}") if who else Check(what, "wrong", problem)


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise UsageError(f"no file `{path}`")
    if path.stat().st_size > LIMIT:
        raise BadFile(f"{path.name}: too large for an envelope of a manifest")
    return path.read_bytes()
