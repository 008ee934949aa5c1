"""A promotion under a judge that no channel accepts by name: calibrated, changed, too low."""

import json
import shutil

import pytest
from test_promotion import LIMIT, asked, commit, gates, git, harness

GATES = """schema: 1
gates:
  - {name: provenance, kind: provenance}
  - {name: judge, kind: judge, agreement: {accuracy: 0.9, effectiveness: 0.8}}
  - {name: business, kind: regression, evalset: live_stream_qa, split: dev, metric: avg}
  - {name: approvals, kind: approvals, approvals: 1}
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory, isolated_session):
    root = tmp_path_factory.mktemp("calibration") / "shop"
    harness(root.parent, "init", "shop")
    (root / "gates.yaml").write_text(GATES)
    commit(root, "gates of the test")
    harness(root, "eval", "live_stream_qa", "--limit", LIMIT, "--quiet")
    harness(root, "judge", "calibrate", "--quiet", "--by", "Ann")
    return root


@pytest.fixture
def project(measured, tmp_path):
    return shutil.copytree(measured, tmp_path / "shop", symlinks=True)


@pytest.fixture
def calibrated(project):
    commit(project, "calibration of the judge")
    return project


def record(project):
    return project / "manifests" / "calibration" / "grounded.json"


def told(done):
    return {g["name"]: g["summary"] for g in done["gates"]}


def test_without_a_calibration_the_gates_are_advisory_and_nothing_is_promoted(project):
    record(project).unlink()
    done = asked(project, "promote", "--approve", "Ann", code=11)
    assert gates(done) == {
        "provenance": "PASS", "judge": "INCONCLUSIVE", "business": "INCONCLUSIVE",
        "approvals": "PASS",
    }  # fmt: skip
    assert "not calibrated" in told(done)["judge"]
    assert told(done)["business"].startswith("advisory")
    assert "it would pass" in told(done)["business"]
    assert "harness judge calibrate" in done["hint"]
    assert not list((project / "manifests").glob("*.json"))


def test_a_calibration_that_is_not_committed_decides_nothing(project):
    done = asked(project, "promote", "--approve", "Ann", code=10)
    assert gates(done)["provenance"] == "FAIL"
    assert "grounded.json" in told(done)["provenance"]


def raised(record):
    record["accuracy"].update(raw=0.999)


def swapped(record):
    row = record["effectiveness"]["confusion"][0]
    row[0], row[1] = row[1] + 1, row[0] - 1


def another_judge(record):
    record["judge"].update(id="grounded@000000000000")


def another_set(record):
    record.update(evalset_digest="0" * 64)


FORGED = {
    raised: "calibration numbers",
    swapped: "calibration numbers",
    another_judge: "calibration of the judge",
    another_set: "calibration set",
}


def checks_of(root, name, *, code=0):
    found = asked(root, "manifest", "verify", name, code=code)
    assert found["verified"] is (code == 0)
    return {c["what"]: c["outcome"] for c in found["manifests"][name]}


def test_a_committed_calibration_promotes_is_bound_and_verifies_until_it_is_forged(
    calibrated, tmp_path
):
    done = asked(calibrated, "promote", "--approve", "Ann")
    assert "by construction" in told(done)["judge"]
    name = done["manifest"]
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(calibrated), str(clone))
    path = clone / "manifests" / f"{name}.json"
    made = path.read_text()
    judge = json.loads(made)["predicate"]["judge"]
    assert judge["standing"] == "current"
    assert judge["calibration"] == json.loads(record(calibrated).read_text())
    checks = checks_of(clone, name)
    for what in ("numbers", "of the judge", "set", "verdicts"):
        assert checks[f"calibration {what}"] == "verified", what
    assert checks["gate judge"] == checks["gate business"] == "verified"
    for forge, wrong in FORGED.items():
        forged = json.loads(made)
        forge(forged["predicate"]["judge"]["calibration"])
        path.write_text(json.dumps(forged))
        assert checks_of(clone, name, code=1)[wrong] == "wrong", forge.__name__


def test_a_judge_or_a_set_that_changed_since_is_not_trusted(calibrated):
    made = json.loads(record(calibrated).read_text())
    made["judge"]["id"] = "grounded@000000000000"
    record(calibrated).write_text(json.dumps(made))
    header = calibrated / "evalsets" / "judge_calibration" / "evalset.yaml"
    header.write_text(header.read_text().replace("version: '1'", "version: '2'"))
    commit(calibrated, "another judge and another set")
    shown = asked(calibrated, "judge", "show", "grounded")["judges"]["grounded"]
    assert shown["calibration"] == "changed"
    assert any("its code" in c for c in shown["changes"])
    assert any("its labels" in c for c in shown["changes"])
    done = asked(calibrated, "promote", "--approve", "Ann", code=11)
    assert "changed since it was calibrated" in told(done)["judge"]


def test_agreement_below_a_floor_fails_and_all_that_the_judge_grades_is_advisory(calibrated):
    """No floor that the grounded judge misses is left but perfection: it was developed on these
    labels by construction."""
    floors = "agreement: {accuracy: 0.9, effectiveness: 0.8}"
    wanted = GATES.replace(floors, "agreement: {effectiveness: 1.0}")
    (calibrated / "gates.yaml").write_text(wanted)
    commit(calibrated, "other floors")
    done = asked(calibrated, "promote", "--approve", "Ann", code=10)
    assert gates(done)["judge"] == "FAIL"
    assert "effectiveness 0.9" in told(done)["judge"]
    assert gates(done)["business"] == "INCONCLUSIVE"
