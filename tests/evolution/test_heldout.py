"""The held-out protocol: a sealed split, several policies, the same edits, errors counted."""

import json
import subprocess
import time

import pytest
from small_shop import git, make_shop, write
from test_evolve import HARNESS, evolve

from harness_cli.evaluation.seal import openings
from harness_cli.loop.heldout import reduction
from harness_cli.store.runs import RunStore

LISTED = "1. **First**: we ship today.\\n2. **Second**: it is soft."
SCRIPT = """schema: 1
rules:
  - when: 'speak as people do'
    replies: [{text: "Sure, it ships today and it is really soft!"}]
  - when: '.'
    replies: [{text: "%s"}]
"""


@pytest.fixture
def shop(tmp_path):
    """Two policies, one of which heeds the edit, and a sealed split of six items."""
    project = make_shop(tmp_path)
    write(tmp_path / "lists.yaml", SCRIPT % LISTED)
    write(tmp_path / "stays.yaml", SCRIPT.replace("speak as people do", "never said") % LISTED)
    settings = (tmp_path / "harness.yaml").read_text()
    write(tmp_path / "harness.yaml", settings + "  lists: {kind: scripted, script: lists.yaml}\n"
          "  stays: {kind: scripted, script: stays.yaml}\n")  # fmt: skip
    items = [
        json.loads(x) for x in (tmp_path / "evalsets/shop/items.jsonl").read_text().split("\n") if x
    ]
    for item in items:
        item["assert"] = [{"type": "naturalness"}]
    write(tmp_path / "evalsets/shop/items.jsonl", "".join(json.dumps(i) + "\n" for i in items))
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "held out")
    git(tmp_path, "tag", "before")
    block = tmp_path / "harness_repo/prompts/blocks/comments.md"
    write(block, block.read_text() + "Please speak as people do.\n")
    git(tmp_path, "commit", "-q", "-a", "-m", "edit")
    return project


WORDS = ("edit", "heldout", "--before", "before", "--after", "HEAD", "--evalset", "shop")


def test_errors_before_and_after_for_each_policy(shop):
    words = (*WORDS, "--policy", "lists", "--policy", "stays", "--reason", "the study", "--json")
    done = json.loads(evolve(shop, *words, code=0).stdout)
    first, second = done["rows"]
    assert (first["before"]["errors"], first["after"]["errors"], first["reduction"]) == (6, 0, 1.0)
    assert first["mcnemar"]["p"] == pytest.approx(2 * 0.5**6)
    assert (second["before"]["errors"], second["after"]["errors"]) == (6, 6)
    assert second["reduction"] == 0.0
    log = openings(shop.evalsets / "seal.log.jsonl")
    assert {o.why for o in log} == {f"held-out study {done['id']}: the study"}
    assert done["opened_before"] == []
    again = json.loads(evolve(shop, *words, code=0).stdout)
    assert again == done
    assert len(openings(shop.evalsets / "seal.log.jsonl")) == len(log), "nothing was opened again"


def test_the_split_is_opened_before_the_first_score_and_a_kill_counts_as_opened(shop):
    slow = SCRIPT.replace("{text:", "{delay_s: 20, text:") % LISTED
    (shop.root / "lists.yaml").write_text(slow)
    log = shop.evalsets / "seal.log.jsonl"
    words = [*HARNESS, *WORDS, "--policy", "lists", "--reason", "first try"]
    child = subprocess.Popen(
        words, cwd=shop.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 60
    while not log.exists() and time.monotonic() < end:
        time.sleep(0.02)
    child.kill()
    child.communicate()
    (run,) = RunStore(shop.runs).list()
    assert list(run.results()) == [], "no score had been made"
    assert [o.why.partition(": ")[2] for o in openings(log)] == ["first try"]
    second = (*WORDS, "--policy", "stays", "--limit", "3", "--reason", "second", "--json")
    other = json.loads(evolve(shop, *second, code=0).stdout)
    told = [o["why"].partition(": ")[2] for o in other["opened_before"]]
    assert told == ["first try"], "what was held out once is held out no more"


def test_one_harness_twice_and_a_missing_reason_are_refused(shop):
    same = ("edit", "heldout", "--before", "HEAD", "--after", "HEAD", "--evalset", "shop")
    assert "are one harness" in evolve(shop, *same, "--reason", "r", code=2).stderr
    assert evolve(shop, *WORDS, code=2).stderr
    assert not (shop.evalsets / "seal.log.jsonl").exists()
    assert RunStore(shop.runs).list() == []


@pytest.mark.parametrize(
    ("before", "after", "told"), [(149, 122, 0.181), (238, 115, 0.517), (0, 3, None)]
)
def test_the_error_reduction_of_table_8(before, after, told):
    found = reduction(before, after)
    assert found == (None if told is None else pytest.approx(told, abs=5e-4))
