"""SSH signatures by `ssh-keygen -Y`: made with a person's key, checked without network or key.

What ssh-keygen prints decides nothing: it says `Good "…" signature` for keys that nobody listed
(the same words as for listed ones). Its exit status and the principal do.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import BadFile, HarnessError, UsageError

MANIFEST, GIT, APPROVAL = "harness-manifest", "git", "harness-approval"
"""Namespaces: a signature made in one proves nothing in another."""
ARMOUR = b"-----BEGIN SSH SIGNATURE-----"
LIMIT_S = 60.0
_DAY = re.compile(r"\d{8}(\d{4}(\d{2})?)?Z?")


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom a verifier believes: a file of allowed signers, and of revoked keys."""

    allowed: Path | None
    """In the format of ssh-keygen(1), ALLOWED SIGNERS; None where there is no such file."""
    revoked: Path | None = None
    """A key revocation list, or public keys line by line."""
    at: str | None = None
    """`YYYYMMDD`: check validity as of this day instead of today."""
    required: bool = False
    """The caller named the file, so an unsigned release does not hold."""

    def __post_init__(self) -> None:
        if self.at is not None and not _DAY.fullmatch(self.at):
            raise UsageError(f"`{self.at}` is no day", hint="write it as YYYYMMDD")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a signature proves: whose it is, or why it proves nothing."""

    principal: str | None
    problem: str = ""
    key: str = ""
    """Fingerprint of the key, where the signature is good."""

    @property
    def good(self) -> bool:
        """Some allowed signer made it, for this namespace, over exactly these bytes."""
        return self.principal is not None


def sign(data: bytes, key: Path, namespace: str) -> bytes:
    """The armoured signature of `data`. `key` is a private key, or a public one of an agent.

    Raises `UsageError` where there is no such key and `HarnessError` where it does not sign.
    """
    if not key.is_file():
        raise UsageError(f"no signing key `{key}`", hint="ssh-keygen -t ed25519 -f NAME makes one")
    with scratch(m=data) as folder:
        done = run(["-Y", "sign", "-f", str(key.absolute()), "-n", namespace, str(folder / "m")])
        made = folder / "m.sig"
        if done.returncode != 0 or not made.is_file():
            raise HarnessError(
                f"`{key.name}` does not sign: {last_line(done)}",
                hint="a private key that only you can read, or a public one that ssh-agent holds",
            )
        return made.read_bytes()


def check(data: bytes, signature: bytes, namespace: str, trust: Trust) -> Checked:
    """Who signed `data` in `namespace`, as far as `trust` knows them."""
    problem = unusable(signature, trust)
    if problem:
        return Checked(None, problem)
    with scratch(sig=signature, allowed=listed(trust)) as folder:
        sig, allowed = str(folder / "sig"), str(folder / "allowed")
        at = ["-O", f"verify-time={trust.at}"] if trust.at else []
        found = run(["-Y", "find-principals", "-s", sig, "-f", allowed, *at])
        told = found.stdout.decode("utf-8", "replace") if found.returncode == 0 else ""
        problem = f"it was made by {maker(signature)}, which is not allowed to sign (now)"
        for name in told.replace(",", " ").split():
            revoked = ["-r", str(trust.revoked)] if trust.revoked else []
            args = ["-Y", "verify", "-f", allowed, "-I", name, "-n", namespace, "-s", sig, *at]
            done = run([*args, *revoked], data)
            if done.returncode == 0:
                return Checked(name, key=fingerprint(done))
            # It does not say so when a key is revoked: without the list the signature is good.
            if revoked and run(args, data).returncode == 0:
                problem = "its key is revoked, or the list of revoked keys cannot be read"
            else:
                problem = refused(done, namespace)
        return Checked(None, problem)


def unusable(signature: bytes, trust: Trust) -> str:
    """What keeps a signature from being checked at all; empty where nothing does."""
    if not signature.strip().startswith(ARMOUR):
        return "it is no SSH signature"
    if trust.allowed is None or not trust.allowed.is_file():
        return "nobody is allowed to sign: there is no file of allowed signers"
    if not listed(trust).strip():
        return f"nobody is allowed to sign: `{trust.allowed.name}` names nobody"
    if trust.revoked is not None and not trust.revoked.is_file():
        return f"no revocation list `{trust.revoked}`"
    return ""


def listed(trust: Trust) -> bytes:
    """The lines of the allowed signers that name a namespace; the others would allow any.

    A key that is allowed without `namespaces=` could have its signature of another kind of file
    replayed here, so such a line allows nothing.
    """
    if trust.allowed is None:
        return b""
    kept = [line for line in trust.allowed.read_bytes().splitlines() if names_namespace(line)]
    return b"".join(line + b"\n" for line in kept)


def names_namespace(line: bytes) -> bool:
    """Whether a line of allowed signers is limited to namespaces."""
    found = re.match(rb'\s*(?!#)("[^"]*"|\S+)\s+(\S*?)namespaces="[^"]+"', line, re.IGNORECASE)
    return found is not None


def open_lines(allowed: Path) -> list[int]:
    """Numbers of the lines that allow a key without saying for what."""
    return [
        number
        for number, line in enumerate(allowed.read_bytes().splitlines(), 1)
        if line.strip() and not line.strip().startswith(b"#") and not names_namespace(line)
    ]


def principals(allowed: Path) -> set[str]:
    """Everybody that a file of allowed signers names."""
    if not allowed.is_file():
        return set()
    found: set[str] = set()
    for line in allowed.read_text("utf-8", "replace").splitlines():
        first = line.strip().split(maxsplit=1)
        if first and not first[0].startswith("#"):
            found.update(first[0].strip('"').split(","))
    return found


def refused(done: "subprocess.CompletedProcess[bytes]", namespace: str) -> str:
    """ssh-keygen's reason in words."""
    said = (done.stderr + done.stdout).decode("utf-8", "replace").lower()
    reasons = (
        ("namespace does not match", f"it was made for another kind of file than `{namespace}`"),
        ("not permitted for use in", f"its key may not sign for `{namespace}`"),
        ("expired", "its key is no longer valid"),
        ("not yet valid", "its key is not valid yet"),
        ("incorrect signature", "the signed bytes were changed"),
        ("invalid format", "it is damaged"),
    )
    words = next((told for found, told in reasons if found in said), None)
    return words or f"ssh-keygen refuses it: {last_line(done)}"


def maker(signature: bytes) -> str:
    """The fingerprint of the key that a signature says it is of; proves nothing."""
    body = signature.strip().removeprefix(ARMOUR).partition(b"-----END")[0]
    try:
        blob = base64.b64decode(body)
        size = int.from_bytes(blob[10:14], "big")
        key = blob[14 : 14 + size]
    except ValueError:
        return "an unknown key"
    made = base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    return f"the key SHA256:{made}"


def fingerprint(done: "subprocess.CompletedProcess[bytes]") -> str:
    """The key that ssh-keygen names, `SHA256:…`."""
    found = re.search(rb"key (SHA256:\S+)", done.stdout + done.stderr)
    return found[1].decode() if found else ""


@contextmanager
def scratch(**files: bytes) -> Iterator[Path]:
    """A folder of one's own with some files; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="harness-ssh-") as made:
        for name, data in files.items():
            (Path(made) / name).write_bytes(data)
        yield Path(made)


def run(args: Sequence[str], data: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """One `ssh-keygen`, found on PATH alone: a repository's settings cannot name another."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise HarnessError("there is no ssh-keygen", hint="install OpenSSH 8.9 or newer")
    env = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            [program, *args], input=data, capture_output=True, env=env, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise HarnessError(f"ssh-keygen did not end within {LIMIT_S:g} s") from exc


def last_line(done: "subprocess.CompletedProcess[bytes]") -> str:
    """What it said last."""
    said = (done.stderr + done.stdout).decode("utf-8", "replace").strip().splitlines()
    return said[-1] if said else f"exit {done.returncode}"


def key_of(text: str | None) -> Path | None:
    """A key that was named by option or environment, `~` and all."""
    return Path(text).expanduser() if text else None


def read_signature(path: Path) -> bytes:
    """A signature file; one of more than 64 KiB is none."""
    data = path.read_bytes()
    if len(data) > 1 << 16:
        raise BadFile(f"`{path.name}` is too large for a signature")
    return data
