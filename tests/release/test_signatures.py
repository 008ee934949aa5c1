"""SSH signatures of files and tags: each way in which one can look good and prove nothing."""

import subprocess
from pathlib import Path

import pytest
from released import FOR_ALL, allow, git, make_key, public

from harness_cli.errors import RepoError, UsageError
from harness_cli.release.ssh import APPROVAL, GIT, MANIFEST, Trust, check, sign
from harness_cli.release.tags import make_tag, read_tag, tag_problem, tag_signer
from harness_cli.store.repo import Repo

DATA = b'{"a manifest": 1}\n'


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("rel", "evil"):
        make_key(folder, name)
    return folder


def trust(folder: Path, text: str, **more) -> Trust:
    path = folder / "allowed"
    path.write_text(text)
    return Trust(allowed=path, **more)


def signed(keys: Path, name: str = "rel", namespace: str = MANIFEST) -> bytes:
    return sign(DATA, keys / name, namespace)


def test_an_allowed_signer_is_named_with_the_key(keys, tmp_path):
    found = check(DATA, signed(keys), MANIFEST, trust(tmp_path, allow(keys / "rel", "rel@x")))
    assert (found.principal, found.problem) == ("rel@x", "")
    assert found.key.startswith("SHA256:")


def test_a_key_nobody_listed_proves_nothing_though_ssh_keygen_calls_it_good(keys, tmp_path):
    signature = tmp_path / "s"
    signature.write_bytes(signed(keys, "evil"))
    words = ["ssh-keygen", "-Y", "check-novalidate", "-n", MANIFEST, "-s", str(signature)]
    told = subprocess.run(words, input=DATA, capture_output=True)
    assert told.returncode == 0
    assert b"Good" in told.stdout
    found = check(DATA, signature.read_bytes(), MANIFEST, trust(tmp_path, allow(keys / "rel", "r")))
    assert not found.good
    assert "not allowed to sign" in found.problem
    assert found.problem.split("SHA256:")[1][:20] in told.stdout.decode()


@pytest.mark.parametrize("other", [GIT, APPROVAL, "file"])
def test_a_signature_of_another_namespace_is_refused(keys, tmp_path, other):
    found = check(
        DATA, signed(keys, namespace=other), MANIFEST, trust(tmp_path, allow(keys / "rel", "r"))
    )
    assert "another kind of file" in found.problem


def test_a_key_that_may_not_sign_manifests_is_refused(keys, tmp_path):
    limited = trust(tmp_path, allow(keys / "rel", "r", 'namespaces="git"'))
    assert "may not sign for" in check(DATA, signed(keys), MANIFEST, limited).problem


def test_a_line_without_namespaces_allows_nothing(keys, tmp_path):
    anything = trust(tmp_path, f"rel@x {public(keys / 'rel')}\n")
    assert not check(DATA, signed(keys), MANIFEST, anything).good
    assert "names nobody" in check(DATA, signed(keys), MANIFEST, anything).problem


def test_a_changed_file_is_refused(keys, tmp_path):
    found = check(DATA + b" ", signed(keys), MANIFEST, trust(tmp_path, allow(keys / "rel", "r")))
    assert found.problem == "the signed bytes were changed"


def test_a_key_past_its_day_is_refused_and_holds_as_of_an_earlier_day(keys, tmp_path):
    line = allow(keys / "rel", "r", f'valid-before="20200101",namespaces="{FOR_ALL}"')
    assert not check(DATA, signed(keys), MANIFEST, trust(tmp_path, line)).good
    assert check(DATA, signed(keys), MANIFEST, trust(tmp_path, line, at="20190101")).good
    assert not check(DATA, signed(keys), MANIFEST, trust(tmp_path, line, at="20210101")).good


@pytest.mark.parametrize("form", ["krl", "keys"])
def test_a_revoked_key_is_refused(keys, tmp_path, form):
    revoked = Path(f"{keys / 'rel'}.pub")
    if form == "krl":
        subprocess.run(
            ["ssh-keygen", "-q", "-k", "-f", str(tmp_path / "krl"), str(revoked)], check=True
        )
        revoked = tmp_path / "krl"
    line = allow(keys / "rel", "r")
    found = check(DATA, signed(keys), MANIFEST, trust(tmp_path, line, revoked=revoked))
    assert "revoked" in found.problem
    other = Path(f"{keys / 'evil'}.pub")
    assert check(DATA, signed(keys), MANIFEST, trust(tmp_path, line, revoked=other)).good


def test_a_revocation_list_that_is_gone_refuses_everything(keys, tmp_path):
    gone = trust(tmp_path, allow(keys / "rel", "r"), revoked=tmp_path / "gone")
    assert "no revocation list" in check(DATA, signed(keys), MANIFEST, gone).problem


@pytest.mark.parametrize("text", ["", "# nobody yet\n", None])
def test_without_allowed_signers_nothing_is_proven(keys, tmp_path, text):
    empty = Trust(allowed=None) if text is None else trust(tmp_path, text)
    assert "nobody is allowed to sign" in check(DATA, signed(keys), MANIFEST, empty).problem


@pytest.mark.parametrize(
    "signature", [b"", b"-----BEGIN PGP SIGNATURE-----\n\nx\n", b"Good signature for rel@x"]
)
def test_what_is_no_ssh_signature_is_refused(keys, tmp_path, signature):
    known = trust(tmp_path, allow(keys / "rel", "rel@x"))
    assert check(DATA, signature, MANIFEST, known).problem == "it is no SSH signature"


def test_a_damaged_signature_is_refused(keys, tmp_path):
    made = bytearray(signed(keys))
    made[200] ^= 1
    assert not check(DATA, bytes(made), MANIFEST, trust(tmp_path, allow(keys / "rel", "r"))).good


def test_a_key_that_is_not_there_is_a_wrong_option(tmp_path):
    with pytest.raises(UsageError, match="no signing key"):
        sign(DATA, tmp_path / "none", MANIFEST)


@pytest.fixture
def repo(tmp_path) -> Repo:
    git(tmp_path, "init", "-q", "repo")
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "first")
    return Repo.open(tmp_path / "repo")


def tag(repo: Repo, key: Path | None, name: str = "m-1") -> str:
    return make_tag(repo, name, str(repo.head()), f"release {name}", key)


def test_git_itself_takes_a_signed_release_tag(repo, keys, tmp_path):
    tag(repo, keys / "rel")
    allowed = trust(tmp_path, allow(keys / "rel", "rel@x"))
    found = read_tag(repo, "m-1")
    assert tag_problem(found, "m-1") == ""
    assert tag_signer(found, allowed) == ("rel@x", "")
    setting = f"gpg.ssh.allowedSignersFile={allowed.allowed}"
    git(repo.root, "-c", "gpg.format=ssh", "-c", setting, "verify-tag", "release/m-1")


def test_a_tag_that_stands_is_not_moved(repo, keys):
    tag(repo, None)
    git(repo.root, "commit", "-q", "--allow-empty", "-m", "second")
    with pytest.raises(RepoError, match="stands already"):
        tag(repo, None)


def test_a_program_that_the_repository_names_is_not_asked(repo, keys, tmp_path):
    fake = tmp_path / "fake.sh"
    fake.write_text(
        '#!/bin/sh\ncase "$2" in find-principals) echo rel@x;; '
        "*) cat >/dev/null; "
        "echo 'Good \"git\" signature for rel@x with ED25519 key SHA256:x';; esac\nexit 0\n"
    )
    fake.chmod(0o755)
    tag(repo, keys / "evil")
    git(repo.root, "config", "gpg.format", "ssh")
    git(repo.root, "config", "gpg.ssh.program", str(fake))
    allowed = trust(tmp_path, allow(keys / "rel", "rel@x"))
    git(repo.root, "config", "gpg.ssh.allowedSignersFile", str(allowed.allowed))
    git(repo.root, "verify-tag", "release/m-1")  # git believes it
    principal, problem = tag_signer(read_tag(repo, "m-1"), allowed)
    assert principal is None
    assert "not allowed to sign" in problem


def test_a_pgp_armoured_tag_is_not_given_to_the_repositorys_program(repo, keys, tmp_path):
    fake = tmp_path / "gpg.sh"
    fake.write_text(
        "#!/bin/sh\ncat >/dev/null; echo '[GNUPG:] NEWSIG'\n"
        "echo '[GNUPG:] GOODSIG 0123456789ABCDEF rel@x'\n"
        "echo '[GNUPG:] TRUST_ULTIMATE 0 pgp'\nexit 0\n"
    )
    fake.chmod(0o755)
    head = f"object {repo.head()}\ntype commit\ntag release/m-1\ntagger E <e@x> 1 +0000\n\nm\n"
    armour = "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n"
    made = repo.run("hash-object", "-t", "tag", "-w", "--stdin", data=(head + armour).encode())
    git(repo.root, "update-ref", "refs/tags/release/m-1", made.decode().strip())
    git(repo.root, "config", "gpg.program", str(fake))
    git(repo.root, "verify-tag", "release/m-1")  # git believes it
    assert "none of SSH" in tag_problem(read_tag(repo, "m-1"), "m-1")


def test_a_ref_renamed_to_another_signed_tag_is_another_release(repo, keys, tmp_path):
    tag(repo, keys / "rel", "m-1")
    git(
        repo.root, "update-ref", "refs/tags/release/m-9", git(repo.root, "rev-parse", "release/m-1")
    )
    found = read_tag(repo, "m-9")
    assert tag_signer(found, trust(tmp_path, allow(keys / "rel", "rel@x")))[0] == "rel@x"
    assert "another release" in tag_problem(found, "m-9")


def test_a_lightweight_tag_vouches_for_nothing(repo):
    git(repo.root, "tag", "release/m-1")
    with pytest.raises(RepoError, match="lightweight"):
        read_tag(repo, "m-1")


def test_a_tag_object_with_other_text_under_the_same_signature_is_refused(repo, keys, tmp_path):
    tag(repo, keys / "rel")
    data = repo.run("cat-file", "tag", "release/m-1").replace(b"release m-1", b"release m-2")
    made = repo.run("hash-object", "-t", "tag", "-w", "--stdin", data=data).decode().strip()
    git(repo.root, "update-ref", "refs/tags/release/m-1", made)
    principal, problem = tag_signer(
        read_tag(repo, "m-1"), trust(tmp_path, allow(keys / "rel", "rel@x"))
    )
    assert (principal, problem) == (None, "the signed bytes were changed")


def test_a_replaced_object_is_not_what_was_tagged(repo, keys, tmp_path):
    real = tag(repo, keys / "rel")
    forged = repo.run("cat-file", "tag", real).replace(b"release m-1\n-", b"release m-2\n-")
    other = repo.run("hash-object", "-t", "tag", "-w", "--stdin", data=forged).decode().strip()
    git(repo.root, "replace", real, other)
    assert b"release m-1\n" in read_tag(repo, "m-1").payload
