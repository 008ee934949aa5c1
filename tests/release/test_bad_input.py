"""What a release must refuse, each with its reason; other files of this folder hold the rest."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from released import git, measured_project, promoted, wrong

from harness_cli.records.canonical import sha256
from harness_cli.release.evidence import evidence_bytes, read_evidence
from harness_cli.store.project import Project


@pytest.fixture(scope="module")
def once(tmp_path_factory, isolated_session) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("bad") / "shop"
    return root, promoted(measured_project(root)).manifest.predicate.id


@pytest.fixture
def released(once, tmp_path) -> tuple[Project, str]:
    root, name = once
    return Project.find(shutil.copytree(root, tmp_path / "shop", symlinks=True)), name


def change(project: Project, name: str, edit) -> None:
    path = project.manifests / f"{name}.json"
    made = json.loads(path.read_text())
    edit(made["predicate"])
    path.write_text(json.dumps(made, indent=2, sort_keys=True) + "\n")


def test_evidence_without_one_of_its_runs_or_items_does_not_hold_even_hashed_again(released):
    project, name = released
    path = project.manifests / "evidence" / f"{name}.jsonl.zst"
    lines = list(read_evidence(path.read_bytes(), name="e"))
    for kept in ([], lines[1:]):
        path.write_bytes(evidence_bytes(kept))
        sha = sha256(path.read_bytes())
        change(project, name, lambda p, sha=sha: p.update(evidence_file_sha256=sha))
        found = wrong(project, name)
        assert f"evidence {lines[0].run}" in found
        assert "evidence file" not in found
    path.unlink()
    assert wrong(project, name)["evidence"] == "the evidence file is missing"


def test_an_evalset_swapped_for_a_longer_one_does_not_hold(released):
    project, name = released
    before = wrong(project, name)
    assert before == {}
    items = project.evalsets / "live_stream_qa" / "items.jsonl"
    rows = items.read_text().splitlines()
    more = json.loads(rows[0])
    extra = [json.dumps(more | {"id": f"one-more-{n}"}, ensure_ascii=False) for n in range(40)]
    items.write_text("\n".join([*rows, *extra]) + "\n")
    git(project.root, "commit", "-qam", "a longer evalset")
    assert wrong(project, name) == {}  # the bound commit still holds the bound items
    head = git(project.root, "rev-parse", "HEAD")
    change(project, name, lambda p: p["harness"].update(evalsets_commit=head))
    assert {w for w in wrong(project, name) if w.startswith("evalset")}


def test_no_flag_says_yes_for_a_gate(released):
    project, _ = released
    text = project.gates.read_text()
    project.gates.write_text(text.replace("minimum_n: 2", "minimum_n: 30"))
    git(project.root, "commit", "-qam", "more items")
    for flag in ("--yes", "--force", "-y"):
        words = [sys.executable, "-m", "harness_cli.main", "promote", "--no-run", flag]
        done = subprocess.run(words, cwd=project.root, capture_output=True, text=True)
        assert (done.returncode, "No such option" in done.stderr) == (2, True)
    made = promoted(project)
    assert (made.decision.outcome, made.decision.exit_code, made.manifest) == (
        "INCONCLUSIVE", 11, None
    )  # fmt: skip


def test_what_the_user_ignores_is_committed_with_a_release_all_the_same(released):
    project, _ = released
    (project.root / ".git/info/exclude").write_text("*.zst\nmanifests/\n")
    made = promoted(project)
    name = made.manifest.predicate.id
    held = git(project.root, "show", "--name-only", "--format=", str(made.commit)).splitlines()
    assert {f"manifests/{name}.json", f"manifests/evidence/{name}.jsonl.zst"} <= set(held)
    assert wrong(project, name) == {}


def test_gates_and_limits_that_nobody_committed_promote_nothing(released):
    """A gate file that git does not hold could let anything through and leave no trace."""
    project, _ = released
    project.gates.write_text(project.gates.read_text().replace("minimum_n: 2", "minimum_n: 1"))
    settings = project.root / "harness.yaml"
    settings.write_text(settings.read_text() + "# a remark\n")
    made = promoted(project)
    assert (made.decision.outcome, made.manifest) == ("FAIL", None)
    told = next(g.summary for g in made.results if g.kind == "provenance")
    for name in ("gates.yaml", "harness.yaml"):
        assert f"`{name}` has uncommitted changes: commit them" in told


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("gates.yaml", "minimum_n: 2", "minimum_n: 1", "gate file"),
        ("harness.yaml", "schema: 1\n", "schema: 1\nlimits: {replay: {}}\n", "limits"),
        ("harness.yaml", "{kind: builtin}", "{kind: builtin, concurrency: 3}", "policy settings"),
    ],
)  # fmt: skip
def test_settings_that_the_bound_commit_does_not_have_do_not_hold(released, file, old, new, what):
    """The commit that a manifest names is made to say otherwise."""
    project, name = released
    path = project.root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    git(project.root, "commit", "-qam", "otherwise")

    def forge(bound):
        bound["harness"]["evalsets_commit"] = git(project.root, "rev-parse", "HEAD")

    change(project, name, forge)
    assert what in wrong(project, name)
    assert "says otherwise" in wrong(project, name)[what]
