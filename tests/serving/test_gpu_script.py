"""The script for one GPU, without one: its jobs pass every check, its words are verbs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from test_sglang_contract import parse, parser_of

from benchmarks.gpu import h20
from harness_cli.commands._lazy import load
from harness_cli.records.reader import read_yaml
from harness_cli.records.serve_job import ServeJob
from harness_cli.serving.sglang.command import sglang_words
from harness_cli.serving.sglang.rules import job_findings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def plan(tmp_path):
    made = h20.Plan(tmp_path / "model", tmp_path / "out", "NVIDIA H20", None)
    h20.write_jobs(made)
    return made


def jobs(plan):
    return {arm: read_yaml(plan.out / f"serve-{arm}.yaml", ServeJob) for arm in h20.ARMS}


def test_its_job_files_have_no_error_and_the_lossy_one_is_warned_of(plan):
    found = {arm: list(job_findings(job)) for arm, job in jobs(plan).items()}
    assert not [f for findings in found.values() for f in findings if f.level == "error"]
    assert [f.rule for f in found["on"]] == ["serve/mtp-lossy"]
    assert found["off"] == found["exact"] == []


def test_its_servers_get_commands_that_the_real_options_take(plan):
    parser = parser_of(h20.SGLANG)
    for arm, job in jobs(plan).items():
        words = sglang_words(job, model=job.model, host="127.0.0.1", port=30000, sha256=None)
        assert words[0] == str(plan.engine)
        parsed, said = parse(parser, words[3:])
        assert parsed is not None, said
        assert (parsed.speculative_algorithm is None) == (arm == "off")


def test_every_command_of_it_is_one_that_the_verbs_take(plan):
    """Each line is parsed by the verb itself, which then does not run."""
    seen = set()
    for step in h20.steps(plan):
        if "harness_cli.main" not in step.words:
            continue
        verb, *rest = h20.filled(step)[3:]
        command = load(verb)
        with command.make_context(verb, rest) as context:
            name, sub, args = verb, command, rest
            if isinstance(command, typer.core.TyperGroup):
                name, sub, args = command.resolve_command(context, rest)
                sub.make_context(name, args, parent=context)
        seen.add(f"{verb} {name}")
    assert {"bench replay", "bench report", "serve up", "serve down", "serve logs"} <= seen


def test_a_dry_run_prints_all_of_it_and_starts_nothing(tmp_path):
    words = ["--model", "/models/host", "--out", str(tmp_path / "out"), "--dry-run"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu.h20", *words],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("nvidia-smi")
    assert sum("bench replay" in line for line in lines) == 6
    assert sum("serve up" in line for line in lines) == 3
    assert lines[-1].count("<group of") == 2
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "serve-exact.yaml", "serve-off.yaml", "serve-on.yaml",
    ]  # fmt: skip


def test_what_ended_is_not_done_again_and_groups_are_read_from_the_replays(plan, capsys):
    replay = plan.out / "on-c4.json"
    replay.write_text(json.dumps({"contracts": [{"group": "g-7"}]}))
    step = h20.Step(("false",), keep=replay)
    h20.run(step)
    assert "done: false" in capsys.readouterr().out
    report = h20.Step(("echo", "{group}"), keep=plan.out / "r.txt", group_of=replay)
    h20.run(report)
    assert (plan.out / "r.txt").read_text() == "g-7\n"
    with pytest.raises(SystemExit, match="exit code 1"):
        h20.run(h20.Step(("false",)))
