"""`evolve/latest`: the newest harness, under whatever number."""

import subprocess
from pathlib import Path

import pytest

from harness_cli.errors import RepoError
from harness_cli.harness.load import load_state
from harness_cli.loop.scaffold import make_project
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo


@pytest.fixture
def project(tmp_path) -> Project:
    return Project.find(make_project(tmp_path / "shop").root)


def evolve(project: Project, number: int, *, parent: str = "HEAD") -> str:
    repo = Repo.open(project.harness)
    changes = {"prompts/blocks/boundaries.md": b"One more rule.\n" * number}
    return repo.commit_files(
        f"evolve/{number}", repo.resolve(parent), project.harness, changes, "a rule"
    )


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)


def test_without_an_evolution_it_is_the_commit_that_is_checked_out(project):
    assert load_state(project, "evolve/latest").id == load_state(project, "HEAD").id


def test_it_is_the_evolution_of_the_highest_number_not_the_last_by_name(project):
    evolve(project, 2)
    tenth = evolve(project, 10)
    found = load_state(project, "evolve/latest")
    assert (found.commit, found.id) == (tenth, load_state(project, "evolve/10").id)


def test_an_evolution_that_was_merged_gives_way_to_what_came_after(project):
    evolve(project, 1)
    git(project.root, "merge", "--ff-only", "evolve/1")
    (project.harness / "prompts/blocks/boundaries.md").write_text("Another rule.\n")
    git(project.root, "commit", "-qam", "by hand")
    assert load_state(project, "evolve/latest").id == load_state(project, "HEAD").id


def test_a_branch_of_that_very_name_goes_first(project):
    evolve(project, 3)
    git(project.root, "branch", "evolve/latest", "HEAD")
    assert load_state(project, "evolve/latest").id == load_state(project, "HEAD").id


def test_other_names_stay_those_of_git(project):
    with pytest.raises(RepoError, match="no revision `evolve/7`"):
        load_state(project, "evolve/7")
