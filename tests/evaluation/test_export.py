"""A run for other tools: the log of inspect_ai, JUnit; and the real reader, where it is at hand."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import pytest
from imported_files import (
    DID,
    tau2_file,
    tau2_simulation,
    tau_record,
    write,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.exports.inspect_log import export_inspect, finished, is_listed
from harness_cli.evaluation.imports.bring_in import bring_in
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.store.runs import RunStore

INSPECT = os.environ.get("HARNESS_INSPECT_PYTHON", "")
"""A Python that has inspect-ai, in an environment of its own."""
SAMPLE = {
    "id": str,
    "epoch": int,
    "input": str,
    "target": (str, list),
    "messages": list,
    "output": dict,
    "scores": dict,
    "metadata": dict,
    "model_usage": dict,
    "uuid": str,
}
"""Fields of inspect's EvalSample (0.3.285) that we write, and their types."""
ROLES = {
    "system": {"id", "role", "content"},
    "user": {"id", "role", "content"},
    "assistant": {"id", "role", "content", "source", "tool_calls"},
    "tool": {"id", "role", "content", "tool_call_id", "function", "error"},
}


@pytest.fixture
def tau2_run(make_project):
    project = make_project()
    value = tau2_file([tau2_simulation(reward=0.0), tau2_simulation(trial=1)])
    made = bring_in(project, "tau2", write(project.root, "r.json", value), ImportOptions())
    return project, made.run


def exported(project, run, folder):
    path, count = export_inspect(project, run, folder)
    log = json.loads(path.read_text())
    assert count == len(log["samples"])
    return path, log


def test_every_sample_has_the_fields_of_inspect_with_their_types(tau2_run, tmp_path):
    path, log = exported(*tau2_run, tmp_path)
    assert is_listed(path.name)
    assert (log["version"], log["status"]) == (2, "success")
    assert {"created", "task", "dataset", "model", "config"} <= log["eval"].keys()
    assert log["eval"]["config"]["epochs"] == 2
    assert [s["epoch"] for s in log["samples"]] == [1, 2]
    for sample in log["samples"]:
        wrong = {k for k, kind in SAMPLE.items() if not isinstance(sample.get(k), kind)}
        assert not wrong
        for message in sample["messages"]:
            assert message.keys() <= ROLES[message["role"]], message
            assert isinstance(message["content"], str)
        ids = [m["id"] for m in sample["messages"]]
        assert len(set(ids)) == len(ids)


def test_calls_errors_usage_and_the_end_of_the_dialogue_are_carried_over(tau2_run, tmp_path):
    _, log = exported(*tau2_run, tmp_path)
    sample = log["samples"][0]
    roles = [m["role"] for m in sample["messages"]]
    assert roles == [
        "assistant", "user", "user", "tool", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    called = sample["messages"][4]["tool_calls"][0]
    assert (called["function"], called["arguments"]) == (
        "return_item",
        {"order": "W1", "item": "i9"},
    )
    answer = sample["messages"][5]
    assert answer["tool_call_id"] == called["id"]
    assert (answer["function"], answer["error"]["type"]) == ("return_item", "unknown")
    assert "check_lamp({})" in sample["messages"][2]["content"]
    assert sample["messages"][-1]["content"] == "###STOP###"
    assert sample["output"]["usage"] == {
        "input_tokens": 20,
        "output_tokens": 10,
        "total_tokens": 30,
    }
    assert sample["scores"]["reward"]["value"] == 0.0
    assert sample["output"]["completion"] == "It cannot be found."


def test_an_exported_log_comes_back_with_the_same_scores(make_project, tmp_path):
    project = make_project()
    records = [tau_record(0, 0, calls=[DID]), tau_record(0, 1, 0.0)]
    made = bring_in(project, "tau-bench", write(tmp_path, "r.json", records), ImportOptions())
    path, _ = exported(project, made.run, tmp_path)
    again = bring_in(project, "inspect", path, ImportOptions(name="back"))
    first = {(r.item_id, r.repeat): r.scores["reward"] for r in made.run.results()}
    second = {(r.item_id, r.repeat): r.scores["reward"] for r in again.run.results()}
    assert first == second == {("0", 0): 1.0, ("0", 1): 0.0}
    called = [[c.name for c in t.calls] for t in again.run.trajectories()]
    assert called == [["cancel_reservation"], []]


def test_a_secret_is_in_no_exported_log(make_project, tmp_path):
    project = make_project()
    key = "sk-" + "a1B2c3D4" * 4
    record = tau_record(0, 0, end=f"Your key is {key}.")
    made = bring_in(project, "tau-bench", write(tmp_path, "r.json", [record]), ImportOptions())
    path, _ = exported(project, made.run, tmp_path)
    assert key not in path.read_text()
    assert key not in made.run.journal.read_text()


def test_a_run_without_a_report_and_a_folder_that_is_not_there_are_refused(tau2_run, tmp_path):
    project, run = tau2_run
    with pytest.raises(UsageError, match="no folder"):
        export_inspect(project, run, tmp_path / "no" / "log.json")
    run.report_file.unlink()
    with pytest.raises(BadFile, match="not finished"):
        finished(RunStore(project.runs).get(run.id))


READER = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log
folder, copy = sys.argv[1:]
(info,) = list_eval_logs(folder)
log = read_eval_log(info)
write_eval_log(log, copy)
scores = [[s.id, s.epoch, s.scores["reward"].value, len(s.messages)] for s in log.samples]
print(json.dumps({"status": log.status, "scores": scores}))
"""


@pytest.mark.accept
@pytest.mark.timeout(600)
@pytest.mark.skipif(not INSPECT, reason="HARNESS_INSPECT_PYTHON names no Python with inspect-ai")
def test_inspect_itself_lists_reads_rewrites_and_serves_the_log(tau2_run, tmp_path):
    project, run = tau2_run
    logs = tmp_path / "logs"
    logs.mkdir()
    path, _ = exported(project, run, logs)
    copy = tmp_path / "copy.eval"
    done = subprocess.run(
        [INSPECT, "-c", READER, str(logs), str(copy)], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told == {"status": "success", "scores": [["t1", 1, 0.0, 8], ["t1", 2, 1.0, 8]]}
    again = bring_in(project, "inspect", copy, ImportOptions(name="copy"))
    assert [r.scores["reward"] for r in again.run.results()] == [0.0, 1.0]
    assert path.name in served(logs)


def served(logs):
    """What `inspect view` answers when it is asked for the logs of a folder."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    program = str(Path(INSPECT).with_name("inspect"))
    words = ["view", "start", "--log-dir", str(logs), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen([program, *words], stdout=sys.stderr) as server:
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            end = time.monotonic() + 300
            while True:
                try:
                    return opener.open(f"http://127.0.0.1:{port}/api/logs").read().decode()
                except OSError:
                    if time.monotonic() > end or server.poll() is not None:
                        raise
                    time.sleep(1)
        finally:
            server.terminate()


def test_a_folder_that_is_not_there_yet_is_made_as_docs_show_it(tau2_run):
    project, run = tau2_run
    done = call(project.root, "export", "inspect", "--run", run.id, "-o", "logs/", "-q")
    assert done.code == 0, done.err
    (made,) = (project.root / "logs").iterdir()
    assert is_listed(made.name)
    assert call(project.root, "export", "inspect", "-o", "no/such/", "-q").code == 2


def test_junit_names_what_was_measured_by_digest(tau2_run):
    project, run = tau2_run
    done = call(project.root, "export", "junit", "--run", run.id, "-o", "units.xml", "--json")
    assert done.code == 0, done.err
    suite = ElementTree.parse(project.root / "units.xml").getroot()[0]
    told = {p.get("name"): p.get("value") for p in suite.find("properties")}
    config = run.config()
    assert told["evalset"] == config.evalset.digest
    assert told["imported"] == config.imported.sha256
    assert "harness" not in told
    assert [c.get("name") for c in suite.findall("testcase")] == ["t1"]


def test_show_run_says_where_an_imported_run_comes_from(tau2_run):
    project, run = tau2_run
    shown = call(project.root, "show", "run", run.id).out
    assert "imported from r.json (tau2), user simulator model-u: never promoted" in shown
