"""Rates of failures for rooms, taken from what was recorded."""

import json
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from lesson_shop import make_lesson_shop

from harness_cli.records.trajectory import ToolErrorKind, ToolResult
from harness_cli.simulator.fault_rates import main
from harness_cli.store.runs import RunFolder


@pytest.fixture
def shop(tmp_path):
    sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))
    from program import call

    project = make_lesson_shop(tmp_path / "shop")
    assert call(project.root, "eval", "shop", "-q").code == 0
    return project.root


def test_rates_are_those_of_the_newest_run(shop, monkeypatch, capsys):
    """Every second call that reached the service is made a timeout of it."""
    recorded = RunFolder.trajectories
    seen = []

    def failing(run, wanted=None):
        for trajectory in recorded(run, wanted):
            steps = []
            for step in trajectory.steps:
                calls = []
                for call in step.calls:
                    if call.executor not in ("", "builtin") and call.result.ok:
                        seen.append(call)
                        late = ToolResult(ok=False, content="late", error=ToolErrorKind.TIMEOUT)
                        if len(seen) % 2:
                            call = msgspec.structs.replace(call, result=late)
                    calls.append(call)
                steps.append(msgspec.structs.replace(step, calls=tuple(calls)))
            yield msgspec.structs.replace(trajectory, steps=tuple(steps))

    monkeypatch.setattr(RunFolder, "trajectories", failing)
    assert main(["-C", str(shop)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["calls"] == len(seen) > 1
    late = (len(seen) + 1) // 2 / len(seen)
    assert told["faults"] == {"timeout": late, "malformed": 0.0, "denied": 0.0}


def test_a_run_without_a_call_is_no_rate_of_0(shop, monkeypatch, capsys):
    monkeypatch.setattr(RunFolder, "trajectories", lambda run, wanted=None: iter(()))
    assert main(["-C", str(shop)]) == 2
    assert "no call of a tool" in capsys.readouterr().err
    assert main(["-C", str(shop), "nobody"]) == 2
