import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))

from small_harness import FILES, HOOK, committed, project

from harness_cli.main import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def harness(monkeypatch, capsys):
    """The program in this process: exit code, stdout, stderr."""

    def call(folder, *args):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["harness", *args])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return Done(int(ended.value.code or 0), shown.out, shown.err)

    return call


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = project(tmp_path_factory.mktemp("cli") / "project")
    evalset = root / "evalsets" / "qa"
    evalset.mkdir(parents=True)
    (evalset / "evalset.yaml").write_text(
        "schema: 1\nname: qa\ncatalogue: null\nsplits: {dev: 1}\n"
    )
    request = {"comments": [{"viewer": "v", "text": "How much?"}], "room": {"products": ["p1"]}}
    (evalset / "items.jsonl").write_text(json.dumps({"id": "qa-1", "request": request}) + "\n")
    (root / "gates.yaml").write_text("schema: 1\ngates: []\n")
    committed(root, "evalset")
    return root


@pytest.fixture
def broken(place):
    path = place / "harness_repo" / "hooks" / "reply-length.yaml"
    path.write_text(HOOK.replace("check: length", "check: lenght"))
    yield path
    path.write_text(FILES["hooks/reply-length.yaml"])


def test_check_of_a_project_in_order_is_silent_and_exits_0(harness, place):
    done = harness(place, "check")
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 errors" in done.stderr


def test_check_shows_place_reason_and_fix_and_exits_2(harness, place, broken):
    done = harness(place / "harness_repo", "check")
    assert done.returncode == 2
    assert (
        "harness_repo/hooks/reply-length.yaml:5: error: no built-in check `lenght`" in done.stdout
    )
    assert "did you mean `length`?" in done.stdout


def test_check_of_some_paths_speaks_of_those_alone(harness, place, broken):
    assert harness(place, "check", "harness_repo/hooks").returncode == 2
    assert harness(place, "check", "harness_repo/skills", "evalsets").returncode == 0
    assert harness(place, "check", "nowhere").returncode == 2
    assert "outside" in harness(place, "check", "/").stderr


def test_check_writes_json_and_sarif_and_nothing_else_on_stdout(harness, place, broken):
    made = json.loads(harness(place, "check", "--json").stdout)
    assert (made["schema"], made["errors"]) == (1, 1)
    sarif = json.loads(harness(place, "check", "--format", "sarif").stdout)
    assert sarif["version"] == "2.1.0"
    place_of = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place_of["artifactLocation"]["uri"] == "harness_repo/hooks/reply-length.yaml"


def test_check_of_a_revision_ignores_the_working_files(harness, place, broken):
    assert harness(place, "check", "--harness", "HEAD").returncode == 0
    assert harness(place, "check", "--harness", "nope").returncode == 1


def test_check_works_inside_a_git_hook(place, broken, tmp_path):
    env = {"GIT_DIR": str(tmp_path), "GIT_INDEX_FILE": str(tmp_path / "index")}
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "check"],
        cwd=place,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )
    assert done.returncode == 2
    assert "lenght" in done.stdout


def test_diff_names_the_setting_that_changed(harness, place):
    path = place / "harness_repo" / "prompts" / "pipeline.yaml"
    path.write_text(FILES["prompts/pipeline.yaml"].replace("value: 80", "value: 120"))
    try:
        done = harness(place, "diff", "HEAD")
        made = json.loads(harness(place, "diff", "HEAD", "--json").stdout)
    finally:
        path.write_text(FILES["prompts/pipeline.yaml"])
    assert done.stdout.splitlines() == [
        "~ prompt pipeline default · constraint reply_length: value changed",
        "    - 80",
        "    + 120",
    ]
    assert made["changes"][0]["after"] == 120
    assert made["a"] != made["b"]


def test_diff_of_equal_states_is_empty(harness, place):
    done = harness(place, "diff", "HEAD", "HEAD")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no changes" in done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("skill",), "item-qa"),
        (("skill", "item-qa"), "Look a fact up before you say it."),
        (("tool",), "get_price"),
        (("tool", "get_price"), "link_id"),
        (("hook",), "before_reply"),
        (("hook", "reply-length"), "constraint: reply_length"),
        (("prompt", "--item", "qa-1"), "v: How much?"),
        (("prompt", "--comment", "多少钱"), "多少钱"),
    ],
)
def test_show_shows_a_module_or_a_prompt(harness, place, args, says):
    done = harness(place, "show", *args)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    made = json.loads(harness(place, "show", *args, "--json").stdout)
    assert made["schema"] == 1
    assert len(made["harness"]) == 40


def test_show_prompt_counts_tokens_and_says_that_they_are_estimates(harness, place):
    made = json.loads(harness(place, "show", "prompt", "--item", "qa-1", "--json").stdout)
    shown = {b["name"]: b for b in made["blocks"]}
    assert shown["comments"]["tokens"] == 3
    assert shown["faq"]["shown"] is False
    assert made["tokens"]["exact"] is False
    assert made["tokens"]["total"] == made["tokens"]["messages"] + made["tokens"]["tools"]
    assert "≈3" in harness(place, "show", "prompt", "--item", "qa-1").stdout


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("skill", "item-qb"), "did you mean `item-qa`?"),
        (("tool", "get_prize"), "did you mean `get_price`?"),
        (("prompt",), "--item"),
        (("prompt", "--item", "nope"), "nope"),
        (("prompt", "--comment", "x", "--load", "item"), "item-qa"),
        (("prompt", "--comment", "x", "--pipeline", "compact"), "default"),
        (("run",), "latest"),
        (("trajectory", "qa-1"), "latest"),
    ],
)
def test_show_of_what_is_not_there_exits_2_with_a_hint(harness, place, args, hint):
    done = harness(place, "show", *args)
    assert done.returncode == 2
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
