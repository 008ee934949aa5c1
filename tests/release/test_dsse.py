"""A manifest in a DSSE envelope: securesystemslib verifies it, and so does `manifest verify`."""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from hypothesis import given
from hypothesis import strategies as st
from released import allow, commit_allowed, make_key, measured_project, promoted
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.release.dsse import envelope, header, key_id, pae, read_envelope, signer
from harness_cli.release.ssh import Trust
from harness_cli.store.project import Project


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("rel", "evil"):
        make_key(folder, name)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", str(folder / "locked")]
    subprocess.run(words, check=True, capture_output=True)
    for kind in ("rsa", "ecdsa"):
        words = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(folder / kind)]
        subprocess.run(words, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def released_once(tmp_path_factory, keys, isolated_session) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("dsse") / "shop"
    project = measured_project(root)
    commit_allowed(project, allow(keys / "rel", "rel@x"))
    return root, promoted(project, key=keys / "rel").manifest.predicate.id


@pytest.fixture
def released(released_once, tmp_path) -> tuple[Project, str]:
    root, name = released_once
    return Project.find(shutil.copytree(root, tmp_path / "shop", symlinks=True)), name


def program(root: Path, *args: str, **env: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "harness_cli.main", *args]
    return subprocess.run(
        words, cwd=root, capture_output=True, text=True, env={**os.environ, **env}
    )


def foreign_key(public: Path) -> SSlibKey:
    """The key as securesystemslib has it, with the id that it gives it by itself."""
    return SSlibKey.from_crypto(load_ssh_public_key(public.read_bytes()))


def trusted(keys: Path, folder: Path, text: str = "", **more) -> Trust:
    path = folder / "trusted"
    path.write_text(text or allow(keys / "rel", "rel@x"))
    return Trust(allowed=path, **more)


def test_an_exported_envelope_is_verified_by_securesystemslib(released, keys, tmp_path):
    project, name = released
    out = tmp_path / "release.dsse.json"
    done = program(
        project.root, "manifest", "export", name, "--dsse", "-o", str(out), "--key",
        str(keys / "rel"), "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["form"] == "DSSE envelope"
    theirs = Envelope.from_dict(json.loads(out.read_text()))
    assert theirs.payload == (project.manifests / f"{name}.json").read_bytes()
    assert theirs.pae() == pae(theirs.payload)
    key = foreign_key(keys / "rel.pub")
    assert set(theirs.verify([key], 1)) == {key.keyid}
    with pytest.raises(VerificationError):
        theirs.verify([foreign_key(keys / "evil.pub")], 1)
    theirs.payload += b" "
    with pytest.raises(VerificationError):
        theirs.verify([key], 1)


def test_verify_takes_the_envelope_beside_the_release(released, keys, tmp_path):
    project, name = released
    out = tmp_path / "release.dsse.json"
    out.write_bytes(envelope((project.manifests / f"{name}.json").read_bytes(), keys / "rel"))
    done = program(project.root, "manifest", "verify", "--dsse", str(out), "--why")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "holds: the envelope holds this manifest" in done.stdout
    assert "signed by rel@x" in done.stdout
    out.write_bytes(envelope((project.manifests / f"{name}.json").read_bytes(), keys / "evil"))
    done = program(project.root, "manifest", "verify", name, "--dsse", str(out), "--json")
    assert done.returncode == 1
    checks = {c["what"]: c for c in json.loads(done.stdout)["manifests"][name]}
    assert checks["envelope"]["outcome"] == "wrong"
    assert "none of the allowed signers" in checks["envelope"]["detail"]


def test_an_envelope_of_an_edited_manifest_does_not_hold_whoever_signed_it(
    released, keys, tmp_path
):
    project, name = released
    plain = json.loads((project.manifests / f"{name}.json").read_text())
    plain["predicate"]["policy"]["name"] = "another"
    out = tmp_path / "release.dsse.json"
    out.write_bytes(envelope(json.dumps(plain).encode(), keys / "rel"))
    done = program(project.root, "manifest", "verify", "--dsse", str(out))
    assert done.returncode == 1
    assert f"it holds other bytes than `{name}.json`" in done.stdout


def test_the_statement_alone_is_written_without_a_key(released, tmp_path):
    project, name = released
    out = tmp_path / "statement.json"
    done = program(project.root, "manifest", "export", name, "--plain", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == (project.manifests / f"{name}.json").read_bytes()
    done = program(project.root, "manifest", "export", name, "-o", str(tmp_path / "x"))
    assert done.returncode == 2
    assert "hint: --key KEY" in done.stderr
    assert not (tmp_path / "x").exists()


def test_an_encrypted_key_takes_its_password_from_the_environment(keys, monkeypatch, tmp_path):
    with pytest.raises(UsageError, match="is encrypted") as caught:
        envelope(b"{}", keys / "locked")
    assert "HARNESS_SIGNING_PASSWORD" in caught.value.hint
    monkeypatch.setenv("HARNESS_SIGNING_PASSWORD", "close sesame")
    with pytest.raises(UsageError, match="cannot be read") as caught:
        envelope(b"{}", keys / "locked")
    assert "another one" in caught.value.hint
    monkeypatch.setenv("HARNESS_SIGNING_PASSWORD", "open sesame")
    theirs = Envelope.from_dict(json.loads(envelope(b"{}", keys / "locked")))
    theirs.verify([foreign_key(keys / "locked.pub")], 1)
    Envelope.from_dict(json.loads(envelope(b"{}", keys / "rel"))).verify(
        [foreign_key(keys / "rel.pub")], 1
    )  # a password that an open key does not need is no error


def test_the_password_is_in_nothing_that_is_written(released, keys, tmp_path):
    project, name = released
    out = tmp_path / "release.dsse.json"
    done = program(
        project.root, "manifest", "export", name, "-vv", "-o", str(out), "--key",
        str(keys / "locked"), HARNESS_SIGNING_PASSWORD="open sesame",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "open sesame" not in done.stdout + done.stderr + out.read_text()


def hardware_handle(path: Path) -> Path:
    """A file as `ssh-keygen -t ed25519-sk` writes it, as far as its kind can be read."""

    def text(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    public = text(b"sk-ssh-ed25519@openssh.com") + text(b"\1" * 32) + text(b"ssh:")
    head = b"openssh-key-v1\0" + text(b"none") + text(b"none") + text(b"")
    body = base64.encodebytes(head + (1).to_bytes(4, "big") + text(public) + text(b"\0" * 64))
    begin, end = (f"-----{w} OPENSSH PRIVATE KEY-----\n".encode() for w in ("BEGIN", "END"))
    path.write_bytes(begin + body + end)
    return path


def test_agent_and_hardware_keys_and_other_kinds_are_refused_with_a_hint(keys, tmp_path):
    wrong = {
        keys / "rel.pub": ("its agent gives SSH signatures", "private ed25519 key's own file"),
        hardware_handle(tmp_path / "sk"): ("handle of a hardware key", "harness manifest sign"),
        keys / "rsa": ("key of kind `ssh-rsa`", "-t ed25519"),
        keys / "ecdsa": ("key of kind `ecdsa-sha2-nistp256`", "-t ed25519"),
        tmp_path / "none": ("no signing key", "-t ed25519"),
    }
    (tmp_path / "text").write_text("hello\n")
    wrong[tmp_path / "text"] = ("is no private key of ssh-keygen", "-t ed25519")
    for key, (said, hint) in wrong.items():
        with pytest.raises(UsageError) as caught:
            envelope(b"{}", key)
        assert said in str(caught.value), key
        assert hint in caught.value.hint, key


def test_the_kind_of_an_encrypted_key_is_read_without_its_password(keys):
    cipher, kind = header((keys / "locked").read_bytes(), "locked")
    assert kind == "ssh-ed25519"
    assert cipher != "none"


def test_our_id_of_a_key_is_the_one_that_securesystemslib_makes(keys):
    raw = load_ssh_public_key((keys / "rel.pub").read_bytes()).public_bytes_raw()
    assert key_id(raw) == foreign_key(keys / "rel.pub").keyid


@given(payload=st.binary(max_size=300), kind=st.text(max_size=40))
def test_the_encoding_is_that_of_securesystemslib(payload, kind):
    assert pae(payload, kind) == Envelope(payload, kind, {}).pae()


ANY = b'{"_type": "x"}'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('namespaces="harness-manifest"', ""),
        ('namespaces="git,harness-manifest",valid-before="20990101"', ""),
        ('namespaces="git"', "none of the allowed"),
        ("", "none of the allowed"),
        ('cert-authority,namespaces="harness-manifest"', "none of the allowed"),
        ('namespaces="harness-manifest",valid-before="20200101"', "no longer valid"),
        ('valid-after="20980101",namespaces="harness-manifest"', "not valid yet"),
    ],
)
def test_a_key_counts_as_its_line_says(keys, tmp_path, options, said):
    trust = trusted(keys, tmp_path, allow(keys / "rel", "rel@x", options))
    payload, found = read_envelope(envelope(ANY, keys / "rel"), name="e")
    who, problem = signer(found, payload, trust)
    assert said in problem
    assert (who == "rel@x") is (said == "")


def test_a_key_past_its_day_holds_as_of_an_earlier_one(keys, tmp_path):
    line = allow(keys / "rel", "rel@x", 'namespaces="harness-manifest",valid-before="20200101"')
    payload, found = read_envelope(envelope(ANY, keys / "rel"), name="e")
    assert signer(found, payload, trusted(keys, tmp_path, line, at="20191231"))[0] == "rel@x"
    assert signer(found, payload, trusted(keys, tmp_path, line, at="20200101"))[0] == ""


@pytest.mark.parametrize("form", ["krl", "keys"])
def test_a_revoked_key_does_not_count(keys, tmp_path, form):
    revoked = tmp_path / "revoked"
    if form == "krl":
        words = ["ssh-keygen", "-q", "-k", "-f", str(revoked), str(keys / "rel.pub")]
        subprocess.run(words, check=True, capture_output=True)
    else:
        revoked.write_text((keys / "rel.pub").read_text())
    payload, found = read_envelope(envelope(ANY, keys / "rel"), name="e")
    assert "revoked" in signer(found, payload, trusted(keys, tmp_path, revoked=revoked))[1]
    other = tmp_path / "other"
    other.write_text((keys / "evil.pub").read_text())
    assert signer(found, payload, trusted(keys, tmp_path, revoked=other))[0] == "rel@x"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{}", "payload"),
        (b"no json", "^e"),
        (b'{"payload": "!!", "payloadType": "KIND", "signatures": []}', "base64"),
        (b'{"payload": "", "payloadType": "text/plain", "signatures": []}', "text/plain"),
    ],
)
def test_what_is_no_envelope_of_a_statement_is_refused(data, said):
    data = data.replace(b"KIND", b"application/vnd.in-toto+json")
    with pytest.raises(BadFile, match=said):
        read_envelope(data, name="e")


def test_an_envelope_without_a_signature_proves_nothing(keys, tmp_path):
    bare = json.loads(envelope(ANY, keys / "rel"))
    bare["signatures"] = []
    payload, found = read_envelope(json.dumps(bare).encode(), name="e")
    assert signer(found, payload, trusted(keys, tmp_path))[0] == ""
    bare["signatures"] = [{"sig": "not base64", "keyid": "x"}]
    payload, found = read_envelope(json.dumps(bare).encode(), name="e")
    assert signer(found, payload, trusted(keys, tmp_path))[0] == ""
    with pytest.raises(HarnessError):
        read_envelope(b"\xff" * 40, name="e")
