"""A manifest as a DSSE envelope, signed with the raw ed25519 key that also signs over SSH.

An SSH signature covers its own frame (`SSHSIG`, namespace, hash), so it cannot be put into an
envelope: the pre-authentication encoding is signed anew. That needs the private key itself. Agents
and hardware tokens give SSH signatures alone and are refused.
Format: the DSSE specification, `envelope.md` and `protocol.md`, version 1.
"""

import base64
import binascii
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.records.canonical import canonical_json, sha256
from harness_cli.records.reader import parse_json
from harness_cli.release.ssh import MANIFEST, Trust, listed, run, scratch

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD = "application/vnd.in-toto+json"
PASSWORD_VARIABLE = "HARNESS_SIGNING_PASSWORD"
KIND = "ssh-ed25519"
_MAGIC = b"openssh-key-v1\0"
_OPTION = re.compile(r'([a-z-]+)(?:="([^"]*)")?(?:,|$)')


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One signature of an envelope."""

    sig: str
    keyid: str = ""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, rename={"payload_type": "payloadType"}):
    """A DSSE envelope: the signed bytes and their signatures, in base64."""

    payload: str
    payload_type: str
    signatures: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A key of the allowed signers that may sign manifests."""

    names: str
    options: dict[str, str]
    blob: bytes
    """The key in SSH's wire format; its last 32 bytes are the raw ed25519 key."""


def pae(payload: bytes, kind: str = PAYLOAD) -> bytes:
    """What is signed: `DSSEv1 LEN(type) type LEN(payload) payload`, lengths in bytes."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def key_id(raw: bytes) -> str:
    """The id that securesystemslib and in-toto give an ed25519 key of 32 bytes by themselves."""
    key = {"keytype": "ed25519", "keyval": {"public": raw.hex()}, "scheme": "ed25519"}
    return sha256(canonical_json(key))


def envelope(payload: bytes, key: Path) -> bytes:
    """The envelope's JSON: `payload` as it is, signed with the private key in the file `key`.

    An encrypted key takes its password from `HARNESS_SIGNING_PASSWORD`. Raises `UsageError` for
    whatever is no ed25519 private key.
    """
    secret = private_key(key)
    raw = secret.public_key().public_bytes_raw()
    made = Signature(sig=_b64(secret.sign(pae(payload))), keyid=key_id(raw))
    whole = Envelope(payload=_b64(payload), payload_type=PAYLOAD, signatures=(made,))
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def private_key(path: Path) -> "Ed25519PrivateKey":
    """The ed25519 key in a file of ssh-keygen's."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    if not path.is_file():
        raise UsageError(f"no signing key `{path}`", hint="ssh-keygen -t ed25519 -f NAME makes one")
    data = path.read_bytes()
    encrypted = refuse_kind(data, path.name)
    password = os.environ.get(PASSWORD_VARIABLE, "").encode() or None
    if encrypted and password is None:
        raise UsageError(
            f"the key `{path.name}` is encrypted",
            hint=f"its password goes into {PASSWORD_VARIABLE}",
        )
    try:
        found = load_ssh_private_key(data, password if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
        hint = f"the password in {PASSWORD_VARIABLE} is another one" if encrypted else ""
        raise UsageError(f"the key `{path.name}` cannot be read: {exc}", hint=hint) from exc
    if not isinstance(found, Ed25519PrivateKey):
        raise UsageError(f"the key `{path.name}` is no ed25519 key", hint="ssh-keygen -t ed25519")
    return found


def refuse_kind(data: bytes, name: str) -> bool:
    """Raise `UsageError` for a key that cannot sign an envelope; says whether it is encrypted."""
    if data.split(b" ", 1)[0].decode("ascii", "replace").startswith(("ssh-", "sk-", "ecdsa-")):
        raise UsageError(
            f"`{name}` is a public key: its agent gives SSH signatures, an envelope needs the key",
            hint="name the private ed25519 key's own file",
        )
    cipher, kind = header(data, name)
    if kind.startswith("sk-"):
        raise UsageError(
            f"`{name}` is the handle of a hardware key: it gives SSH signatures alone",
            hint="harness manifest sign --key signs with it; an envelope takes an ed25519 key",
        )
    if kind != KIND:
        raise UsageError(
            f"`{name}` is a key of kind `{kind}`, an envelope takes ed25519",
            hint="ssh-keygen -t ed25519 -f NAME",
        )
    return cipher != "none"


def header(data: bytes, name: str) -> tuple[str, str]:
    """(cipher, kind) of a private key file, which it tells without a password."""
    found = re.search(
        rb"-----BEGIN OPENSSH PRIVATE KEY-----(.*?)-----END OPENSSH PRIVATE KEY-----", data, re.S
    )
    problem = UsageError(
        f"`{name}` is no private key of ssh-keygen", hint="ssh-keygen -t ed25519 -f NAME makes one"
    )
    try:
        body = base64.b64decode(found[1]) if found else b""
    except binascii.Error:
        raise problem from None
    fields = list(strings(body.removeprefix(_MAGIC), 3))
    at = len(_MAGIC) + sum(4 + len(f) for f in fields) + 4  # a count of keys stands before them
    blob = next(strings(body[at:], 1), b"")
    kind = next(strings(blob, 1), b"")
    if not body.startswith(_MAGIC) or not kind:
        raise problem
    return fields[0].decode("ascii", "replace"), kind.decode("ascii", "replace")


def strings(data: bytes, count: int) -> Iterator[bytes]:
    """The first strings of SSH's wire format; fewer where the bytes end."""
    for _ in range(count):
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size or len(data) < 4:
            return
        yield data[4 : 4 + size]
        data = data[4 + size :]


def read_envelope(data: bytes, *, name: str) -> tuple[bytes, Envelope]:
    """(payload, envelope). Raises `BadFile` for what is no envelope of an in-toto Statement."""
    found = parse_json(data, Envelope, name=name)
    if found.payload_type != PAYLOAD:
        raise BadFile(f"{name}: the payload is `{found.payload_type}`, not `{PAYLOAD}`")
    try:
        return base64.b64decode(found.payload, validate=True), found
    except binascii.Error as exc:
        raise BadFile(f"{name}: the payload is no base64") from exc


def signer(found: Envelope, payload: bytes, trust: Trust) -> tuple[str, str]:
    """(who signed, problem): one of the allowed signers, for manifests, in time, not revoked.

    Key ids are hints that anybody can write; the keys themselves are tried.
    """
    if trust.allowed is None or not trust.allowed.is_file():
        return "", "nobody is allowed to sign: there is no file of allowed signers"
    problem = "none of the allowed signers made it over these bytes"
    for line in manifest_lines(trust):
        if not any(_verifies(line.blob, s, payload) for s in found.signatures):
            continue
        wrong = untimely(line.options, trust.at) or revoked(line.blob, trust)
        if not wrong:
            return line.names, ""
        problem = wrong
    return "", problem


def _verifies(blob: bytes, one: Signature, payload: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        sig = base64.b64decode(one.sig, validate=True)
        Ed25519PublicKey.from_public_bytes(blob[-32:]).verify(sig, pae(payload))
    except (binascii.Error, ValueError, InvalidSignature):
        return False
    return True


def manifest_lines(trust: Trust) -> Iterator[Line]:
    """The ed25519 keys whose line names the namespace of manifests."""
    for text in listed(trust).decode("utf-8", "replace").splitlines():
        found = re.fullmatch(rf'\s*("[^"]*"|\S+)\s+(.*?)\s*{KIND}\s+(\S+).*', text)
        if found is None:
            continue
        options = {key.lower(): value for key, value in _OPTION.findall(found[2])}
        spaces = options.get("namespaces", "").split(",")
        if MANIFEST in spaces and "cert-authority" not in options:
            try:
                blob = base64.b64decode(found[3], validate=True)
            except binascii.Error:
                continue
            if len(blob) == 51:  # two strings: the kind, and 32 bytes
                yield Line(names=found[1].strip('"'), options=options, blob=blob)


def untimely(options: dict[str, str], at: str | None) -> str:
    """Why a key does not count on the asked day; empty where it does."""
    now = at or datetime.now(UTC).strftime("%Y%m%d%H%M%SZ")
    today = _padded(now)
    if options.get("valid-after") and today < _padded(options["valid-after"]):
        return "its key is not valid yet"
    if options.get("valid-before") and today >= _padded(options["valid-before"]):
        return "its key is no longer valid"
    return ""


def _padded(text: str) -> str:
    """`YYYYMMDD[HHMM[SS]]` to the second. Read as UTC: an hour more or less is no matter here."""
    return text.rstrip("Z").ljust(14, "0")


def revoked(blob: bytes, trust: Trust) -> str:
    """Why a key is revoked; empty where it is not. The list is a KRL, or keys line by line."""
    if trust.revoked is None:
        return ""
    if not trust.revoked.is_file():
        return f"no revocation list `{trust.revoked}`"
    data = trust.revoked.read_bytes()
    if not data.startswith(b"SSHKRL"):
        return "its key is revoked" if _b64(blob).encode() in data.split() else ""
    with scratch(key=f"{KIND} {_b64(blob)}\n".encode()) as folder:
        done = run(["-Q", "-f", str(trust.revoked), str(folder / "key")])
    return "" if done.returncode == 0 else "its key is revoked, or the list cannot be read"


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
