"""The judge's own evolution: disagreements diagnosed, rubrics edited, nothing else touched."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness_cli.commands._editing import applying
from harness_cli.evolution.proposal_file import read_proposal
from harness_cli.records.canonical import canonical_json
from harness_cli.records.diagnosis import Proposal
from harness_cli.records.reader import load_yaml, read_yaml

PANEL = "  final: {panel: [grounded]}\n"
"""The grounded judge as the one member of a panel with its own harness: free and repeatable."""
RUBRIC = "judges/final/skills/rubric-effectiveness/SKILL.md"


def harness(root, *words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", *words],
        cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def asked(root, *words, code=0):
    return json.loads(harness(root, *words, "--json", code=code).stdout)


def git(root, *words):
    return subprocess.run(
        ["git", *words], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def shortened(root, kinds):
    """The calibration set with the corruptions of some kinds alone, under a header that fits.

    To this team half an answer is none: a judge that gives it half is lenient.
    """
    folder = root / "evalsets" / "judge_calibration"
    lines = [json.loads(x) for x in (folder / "candidates.jsonl").read_text().splitlines()]
    kept = [x for x in lines if x["replies"][-1].get("corruption") in kinds]
    for reply in (x["replies"][-1] for x in kept):
        if reply["corruption"] == "partial":
            reply["effectiveness"] = 0
    (folder / "candidates.jsonl").write_bytes(b"".join(canonical_json(x) + b"\n" for x in kept))
    header = (folder / "evalset.yaml").read_text()
    frozen = load_yaml(header, name="evalset.yaml")["digests"]["dev"]
    now = hashlib.sha256(canonical_json(kept)).hexdigest()
    text = header.replace("dev: 482", f"dev: {len(kept)}").replace(frozen, now)
    (folder / "evalset.yaml").write_text(text)


@pytest.fixture(scope="module")
def shop(tmp_path_factory, isolated_session):
    root = tmp_path_factory.mktemp("judge") / "shop"
    harness(root.parent, "init", "shop")
    config = (root / "harness.yaml").read_text()
    (root / "harness.yaml").write_text(config.replace("judges:\n", f"judges:\n{PANEL}", 1))
    shortened(root, {"partial", "human_identity"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a panel and a short set")
    return root


@pytest.fixture(scope="module")
def planned(shop):
    harness(shop, "edit", "--judge", "final", "--plan-only", "-o", "plan.yaml", "--quiet")
    return shop / "plan.yaml"


def test_diagnose_clusters_where_judge_and_labels_disagree(shop):
    made = asked(shop, "diagnose", "--judge", "final")
    assert made["failures"] > 0
    assert {c["side"] for c in made["clusters"]} == {"judge"}
    found = {c["id"]: c for c in made["clusters"]}
    assert found["lenient-partial"]["suspected_modules"] == [RUBRIC]
    assert made["harness_id"] == git(shop, "rev-parse", "HEAD:harness_repo/judges/final")
    assert (shop / ".harness" / "judges" / "final" / "diagnosis.json").is_file()


def test_the_proposal_holds_rules_for_rubrics_and_names_no_other_file(planned):
    proposal = read_yaml(planned, Proposal)
    assert proposal.edits
    for edit in proposal.edits:
        assert all(op.path.startswith("judges/final/skills/rubric-") for op in edit.ops)
        assert edit.predicted_fixes
        assert edit.classes
    shown = harness(planned.parent, "edit", "show", "plan.yaml").stdout
    assert "STALE" not in shown
    assert "saving without the amount" in shown


def test_a_judges_proposal_is_refused_without_the_judges_name(shop, planned):
    done = harness(shop, "edit", "apply", "plan.yaml", "--accept", "all", code=2)
    assert "whose files are protected" in done.stderr
    assert "--judge final" in done.stderr
    said = applying(read_proposal(planned), Path("plan.yaml"))
    assert said == "harness edit apply plan.yaml --judge final"


def test_a_hosts_files_are_refused_under_a_judges_name(shop, planned):
    text = planned.read_text().replace("judges/final/skills/rubric-effectiveness", "skills/greet")
    (shop / "host.yaml").write_text(text)
    done = harness(
        shop, "edit", "apply", "host.yaml", "--judge", "final", "--accept", "all", code=2
    )
    assert "lies outside the judge `final`" in done.stderr


def test_an_accepted_rule_is_one_commit_that_leaves_the_host_alone_and_unsettles_calibration(
    shop, planned
):
    host = asked(shop, "show", "skill", "greet")
    harness(shop, "judge", "calibrate", "--judge", "final", "--quiet")
    before = git(shop, "rev-parse", "HEAD:harness_repo/judges/final")
    done = asked(shop, "edit", "apply", "plan.yaml", "--judge", "final", "--accept", "all")
    branch = done["applied"]["branch"]
    changed = git(shop, "diff", "--name-only", "HEAD", branch).splitlines()
    assert changed
    assert all(p.startswith("harness_repo/judges/final/") for p in changed)
    assert "Evolve the judge `final`" in git(shop, "log", "-1", "--format=%s", branch)
    git(shop, "merge", "-q", "--no-edit", branch)
    after = git(shop, "rev-parse", "HEAD:harness_repo/judges/final")
    assert after == done["applied"]["harness_id"] != before
    shown = asked(shop, "judge", "show", "final")["judges"]["final"]
    assert shown["calibration"] == "changed"
    assert any(before[:12] in c and after[:12] in c for c in shown["changes"])
    assert asked(shop, "show", "skill", "greet") == host
    harness(shop, "judge", "calibrate", "--judge", "final", "--quiet")
    assert asked(shop, "judge", "show", "final")["judges"]["final"]["calibration"] == "current"


def test_a_judge_that_is_code_has_nothing_to_edit(shop):
    done = harness(shop, "edit", "--judge", "grounded", code=2)
    assert "is code" in done.stderr
    made = asked(shop, "diagnose", "--judge", "grounded")
    assert "is code" in made["advice"]["reasons"][0]


def test_an_unknown_judge_is_named(shop):
    done = harness(shop, "diagnose", "--judge", "finale", code=2)
    assert "no judge named `finale`" in done.stderr
