"""`harness compare a,b,c d,e,f`: T2's table out of run folders."""

import json

import pytest
from typer.testing import CliRunner

from harness_cli.errors import UsageError
from harness_cli.main import app
from harness_cli.records.canonical import write_json
from harness_cli.records.run import EvalsetRef, MetricSummary, Report, RunConfig
from harness_cli.store.runs import RunStore

DOMAINS = ("retail", "airline", "telecom")
SFT = [(71.3, 51.0, 73.0), (69.7, 59.0, 75.0), (66.2, 58.5, 72.1), (63.8, 55.0, 72.5),
       (66.2, 54.0, 74.8)]  # fmt: skip
RL = [(67.5, 62.5, 87.1), (68.6, 55.0, 82.7), (69.1, 55.0, 84.6), (67.8, 56.0, 88.2),
      (67.3, 55.5, 86.8)]  # fmt: skip


def summary(percent):
    return (MetricSummary(metric="passed", mean=percent / 100, scored=1, of=1),)


def make_run(project, run, domains, **more):
    settings = {"harness_id": "h" * 40, "policy": "p", "policy_id": run[0], "judge": "tau2",
                "judge_id": "tau2", **more}  # fmt: skip
    config = RunConfig(
        id=run, evalset=EvalsetRef(name="tau2", split=None, digest="d", n=3), **settings
    )
    folder = RunStore(project / ".harness" / "runs").create(config)
    report = Report(
        run=config,
        status="complete",
        counts={},
        planned=3,
        metrics=summary(sum(domains) / 3),
        categories=dict(zip(DOMAINS, map(summary, domains), strict=True)),
    )
    write_json(folder.report_file, report)


def harness(*words):
    done = CliRunner().invoke(app, words)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    monkeypatch.chdir(tmp_path)
    for n, (sft, rl) in enumerate(zip(SFT, RL, strict=True)):
        make_run(tmp_path, f"s{n}", sft)
        make_run(tmp_path, f"r{n}", rl)
    return tmp_path


GROUPS = (",".join(f"s{n}" for n in range(5)), ",".join(f"r{n}" for n in range(5)))


def test_the_table_of_t2_comes_out_of_ten_runs(project):
    found = json.loads(harness("compare", *GROUPS, "--json").stdout)
    shown = {
        row["name"]: (
            round(row["spread"]["delta"], 1),
            row["spread"]["delta_rounded"],
            round(row["spread"]["significance"], 1),
            row["spread"]["reading"],
        )
        for row in found["categories"]
    }
    assert shown == {
        "retail": (0.6, 0.7, 0.2, "within random variation"),
        "airline": (1.3, 1.3, 0.3, "within random variation"),
        "telecom": (12.4, 12.4, 4.8, "definitive"),
        "mean of categories": (4.8, 4.7, 2.3, "significant"),
    }
    text = harness("compare", *GROUPS).stdout
    assert "Δ of rounded" in text
    assert "passed by category" in text


def test_groups_that_are_not_one_thing_each_are_refused(project):
    make_run(project, "x1", RL[0], judge_id="other")
    for a, b, message in (
        ("s0,r0", "r1", "not of one policy and harness"),
        ("s0,s1", "x1", "not of one items and judge"),
        ("s0,s1", "s1", "is named twice"),
        ("s0,nope", "r1", "no run named `nope`"),
    ):
        with pytest.raises(UsageError, match=message):
            harness("compare", a, b)
