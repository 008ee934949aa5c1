"""Promotion on a real project: runs, gates, manifest, verification on a clone, rollback."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GATES = """\
schema: 1
gates:
  - {name: provenance, kind: provenance}
  - {name: judge, kind: judge, accept_judges: [grounded]}
  - {name: tools, kind: tools}
  - {name: business, kind: regression, evalset: live_stream_qa, split: dev, minimum_n: 30}
  - {name: approvals, kind: approvals, approvals: 1}
"""
LIMIT = "30"


def harness(root: Path, *args: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", *args],
        cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def asked(root: Path, *args: str, code: int = 0) -> dict:
    return json.loads(harness(root, *args, "--json", code=code))


def git(root: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(root: Path, message: str) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, isolated_session) -> Path:
    """A project whose base harness has been measured; tests copy it."""
    root = tmp_path_factory.mktemp("promotion") / "shop"
    harness(root.parent, "init", "shop")
    (root / "gates.yaml").write_text(GATES)
    commit(root, "gates of the test")
    harness(root, "eval", "live_stream_qa", "--limit", LIMIT, "--quiet")
    return root


@pytest.fixture
def project(measured, tmp_path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "shop", symlinks=True))


def gates(done: dict) -> dict[str, str]:
    return {g["name"]: g["outcome"] for g in done["gates"]}


def test_a_missing_approval_alone_exits_3_and_writes_nothing(project):
    done = asked(project, "promote", code=3)
    assert gates(done) == {
        "provenance": "PASS", "judge": "PASS", "tools": "PASS", "business": "PASS",
        "approvals": "PENDING",
    }  # fmt: skip
    assert "--approve" in done["hint"]
    assert not list((project / "manifests").glob("*.json"))
    assert git(project, "status", "--porcelain") == ""


def test_a_promoted_manifest_verifies_on_a_clean_clone_without_runs(project, tmp_path):
    done = asked(project, "promote", "--approve", "Ann")
    assert done["outcome"] == "PASS"
    assert git(project, "status", "--porcelain") == ""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(project), str(clone))
    found = asked(clone, "manifest", "verify", done["manifest"])
    checks = {c["what"]: c["outcome"] for c in found["manifests"][done["manifest"]]}
    assert found["verified"] is True
    assert checks["harness tree"] == checks["gate business"] == checks["inventory"] == "verified"
    assert checks["gate approvals"] == checks["authors"] == "verified"


@pytest.mark.parametrize("target", ["manifest", "evidence", "switch"])
def test_a_forged_file_does_not_verify(project, target):
    name = asked(project, "promote", "--approve", "Ann")["manifest"]
    folder = project / "manifests"
    if target == "evidence":
        from harness_cli.records.manifest import EvidenceLine
        from harness_cli.release.evidence import read_evidence, write_evidence

        path = folder / "evidence" / f"{name}.jsonl.zst"
        lines = list(read_evidence(path.read_bytes(), name="e"))
        better = [
            EvidenceLine(run=e.run, item_id=e.item_id, state="passed", scores={"avg": 1.0})
            for e in lines
        ]
        write_evidence(path, better)
    else:
        path = folder / f"{name}.json"
        made = json.loads(path.read_text())
        bound = made["predicate"]
        if target == "manifest":
            bound["inventory"][0]["sha256"] = "0" * 64
        else:
            bound["policy"]["id"] = "another@1"
        path.write_text(json.dumps(made))
    assert asked(project, "manifest", "verify", name, code=1)["verified"] is False


def test_an_uncommitted_harness_is_measured_but_never_promoted(project):
    skill = project / "harness_repo" / "skills" / "thanks" / "SKILL.md"
    skill.write_text(skill.read_text() + "\n- One more rule.\n")
    harness(project, "eval", "live_stream_qa", "--limit", LIMIT, "--quiet")
    done = asked(project, "promote", "--approve", "Ann", code=10)
    assert gates(done)["provenance"] == "FAIL"


def test_too_few_items_are_inconclusive_and_never_promote(project):
    skill = project / "harness_repo" / "skills" / "thanks" / "SKILL.md"
    skill.write_text(skill.read_text() + "\n- One more rule.\n")
    commit(project, "a rule")
    harness(project, "eval", "live_stream_qa", "--limit", "8", "--quiet")
    done = asked(project, "promote", "--approve", "Ann", code=11)
    assert gates(done)["business"] == "INCONCLUSIVE"
    assert done["manifest"] is None


def test_the_second_release_is_compared_with_the_first_and_can_be_rolled_back(project):
    first = asked(project, "promote", "--approve", "Ann")["manifest"]
    skill = project / "harness_repo" / "skills" / "thanks" / "SKILL.md"
    skill.write_text(skill.read_text() + "\n- Thank people by name where they gave one.\n")
    commit(project, "thank by name")
    harness(project, "eval", "live_stream_qa", "--limit", LIMIT, "--quiet")
    second = asked(project, "promote", "--approve", "Ann")
    assert second["incumbent"] == first
    business = next(g for g in second["gates"] if g["name"] == "business")
    assert business["numbers"]["n"] == int(LIMIT)
    differences = asked(project, "manifest", "diff", first, second["manifest"])["differences"]
    assert [d[0] for d in differences if d[0].startswith("skill")] == ["skill thanks"]

    served = asked(project, "status")["channels"][0]
    assert (served["harness_manifest"], served["proven"]) == (second["manifest"], True)
    back = asked(project, "rollback", "dev", "--harness")
    assert (back["harness"], back["policy"]) == (first, second["manifest"])
    assert git(project, "status", "--porcelain") == ""
    assert asked(project, "manifest", "verify", "--channel", "dev")["verified"] is True
    harness(project, "rollback", "dev", code=1)


def test_a_plan_before_anything_was_run_names_every_run_and_whether_n_can_decide(tmp_path):
    harness(tmp_path, "init", "new")
    root = tmp_path / "new"
    path = root / "gates.yaml"
    path.write_text(path.read_text().replace("minimum_n: 100}", "minimum_n: 101}"))
    done = asked(root, "promote", "--plan")
    pair = f"--policy builtin --harness {git(root, 'rev-parse', 'HEAD')[:12]}"
    assert [m["command"] for m in done["missing"]] == [
        f"harness eval live_stream_qa --split dev {pair}",
        f"harness eval general_instructions {pair}",
        f"harness eval deploy_replay {pair} --profile replay --concurrency 1",
    ]
    assert [m["estimate"]["rollouts"] for m in done["missing"]] == [482, 90, 110]
    assert [m["estimate"]["calls"] for m in done["missing"]] == [None] * 3  # unknown is no 0
    reach = {r["gate"]: (r["n"], r["minimum_n"], r["enough"]) for r in done["reach"]}
    assert reach["business"] == (482, 30, True)
    assert reach["latency"] == (100, 101, False)
    assert gates(done)["tools"] == "PASS"
    assert not (root / ".harness" / "runs").exists()
    harness(root, "promote", "--plan", "--approve", "Ann", code=2)  # of which pair?
    assert not (root / "manifests" / "approvals.jsonl").exists()


def test_a_plan_says_what_is_missing_and_runs_nothing(project):
    path = project / "gates.yaml"
    path.write_text(
        GATES + "  - {name: latency, kind: latency, evalset: deploy_replay, minimum_n: 100}\n"
    )
    before = len(list((project / ".harness" / "runs").iterdir()))
    done = asked(project, "promote", "--plan", "--approve", "Ann")
    assert [m["gate"] for m in done["missing"]] == ["latency"]
    assert "--profile replay" in done["missing"][0]["command"]
    assert "110 rollouts" in done["missing"][0]["cost"]
    assert "unknown tokens, no money" in done["missing"][0]["cost"]  # builtin counts none
    reach = {r["gate"]: (r["n"], r["minimum_n"], r["enough"]) for r in done["reach"]}
    assert reach == {"business": (30, 30, True), "latency": (100, 100, True)}
    path.write_text(path.read_text().replace("minimum_n: 100", "minimum_n: 101"))
    told = harness(project, "promote", "--plan")
    assert "n: latency has 100 of at least 101: it cannot decide" in told
    assert len(list((project / ".harness" / "runs").iterdir())) == before


def test_a_dry_run_decides_and_switches_nothing(project):
    junit = ("--junit", "gates.xml")
    found = asked(project, "promote", "--dry-run", "--approve", "Ann", *junit)
    assert found["outcome"] == "PASS"
    assert "<failure" not in (project / "gates.xml").read_text()
    assert not (project / "manifests" / "channels").exists()


def test_drifted_tools_stop_a_promotion_with_exit_12(project):
    lock = project / "harness_repo" / "tools" / "mcp.lock.json"
    made = json.loads(lock.read_text())
    tool = made["servers"]["marketing"]["calculate_promotion"]
    tool["tool"]["description"] = "another description"
    from harness_cli.harness.tools import tool_digest
    from harness_cli.records.harness import Tool
    from harness_cli.records.reader import decode

    tool["sha256"] = tool_digest(decode(Tool, tool["tool"]))
    lock.write_text(json.dumps(made))
    commit(project, "a lock that the server does not keep")
    harness(project, "eval", "live_stream_qa", "--limit", LIMIT, "--quiet")
    assert gates(asked(project, "promote", "--approve", "Ann", code=12))["tools"] == "DRIFT"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gates: [{name: a, kind: regression}]\n", "names no evalset"),
        ("gates: [{name: a, kind: judge}, {name: a, kind: tools}]\n", "stands twice"),
        ("gates: [{name: a, kind: hope}]\n", "gates.yaml:1"),
        ("schema: 9\ngates: []\n", "schema 9"),
    ],
)
def test_a_wrong_gate_file_exits_2_with_its_place(project, text, words):
    (project / "gates.yaml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "promote"],
        cwd=project, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.parametrize("line", ["{bad", "[1]", '{"by": "Ann"}'])
def test_a_wrong_line_of_the_approvals_exits_2_with_its_place(project, line):
    (project / "manifests").mkdir(exist_ok=True)
    whole = {"by": "Ann", "at": "2026-01-01T00:00:00Z", "subject": "other"}
    (project / "manifests/approvals.jsonl").write_text(f"{json.dumps(whole)}\n{line}\n")
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "promote", "--no-run", "--dry-run"],
        cwd=project, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "manifests/approvals.jsonl:2: " in done.stderr


def test_a_channel_that_moves_meanwhile_makes_the_promotion_stale(project):
    import asyncio

    from harness_cli.errors import Stale
    from harness_cli.records.manifest import Approval, Channel, SwitchEvent
    from harness_cli.release.candidate import named_run, pair_of_run, read_gates
    from harness_cli.release.channels import write_channel
    from harness_cli.release.drift import drifted_tools
    from harness_cli.release.gather import candidate, gather
    from harness_cli.release.promote import promote
    from harness_cli.store.project import Project

    found = Project.find(project)
    run = named_run(found, None)
    pair = pair_of_run(run.config())
    chosen = candidate(found, read_gates(found), pair, run)
    yes = Approval(by="Ann", at="2026-01-01T00:00:00Z", subject=pair.subject)
    drift = asyncio.run(drifted_tools(found, chosen.state))
    facts = gather(chosen, drift=drift, approvals=[yes])
    event = SwitchEvent(at="x", by="Bo", action="promote", policy="m", harness="m")
    write_channel(found.manifests, Channel(name="dev", policy="m", harness="m", history=(event,)))
    with pytest.raises(Stale, match="moved while the gates ran"):
        promote(chosen, facts, at="2026-01-01T00:00:00Z", by="Ann")
    assert not list(found.manifests.glob("*.json"))
