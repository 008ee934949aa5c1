"""The annotation page in a real browser: by keyboard, through `harness view` and by itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))

from blind_runs import make_project, make_run
from chromium import needs_chromium, opened

from harness_cli.evaluation.blind.annotations import read_annotations
from harness_cli.evaluation.blind.make import Wanted, make, read_sheet, write

PROGRAM = "from harness_cli.main import main; import sys; sys.argv[0] = 'harness'; main()"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script><style>body{display:none}</style>"


@pytest.fixture
def folder(tmp_path):
    project = make_project(tmp_path, {"chat": 3})
    a = make_run(project, "a", lambda i: f"{HOSTILE} {i}")
    b = make_run(project, "b", lambda i: f"plain {i}")
    sheet, _, sealed = make(project, a, b, Wanted(review=0))
    write(tmp_path / "blind" / "t", sheet, tmp_path / "key.json", sealed)
    return tmp_path / "blind" / "t"


def started(folder, *words):
    """A serving command and the address it printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words, "--json"],
        cwd=folder.parents[1], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    said = ""
    while not said.endswith("}\n"):
        line = process.stdout.readline()
        assert line
        said += line
    return process, json.loads(said)["url"]


@needs_chromium
@pytest.mark.parametrize("served_by", ["annotate --page", "view"])
def test_three_pairs_are_decided_by_form_and_hostile_text_does_nothing(folder, served_by):
    words = ("blind", "annotate", "--page") if served_by.startswith("annotate") else ("view",)
    process, url = started(folder, *words)
    address = url if served_by.startswith("annotate") else f"{url}blind/t/"
    try:
        with opened() as (page, seen):
            page.goto(address)
            first = page.locator('input[name="pair"]').get_attribute("value")
            assert page.locator("section").count() == 2
            assert "onerror=alert(1)" in page.locator("main, body").inner_text()
            page.get_by_label("A is better").check()
            with page.expect_navigation():  # without a reason: the server refuses
                page.get_by_role("button").click()
            assert page.get_by_role("alert").inner_text().startswith("A is preferred without")
            assert page.get_by_label("A is better").is_checked()
            page.get_by_label("Why?").fill("names the price")
            page.get_by_label("Kind of reason").select_option("reliable-output")
            with page.expect_navigation():
                page.get_by_role("button").click()
            for choice in ("a tie", "a tie"):
                page.get_by_role("radio", name=choice).check()
                with page.expect_navigation():  # the next pair, not the one still on the screen
                    page.keyboard.press("Enter")
            assert page.get_by_role("heading").inner_text() == "Everything is decided"
            page.locator("summary").click()
            with page.expect_navigation():
                page.get_by_role("link", name=first).click()
            assert page.get_by_label("Why?").input_value() == "names the price"
            assert seen.errors == []
            assert all(r.startswith(url) for r in seen.requests if "favicon" not in r)
    finally:
        process.terminate()
        assert process.wait(timeout=30) in (0, 130)
    (made,) = read_annotations(folder).values()
    assert [made[p.id].choice for p in read_sheet(folder).pairs] == ["A", "tie", "tie"]
    assert made[first].tag == "reliable-output"
