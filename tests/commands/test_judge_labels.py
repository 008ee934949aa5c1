"""`harness judge agree` on labels of a run, of a spreadsheet, of items that are not there."""

import csv
import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from program import call
from small_shop import make_shop

from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    saved = os.environ.pop("GITHUB_STEP_SUMMARY", None)
    root = tmp_path_factory.mktemp("labels") / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "-q", "--json").code == 0
    yield root
    if saved is not None:
        os.environ["GITHUB_STEP_SUMMARY"] = saved


@pytest.fixture(scope="module")
def results(shop):
    run = RunStore(Project.read(shop).runs).list()[0]
    return run.id, {r.item_id: r for r in run.results()}


def written(root, rows, name="labels.csv"):
    with (root / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return name


def row(item, annotator="ann", accuracy=1, effectiveness=1, **more):
    grades = {"accuracy": accuracy, "effectiveness": effectiveness}
    return {"item_id": item, "annotator": annotator, **grades, **more}


def agreed(shop, *words):
    done = call(shop, "judge", "agree", *words, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_labels_of_a_runs_replies_are_held_against_its_own_grades(shop, results):
    run, found = results
    names = sorted(found)[:6]
    rows = [
        row(
            n,
            annotator=who,
            accuracy=int(found[n].scores["accuracy"]),
            effectiveness=found[n].scores["effectiveness"],
        )
        for n in names
        for who in ("ann", "bo", "cy")
    ]
    report = agreed(shop, written(shop, rows), "--run", run)
    assert (report["n"], report["annotators"]) == (6, ["ann", "bo", "cy"])
    # The judge of the run is asked about the same trajectories: it gives the same grades.
    assert report["accuracy"]["raw"] == report["effectiveness"]["raw"] == 1.0
    assert report["disagreements"] == []


def test_the_reference_is_the_majority_of_the_annotators(shop, results):
    run, found = results
    name = next(n for n in sorted(found) if found[n].scores["accuracy"] == 1)
    rows = [row(name, who, accuracy=grade) for who, grade in (("a", 0), ("b", 0), ("c", 1))]
    report = agreed(shop, written(shop, rows), "--run", run)
    assert report["accuracy"]["confusion"] == [[0, 1], [0, 0]]
    assert [(d["reference"], d["judge"]) for d in report["disagreements"]] == [(0.0, 1.0)]


def refused(shop, *words):
    done = call(shop, "judge", "agree", *words)
    assert done.code == 2
    return done.err


def test_labels_that_do_not_fit_the_run_are_refused_with_their_place(shop, results):
    run, found = results
    name = sorted(found)[0]
    rows = [row(name), row("item-of-another-set")]
    said = refused(shop, written(shop, rows), "--run", run)
    assert "labels.csv:3: item `item-of-another-set` is none of `shop`" in said
    other = [row(name, reply="Never said.")]
    said = refused(shop, written(shop, other), "--run", run)
    assert "labels.csv:2" in said
    assert "another reply" in said


def test_labels_without_replies_need_their_run(shop, results):
    name = sorted(results[1])[0]
    said = refused(shop, written(shop, [row(name)]), "--evalset", "shop")
    assert "labels.csv:2" in said
    assert "--run ID" in said


def test_how_unscored_replies_count_is_one_of_two_words(shop, results):
    name = sorted(results[1])[0]
    path = written(shop, [row(name, reply="Hello.")])
    assert "wrong or drop" in refused(shop, path, "--evalset", "shop", "--unscored", "tie")
    assert agreed(shop, path, "--evalset", "shop", "--unscored", "drop")["unscored_as"] == "drop"


def test_a_record_of_peoples_labels_names_them_and_follows_the_file(shop, results):
    name = sorted(results[1])[0]
    path = written(shop, [row(name, reply="Hello."), row(name, "bo", reply="Hello.")], "round.csv")
    words = ("judge", "calibrate", "--labels", path, "--evalset", "shop", "--by", "Ann", "--json")
    made = json.loads(call(shop, *words).out)["calibration"]
    assert (made["labels"], made["source"], made["annotators"]) == ("human", path, ["ann", "bo"])
    shown = json.loads(call(shop, "judge", "show", "grounded", "--json").out)
    assert shown["judges"]["grounded"]["calibration"] == "current"
    written(shop, [row(name, reply="Hello.", accuracy=0)], "round.csv")
    shown = json.loads(call(shop, "judge", "show", "grounded", "--json").out)["judges"]["grounded"]
    assert (shown["calibration"], "its labels" in shown["changes"][0]) == ("changed", True)
