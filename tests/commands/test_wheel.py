"""The wheel carries everything `harness init` and `eval` need, from one copy, and nothing else."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from installed import ROOT, environment, harness

from harness_cli.store.content import PARTS

CONTENT = "harness_cli/content/"


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


@pytest.fixture(scope="module")
def tracked(wheel):
    """Every file of the source tree that the wheel was built from."""
    return set((wheel.parents[1] / "sources.txt").read_text().splitlines())


@pytest.mark.parametrize("part", PARTS)
def test_the_wheel_holds_the_shipped_content_file_for_file(part, names, tracked):
    beside = {name for name in tracked if name.startswith(f"{part}/")}
    assert beside
    assert {CONTENT + name for name in beside} == {n for n in names if n.startswith(CONTENT + part)}


def test_the_content_is_complete_by_name(names):
    for name in (
        "evalsets/catalogue/catalogue.yaml",
        "evalsets/scenarios/product.yaml",
        "evalsets/frozen.yaml",
        "evalsets/live_stream_qa/items.jsonl",
        "evalsets/deploy_replay/items.jsonl",
        "evalsets/general_instructions/items.jsonl",
        "harness_repo/tools/mcp.yaml",
        "harness_repo/tools/mcp.lock.json",
        "harness_repo/replies.yaml",
        "templates/harness.yaml",
        "templates/gates.yaml",
        "templates/gitignore",
    ):
        assert CONTENT + name in names


def test_every_file_beside_the_code_is_in_the_wheel(names, tracked):
    """Prompt texts, word lists, the type marker: whatever the package tracks."""
    package = {name for name in tracked if name.startswith("harness_cli/")}
    assert "harness_cli/py.typed" in package
    assert any(name.endswith("prompt.md") for name in package)
    assert package <= names


def test_nothing_else_is_in_the_wheel(names, tracked):
    """No tests, no benchmarks, no caches, nothing at the top but the package and its papers."""
    tops = {name.split("/")[0] for name in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"harness_cli"}
    assert not [n for n in names if "__pycache__" in n or n.endswith(".pyc")]
    code = {n for n in names if n.startswith("harness_cli/") and not n.startswith(CONTENT)}
    assert code <= tracked


def test_the_licence_goes_along(names):
    assert [n for n in names if n.endswith("licenses/LICENSE")]
    assert [n for n in names if n.endswith("licenses/NOTICE")]


@pytest.fixture(scope="module")
def shop(elsewhere, tmp_path_factory):
    root = tmp_path_factory.mktemp("shop") / "shop"
    made = harness(elsewhere, root.parent, "init", "shop")
    assert made.returncode == 0, made.stderr
    return root


def test_elsewhere_init_and_eval_run_from_the_wheel_alone(elsewhere, shop):
    asked = "import harness_cli; print(harness_cli.__file__)"
    where = subprocess.run(
        [str(elsewhere), "-c", asked],
        cwd=shop,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(elsewhere.parents[1])
    run = harness(elsewhere, shop, "eval", "live_stream_qa", "--limit", "5", "--json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["status"] == "complete"
    assert report["counts"]["errored"] == report["counts"]["unscored"] == 0
    assert report["planned"] == 5


def test_the_marketing_server_is_found_wherever_the_program_is_installed(elsewhere, shop):
    """`mcp.yaml` says `{python} -m …`."""
    done = harness(elsewhere, shop, "tools", "check", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["drift"] is False


@pytest.mark.accept
@pytest.mark.timeout(1800)
def test_with_its_dependencies_downloaded_it_runs_the_same(wheel, tmp_path):
    """What a user does: a fresh environment, `pip install WHEEL`, init, eval."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    pinned = ROOT / "requirements" / "core.txt"
    subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "-c", str(pinned), str(wheel)],
        check=True,
        cwd=tmp_path,
    )
    assert harness(python, tmp_path, "init", "shop").returncode == 0
    run = harness(python, tmp_path / "shop", "eval", "live_stream_qa", "--limit", "5", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["counts"]["errored"] == 0
