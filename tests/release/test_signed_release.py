"""Releases with signatures, tags, dates and authors: what a verifier sees on a clone."""

import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import msgspec
import pytest
from released import (
    allow,
    chosen,
    commit_allowed,
    edited,
    git,
    make_key,
    measured_project,
    outcomes,
    promoted,
    remeasured,
    wrong,
)

from harness_cli.errors import Stale, UsageError
from harness_cli.records.manifest import Approval
from harness_cli.release.approving import approve
from harness_cli.release.channels import list_manifests, read_channel
from harness_cli.release.clock import now
from harness_cli.release.gather import gather, read_approvals
from harness_cli.release.later import sign_later
from harness_cli.release.people import approval_payload
from harness_cli.release.promote import judge_candidate, record_approval
from harness_cli.release.signing import trust_of
from harness_cli.release.ssh import APPROVAL, sign
from harness_cli.store.project import Project


@pytest.fixture(scope="module")
def measured(tmp_path_factory, isolated_session) -> Path:
    root = tmp_path_factory.mktemp("signed") / "shop"
    measured_project(root)
    return root


@pytest.fixture
def project(measured, tmp_path) -> Project:
    return Project.find(shutil.copytree(measured, tmp_path / "shop", symlinks=True))


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("rel", "ann", "bo", "evil"):
        make_key(folder, name)
    return folder


@pytest.fixture(scope="module")
def signed_once(measured, keys, tmp_path_factory) -> tuple[Path, str]:
    root = Path(shutil.copytree(measured, tmp_path_factory.mktemp("once") / "shop", symlinks=True))
    project = Project.find(root)
    commit_allowed(project, allow(keys / "rel", "rel@x"))
    return root, promoted(project, key=keys / "rel").manifest.predicate.id


@pytest.fixture
def released(signed_once, tmp_path) -> tuple[Project, str]:
    """A signed release."""
    root, name = signed_once
    return Project.find(shutil.copytree(root, tmp_path / "signed", symlinks=True)), name


def program(root: Path, *args: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "harness_cli.main", *args]
    return subprocess.run(words, cwd=root, capture_output=True, text=True)


def test_a_signed_release_verifies_on_a_clone_against_a_file_outside_it(released, keys, tmp_path):
    project, name = released
    assert name.startswith("dev-builtin-")
    assert git(project.root, "status", "--porcelain") == ""
    git(tmp_path, "clone", "-q", str(project.root), "clone")
    own = tmp_path / "own_signers"
    own.write_text(allow(keys / "rel", "rel@x"))
    done = program(
        tmp_path / "clone", "manifest", "verify", name, "--allowed-signers", str(own), "--why"
    )
    assert done.returncode == 0, done.stdout
    assert "an allowed signer vouches for these bytes (rel@x with SHA256:" in done.stdout
    assert "the tag of this release names a commit that holds it (signed by rel@x" in done.stdout
    assert f"allowed signers come from `{own}`" in done.stdout


def test_a_release_signed_by_a_stranger_does_not_hold_for_a_verifier_with_a_file_of_his_own(
    project, keys, tmp_path
):
    commit_allowed(project, allow(keys / "evil", "rel@x"))
    name = promoted(project, key=keys / "evil").manifest.predicate.id
    assert wrong(project, name) == {}  # the repository lists the stranger itself
    own = tmp_path / "own_signers"
    own.write_text(allow(keys / "rel", "rel@x"))
    assert wrong(project, name, trust_of(project, own)).keys() == {"signature", "release tag"}
    done = program(project.root, "manifest", "verify", name, "--why")
    assert "can list themselves" in done.stdout


def test_a_key_that_is_not_allowed_is_refused_before_anything_is_written(project, keys):
    commit_allowed(project, allow(keys / "rel", "rel@x"))
    with pytest.raises(UsageError, match="may not sign here") as caught:
        promoted(project, key=keys / "evil")
    assert "namespaces=" in caught.value.hint
    assert list_manifests(project.manifests) == {}
    assert not list((project.manifests).glob("evidence/*"))


def test_a_manifest_edited_and_hashed_again_without_the_key_does_not_hold(released):
    project, name = released
    path = project.manifests / f"{name}.json"
    made = json.loads(path.read_text())
    made["predicate"]["approvals"][0]["by"] = "Mallory"
    path.write_text(json.dumps(made, indent=2, sort_keys=True))
    git(project.root, "commit", "-qam", "nothing to see")
    found = wrong(project, name)
    assert found["signature"] == "the signed bytes were changed"
    assert "holds another" in found["release tag"]
    assert "edited since" in found["history"]


def test_without_any_key_git_still_tells_of_an_edited_manifest(project):
    name = promoted(project).manifest.predicate.id
    path = project.manifests / f"{name}.json"
    path.write_text(path.read_text().replace('"Ann"', '"Bob"'))
    git(project.root, "commit", "-qam", "nothing to see")
    git(project.root, "tag", "-d", f"release/{name}")
    found = wrong(project, name)
    assert "edited since" in found["history"]


def test_a_signature_taken_away_does_not_make_an_unsigned_release_that_holds(released):
    project, name = released
    (project.manifests / f"{name}.json.sig").unlink()
    assert "not signed" in wrong(project, name)["signature"]


def test_a_signature_of_another_namespace_beside_a_manifest_does_not_hold(released, keys):
    project, name = released
    path = project.manifests / f"{name}.json"
    other = sign(path.read_bytes(), keys / "rel", APPROVAL)
    (project.manifests / f"{name}.json.sig").write_bytes(other)
    assert "another kind of file" in wrong(project, name)["signature"]


@pytest.mark.parametrize("where", ["manifest", "signature", "evidence"])
def test_one_flipped_byte_in_a_bound_file_does_not_hold(released, where):
    project, name = released
    path = {
        "manifest": project.manifests / f"{name}.json",
        "signature": project.manifests / f"{name}.json.sig",
        "evidence": project.manifests / "evidence" / f"{name}.jsonl.zst",
    }[where]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert wrong(project, name)


def test_a_flipped_byte_in_the_bound_harness_or_evalsets_of_a_clone_does_not_hold(released):
    project, name = released
    made = list_manifests(project.manifests)[name].predicate
    skill = project.harness / "skills" / "thanks" / "SKILL.md"
    text = skill.read_text()
    skill.write_text(text + "x")  # what is checked out is not what is bound
    assert wrong(project, name) == {}
    blob = git(
        project.root, "rev-parse", f"{made.harness['commit']}:harness_repo/skills/thanks/SKILL.md"
    )
    path = project.root / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert wrong(project, name)


def test_a_flipped_byte_that_changes_no_value_is_told_as_well(released):
    """A comment of the catalogue: its digest is over what it says, git's name over its bytes."""
    project, name = released
    made = list_manifests(project.manifests)[name].predicate
    where = f"{made.harness['evalsets_commit']}:evalsets/catalogue/catalogue.yaml"
    blob = git(project.root, "rev-parse", where)
    path = project.root / ".git" / "objects" / blob[:2] / blob[2:]
    data = bytearray(zlib.decompress(path.read_bytes()))
    data[data.index(b"#") + 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(zlib.compress(bytes(data)))
    assert wrong(project, name) == {"evalsets": f"object {blob} is damaged: it holds other bytes"}


def test_a_manifest_of_an_unknown_major_version_is_refused_and_unknown_fields_are_ignored(project):
    name = promoted(project).manifest.predicate.id
    path = project.manifests / f"{name}.json"
    made = json.loads(path.read_text())
    made["predicate"]["later"] = {"a": 1}
    made["predicate"]["gates"][0]["later"] = 2
    made["extra"] = 3
    path.write_text(json.dumps(made))
    assert wrong(project, name).keys() == {"history", "release tag"}
    made["predicateType"] = "https://harness-evolution.dev/manifest/v2"
    path.write_text(json.dumps(made))
    assert "is not known" in wrong(project, name)["manifest"]
    assert program(project.root, "manifest", "verify", name).returncode == 1
    assert program(project.root, "manifest", "show", name).returncode == 2


def test_a_release_without_a_key_can_be_signed_later(project, keys):
    name = promoted(project).manifest.predicate.id
    assert outcomes(project, name)["signature"][0] == "not re-checked"
    commit_allowed(project, allow(keys / "rel", "rel@x"))
    assert wrong(project, name).keys() == {"signature", "release tag"}
    assert sign_later(project, name, keys / "rel").by == "rel@x"
    assert wrong(project, name) == {}
    assert git(project.root, "status", "--porcelain") == ""


def test_a_clock_set_back_is_refused_and_seen(project):
    promoted(project)
    edited(project)
    before = read_channel(project.manifests, "dev")
    with pytest.raises(Stale, match="the clock stands at 2020"):
        promoted(project, at="2020-01-01T00:00:00Z")
    assert read_channel(project.manifests, "dev") == before


def test_a_manifest_from_before_its_runs_does_not_hold(project):
    name = promoted(project, at="2020-01-01T00:00:00Z").manifest.predicate.id
    assert "began after the manifest" in wrong(project, name)["dates"]


def decided(project: Project):
    picked = chosen(project)
    facts = gather(picked, drift=(), approvals=read_approvals(project))
    return next(r for r in judge_candidate(picked, facts).results if r.kind == "approvals")


def test_nobody_who_made_the_edit_approves_it(project):
    promoted(project)
    edited(project)
    message = "a rule\n\nReviewed-by: Rita <rita@x>"
    git(project.root, "commit", "-q", "--amend", "-m", message)
    remeasured(project)
    for who in ("Ed", "ed@example.invalid", "ED <other@x>", "Test Person", "Rita"):
        record_approval(project, Approval(by=who, at=now(), subject=chosen(project).pair.subject))
        found = decided(project)
        assert found.outcome == "PENDING"
        assert f"{who} had a part in the edit" in found.summary
    assert promoted(project, approver="Ann").decision.promotes


def test_the_bound_authors_are_checked_against_git(project):
    promoted(project)
    edited(project)
    name = promoted(project).manifest.predicate.id
    assert outcomes(project, name)["authors"][0] == "verified"
    assert outcomes(project, name)["gate approvals"][0] == "verified"
    path = project.manifests / f"{name}.json"
    made = json.loads(path.read_text())
    made["predicate"]["authors"] = []
    path.write_text(json.dumps(made))
    assert "git names Ed" in wrong(project, name)["authors"]


PUBLIC = "{name: approvals, kind: approvals, public: true}"


@pytest.fixture
def public_channel(project, keys) -> Project:
    path = project.gates
    path.write_text(
        path.read_text().replace("{name: approvals, kind: approvals, approvals: 1}", PUBLIC)
    )
    lines = [allow(keys / name, f"{name}@x") for name in ("rel", "ann", "bo")]
    commit_allowed(project, "".join([*lines, allow(keys / "ann", "anna@x")]))
    git(project.root, "commit", "-qam", "public")
    return project


def test_a_public_channel_takes_two_signatures_of_two_keys(public_channel, keys):
    project = public_channel
    pair = chosen(project).pair
    assert promoted(project, approver="Somebody").decision.outcome == "PENDING"
    assert approve(project, pair, keys / "ann", comment="read it").by == "ann@x"
    approve(project, pair, keys / "ann")
    assert decided(project).summary.startswith("1 of 2 approvals")
    approve(project, pair, keys / "bo")
    made = promoted(project, approver=None, key=keys / "rel")
    assert made.decision.promotes
    name = made.manifest.predicate.id
    assert wrong(project, name) == {}
    found = outcomes(project, name)["gate approvals"]
    assert (found[0], "ann@x, bo@x" in found[1]) == ("verified", True)


def test_one_key_under_two_names_is_one_person(public_channel, keys):
    project = public_channel
    pair = chosen(project).pair
    for name in ("ann@x", "anna@x"):
        made = Approval(by=name, at=now(), subject=pair.subject)
        signature = sign(approval_payload(made), keys / "ann", APPROVAL).decode()
        record_approval(
            project, Approval(by=name, at=made.at, subject=pair.subject, signature=signature)
        )
    assert decided(project).summary.startswith("1 of 2 approvals")


def test_an_approval_of_another_candidate_or_copied_to_it_counts_for_nothing(public_channel, keys):
    project = public_channel
    pair = chosen(project).pair
    made = [approve(project, pair, keys / name) for name in ("ann", "bo")]
    assert decided(project).outcome == "PASS"
    edited(project)
    assert decided(project).summary == "0 of 2 approvals"
    for approval in made:
        record_approval(
            project, msgspec.structs.replace(approval, subject=chosen(project).pair.subject)
        )
    assert "has a signature that does not hold" in decided(project).summary


def test_somebody_who_is_listed_must_sign_on_a_private_channel_too(project, keys):
    commit_allowed(project, allow(keys / "ann", "Ann") + allow(keys / "rel", "rel@x"))
    assert promoted(project, approver="Ann").decision.outcome == "PENDING"
    assert "Ann did not sign" in decided(project).summary
    approve(project, chosen(project).pair, keys / "ann")
    assert decided(project).outcome == "PASS"


def test_a_stranger_cannot_approve_in_a_name_that_is_listed(project, keys):
    commit_allowed(project, allow(keys / "ann", "Ann"))
    with pytest.raises(UsageError, match="may not sign here"):
        approve(project, chosen(project).pair, keys / "evil")
    (project.manifests / "allowed_signers").unlink()
    with pytest.raises(UsageError, match="no file of allowed signers"):
        approve(project, chosen(project).pair, keys / "ann")
