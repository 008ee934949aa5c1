"""Dialogues behind a release, archived and checked again on a machine that has no runs."""

import json
import shutil
import zipfile
from pathlib import Path

import msgspec
import pytest
from released import git, measured_project, outcomes, promoted

from harness_cli.errors import UsageError
from harness_cli.release import replay_parts
from harness_cli.release.archiving import archive_path, begun, write_archive
from harness_cli.release.channels import read_manifest
from harness_cli.release.gather import bound_lines
from harness_cli.release.replaying import check_rollouts
from harness_cli.release.verify import bound_evalsets, check_all, evalsets_at
from harness_cli.store import children
from harness_cli.store.journal import line_of, scan
from harness_cli.store.project import Project


@pytest.fixture(scope="module")
def released(tmp_path_factory, isolated_session) -> tuple[Project, str]:
    project = measured_project(tmp_path_factory.mktemp("rollouts") / "shop")
    return project, promoted(project).manifest.predicate.id


@pytest.fixture
def clone(released, tmp_path) -> tuple[Project, str, Path]:
    """Another machine: git's files and an archive, no run."""
    project, name = released
    path = tmp_path / "rollouts.zip"
    write_archive(project, read_manifest(project.manifests, name), path)
    git(tmp_path, "clone", "-q", str(project.root), "clone")
    return Project.find(tmp_path / "clone"), name, path


@pytest.fixture(params=[1, 2], ids=["one process", "two processes"])
def processes(request, monkeypatch) -> int:
    monkeypatch.setattr(children, "cores", lambda: request.param)
    monkeypatch.setattr(replay_parts, "LEAST", 1)
    return request.param


def rollouts(project: Project, name: str, path: Path, **more) -> tuple[str, str]:
    """Outcome and detail of the one run; `more` forges its first line of evidence."""
    manifest = read_manifest(project.manifests, name)
    lines = bound_lines(project, manifest)
    [run] = lines
    first, *rest = lines[run]
    forged = {run: (msgspec.structs.replace(first, **more), *rest)}
    with evalsets_at(project, manifest) as there, begun(path, {run}) as archive:
        [found] = check_rollouts(manifest, forged, bound_evalsets(there, manifest), archive)
    return found.outcome, found.detail


def rewritten(path: Path, change) -> None:
    """The archive with its journal's records changed, each under its right checksum."""
    with zipfile.ZipFile(path) as archive:
        [member] = archive.namelist()
        kept = path.with_suffix(".jsonl")
        kept.write_bytes(archive.read(member))
    lines = []
    for line in scan(kept):
        record = change(json.loads(line.data))
        if record is not None:
            data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
            lines.append(line_of(data))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, b"".join(lines))


@pytest.mark.usefixtures("processes")
def test_a_clone_checks_the_dialogues_of_an_archive_again(clone):
    project, name, path = clone
    checks = check_all(project, name, rollouts=path)
    assert [c for c in checks if c.outcome == "wrong"] == []
    [found] = [c for c in checks if c.what.startswith("rollouts ")]
    assert found.outcome == "verified"
    assert found.detail.startswith("2 rollouts: 2 graded again, ")


def test_an_archive_beside_the_manifests_is_found_and_a_folder_of_runs_does_as_well(
    clone, released
):
    project, name, path = clone
    there = archive_path(project, name)
    there.parent.mkdir()
    shutil.copy(path, there)
    [found] = [c for c in check_all(project, name) if c.what.startswith("rollouts ")]
    assert found.outcome == "verified"
    assert rollouts(project, name, released[0].runs)[0] == "verified"


def test_without_dialogues_verify_says_that_they_were_not_checked(released, tmp_path):
    project, name = released
    found = outcomes(project, name)["full trajectories"]
    assert found == (
        "not re-checked", f"no archive of them is here: harness manifest archive {name}"
    )  # fmt: skip
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    assert rollouts(project, name, tmp_path / "empty.zip")[0] == "not re-checked"


def said_more(record):
    if record["kind"] == "trajectory":
        record["trajectory"]["reply"] += " And it is free."
    return record


def another_prompt(record):
    if record["kind"] == "text":
        record["text"] += " Promise whatever sells."
    return record


def texts_gone(record):
    return None if record["kind"] == "text" else record


def first_gone(record):
    gone = record["kind"] == "trajectory" and record["item"].endswith("0001")
    return None if gone else record


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (said_more, "2 rollouts not as bound"),
        (another_prompt, "is another one"),
        (texts_gone, "the journal lacks the text"),
        (first_gone, "(missing)"),
    ],
)
@pytest.mark.usefixtures("processes")
def test_a_dialogue_that_is_not_the_bound_one_does_not_hold(clone, change, says):
    project, name, path = clone
    rewritten(path, change)
    outcome, detail = rollouts(project, name, path)
    assert (outcome, says in detail) == ("wrong", True), detail


@pytest.mark.usefixtures("processes")
def test_a_score_that_the_dialogue_does_not_give_does_not_hold(clone):
    """Evidence that was forged and bound anew: all digests agree, the dialogues do not."""
    project, name, path = clone
    [lines] = bound_lines(project, read_manifest(project.manifests, name)).values()
    first = lines[0]
    assert first.wall_s is not None
    for more in (
        {"scores": {**first.scores, "avg": 0.123}},
        {"state": "unscored"},
        {"category": "chat" if first.category != "chat" else "faq"},
        {"verdict_sha256": "0" * 64},
        {"wall_s": first.wall_s / 2},
        {"fell_back": not first.fell_back},
    ):
        assert rollouts(project, name, path, **more) == (
            "wrong", f"1 rollout scored otherwise: {first.item_id}#{first.repeat}"
        )  # fmt: skip


def test_what_is_no_archive_is_wrong_and_a_member_cannot_leave_its_folder(clone, tmp_path):
    project, name, path = clone
    path.write_bytes(b"PK" + path.read_bytes()[:200])
    assert rollouts(project, name, path)[0] == "wrong"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../out.txt", "x")
        archive.writestr("/out.txt", "x")
    assert rollouts(project, name, path)[0] == "not re-checked"
    assert not list(tmp_path.rglob("out.txt"))


def test_where_nothing_was_measured_there_is_nothing_to_archive(clone):
    project, name, path = clone
    with pytest.raises(UsageError, match="no run of"):
        write_archive(project, read_manifest(project.manifests, name), path)
    with pytest.raises(UsageError, match="no archive and no folder"):
        check_all(project, name, rollouts=path.with_name("gone"))


def test_packing_twice_gives_the_same_bytes(released, tmp_path):
    project, name = released
    manifest = read_manifest(project.manifests, name)
    made = [tmp_path / "a.zip", tmp_path / "b.zip"]
    assert [write_archive(project, manifest, path).missing for path in made] == [(), ()]
    assert made[0].read_bytes() == made[1].read_bytes()
