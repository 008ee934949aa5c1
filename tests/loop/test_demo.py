"""The demo as it runs, on fewer items: every stage is measured, nothing of it is prepared."""

import asyncio
import subprocess
import sys

import pytest

from harness_cli.loop.demo.run import run_demo
from harness_cli.records.manifest import Manifest
from harness_cli.records.reader import read_json


class Listener:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str = "") -> None:
        self.lines.append(text)

    def command(self, text: str) -> None:
        self.lines.append(f"$ {text}")

    def rows(self, columns, rows) -> None:
        self.lines += [" ".join(str(c) for c in row) for row in rows]


@pytest.mark.timeout(600)
def test_the_demo_ends_with_a_promoted_and_verified_manifest(tmp_path):
    listener = Listener()
    done = asyncio.run(run_demo(tmp_path / "shop", listener, evolutions=1, limit=60))
    base = done.stages[0]
    assert base.name == "base"
    assert base.decision == "PASS"
    assert sum(base.counts.values()) == 60
    assert done.verified
    assert done.verified_after_rollback
    assert done.rolled_back_to in ("", base.manifest)

    commands = [line for line in listener.lines if line.startswith("$")]
    assert [c.split()[1:3] for c in commands[:3]] == [
        ["harness", "init"],
        ["harness", "eval"],
        ["harness", "promote"],
    ]
    advised = [line for line in listener.lines if line.startswith("   advice: ")]
    assert len(advised) == len(done.stages) + 1, "after each stage, and with the record"
    assert any("systematic clusters are left" in line and "%" in line for line in advised)
    manifest = read_json(tmp_path / "shop" / "manifests" / f"{base.manifest}.json", Manifest)
    approvers = {a.by for a in manifest.predicate.approvals}
    assert approvers == {"the demo's user (by flag)"}
    for stage in done.stages[1:]:
        assert stage.edits
        assert set(stage.delta) >= {"accuracy", "effectiveness", "avg"}
        gained = stage.delta["avg"]["mean"] > 0
        assert stage.credit
        assert {c["mark"] for c in stage.credit} <= {"helped", "hurt", "cannot tell"}
        assert all(c["fixed"] <= c["promised"] for c in stage.credit)
        assert (stage.manifest is not None) == (gained and stage.decision == "PASS")
    proposals = list((tmp_path / "shop").glob("proposal-*.yaml"))
    for path in proposals:
        assert "script: true" in path.read_text()
    log = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "log", "--chart", "-C", str(tmp_path / "shop")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "base" in log.stdout
    assert "A Accuracy" in log.stdout
