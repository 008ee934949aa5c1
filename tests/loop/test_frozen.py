"""Base harness, items, catalogue and `builtin` are as the last freeze says, or the demo says so."""

from harness_cli.loop.demo.frozen import frozen_differences, read_freezes
from harness_cli.loop.scaffold import make_project
from harness_cli.store.project import Project


def test_what_ships_is_what_was_last_frozen(tmp_path):
    project = Project.find(make_project(tmp_path / "shop").root)
    assert frozen_differences(project) == [], "add an entry with its reason to frozen.yaml"


def test_a_change_of_the_base_is_listed(tmp_path):
    project = Project.find(make_project(tmp_path / "shop").root)
    with (project.harness / "fallback.md").open("a") as file:
        file.write("One more line.\n")
    assert frozen_differences(project) == ["the base harness changed"]


def test_every_freeze_says_why(tmp_path):
    project = Project.find(make_project(tmp_path / "shop").root)
    assert all(freeze.reason.strip() for freeze in read_freezes(project))


def test_without_a_record_nothing_is_claimed(tmp_path):
    project = Project.find(make_project(tmp_path / "shop").root)
    (project.evalsets / "frozen.yaml").unlink()
    assert frozen_differences(project) == ["nothing was frozen"]
