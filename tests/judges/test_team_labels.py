"""How far the shipped judge agrees with the team labels: floors a little below the measured."""

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness_cli.main import app

ROOT = Path(__file__).parents[2]
LABELS = ROOT / "evalsets" / "judge_labels" / "team_labels.jsonl"
FROZEN = "7d42d0363eceb835f9469bb59ec721c943b33e9a9d3559d3c5ade061931ba5fb"
"""SHA-256 of the labels as they were before a judge saw them."""
FLOORS = {"accuracy": (0.80, 0.55), "effectiveness": (0.70, 0.54)}
"""Raw agreement and κ; the first measurement gave 0.840, 0.632 and 0.740, 0.614."""
RECALL = {
    "missed_comment": 11,
    "over_refusal": 11,
    "partial": 9,
    "should_have_refused": 12,
    "unsupported_claim": 13,
    "wrong_price": 11,
    "wrong_service": 10,
}
"""Replies of a kind that are marked down, of 10 to 17."""


@pytest.fixture(scope="module")
def report():
    words = ["judge", "agree", str(LABELS), "--json", "-C", str(ROOT)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_labels_are_the_ones_that_were_written_before_a_judge_saw_them():
    assert hashlib.sha256(LABELS.read_bytes()).hexdigest() == FROZEN


def test_every_labelled_reply_is_judged(report):
    assert (report["n"], report["unscored"]) == (250, 0)


@pytest.mark.parametrize("metric", FLOORS)
def test_the_judge_agrees_with_the_team_at_least_as_far_as_stated(report, metric):
    raw, kappa = FLOORS[metric]
    assert report[metric]["raw"] >= raw
    assert report[metric]["kappa"] >= kappa


@pytest.mark.parametrize("kind", RECALL)
def test_faults_the_judge_is_known_to_catch_are_caught(report, kind):
    caught = {k["kind"]: k["caught"] for k in report["kinds"]}
    assert caught[kind] >= RECALL[kind]
