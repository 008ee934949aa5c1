"""A scripted policy is its file: a release holds where the bound commit has the script it names."""

from pathlib import Path

import pytest
from released import git, measured_project, outcomes, promoted, remeasured, wrong

from harness_cli.release import gather
from harness_cli.store.project import Project

SCRIPT = "rules:\n  - replies: [{text: It costs 7 yuan.}]\n"
WHAT = "policy script"


@pytest.fixture(scope="module")
def scripted(tmp_path_factory, isolated_session) -> Project:
    """A project whose policy is a committed script, and a run of it."""
    root = tmp_path_factory.mktemp("scripted") / "shop"
    measured_project(root)
    config = root / "harness.yaml"
    row = "policies:\n  other: {kind: scripted, script: script.yaml}\n"
    text = config.read_text().replace("policy: builtin\n", "policy: other\n")
    config.write_text(text.replace("policies:\n", row, 1))
    (root / "script.yaml").write_text(SCRIPT)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a scripted policy")
    project = Project.find(root)
    remeasured(project)
    return project


def test_the_script_of_the_bound_commit_is_held_against_the_bound_policy(scripted):
    name = promoted(scripted).manifest.predicate.id
    outcome, detail = outcomes(scripted, name)[WHAT]
    assert (outcome, detail.startswith("`script.yaml` of the bound commit is other@")) == (
        "verified", True
    )  # fmt: skip
    # A later edit does not unmake the release.
    (scripted.root / "script.yaml").write_text(SCRIPT.replace("7", "9"))
    git(scripted.root, "commit", "-qam", "another price")
    assert wrong(scripted, name) == {}
    git(scripted.root, "revert", "--no-edit", "HEAD")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("edit", "`script.yaml` has uncommitted changes: commit them"),
        ("commit", "`script.yaml` has changed since the run: evaluate again"),
        ("remove", "`script.yaml` has uncommitted changes: commit them"),
        ("ignore", "git ignores `script.yaml`: `git add -f` and commit it"),
        ("settings", "the settings of `other` in `harness.yaml` have changed since the run"),
    ],
)
def test_what_the_run_had_and_no_commit_holds_promotes_nothing(scripted, change, told):
    root, script = scripted.root, scripted.root / "script.yaml"
    head = git(root, "rev-parse", "HEAD")
    try:
        if change in ("edit", "commit"):
            script.write_text(SCRIPT.replace("7 yuan", "8 yuan"))
        elif change == "remove":
            script.unlink()
        elif change == "ignore":
            git(root, "rm", "-q", "--cached", "script.yaml")
            (root / ".git/info/exclude").write_text("script.yaml\n")
            git(root, "commit", "-qm", "the script is not kept")
        else:
            config = root / "harness.yaml"
            config.write_text(
                config.read_text().replace("script.yaml}", "script.yaml, concurrency: 3}")
            )
        if change in ("commit", "settings"):
            git(root, "commit", "-qam", "after the run")
        made = promoted(Project.find(root))
        summary = next(g.summary for g in made.results if g.kind == "provenance")
        assert (made.decision.exit_code, made.manifest) == (10, None)
        assert told in summary
    finally:
        (root / ".git/info/exclude").write_text("")
        git(root, "reset", "-q", "--hard", head)


def test_a_script_that_was_never_committed_is_told_of_an_older_release(scripted, monkeypatch):
    """Promotions did not look at scripts at first."""
    monkeypatch.setattr(gather, "uncommitted_settings", lambda *_: [])
    script: Path = scripted.root / "script.yaml"
    script.write_text(SCRIPT.replace("7 yuan", "8 yuan"))
    try:
        remeasured(scripted)
        name = promoted(scripted).manifest.predicate.id
        assert list(wrong(scripted, name)) == [WHAT]
        script.write_text(SCRIPT)  # the file at hand has no say
        assert list(wrong(scripted, name)) == [WHAT]
    finally:
        script.write_text(SCRIPT)
    git(scripted.root, "rm", "-q", "--cached", "script.yaml")
    git(scripted.root, "commit", "-qm", "the script is not kept")
    remeasured(scripted)
    name = promoted(scripted).manifest.predicate.id
    assert outcomes(scripted, name)[WHAT] == (
        "not re-checked", "`script.yaml` is not in the bound commit"
    )  # fmt: skip
