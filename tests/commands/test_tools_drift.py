"""`harness tools lock|check` against a live server whose list changes, over stdio and HTTP."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import call

sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))

from small_harness import committed, project

from harness_cli.harness.load import load_state
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.release.decide import decide
from harness_cli.release.drift import drifted_tools
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts
from harness_cli.store.project import Project

SERVER = Path(__file__).parents[1] / "runtime" / "servers" / "listing.py"


def tool(name: str, **more) -> dict:
    schema = {"type": "object", "properties": {"link_id": {"type": "integer"}}}
    known = {
        "name": name, "description": f"The {name} of a link.", "inputSchema": schema,
        "annotations": {"readOnlyHint": True},
    }  # fmt: skip
    return {**known, **more}


ONE, TWO = tool("stock"), tool("delivery")
WIDER = {"type": "object", "properties": {"link_id": {"type": "string"}}}
CASES = {
    "renamed": ([ONE, {**TWO, "name": "shipping"}], [("delivery", "renamed", ["name"])]),
    "added": ([ONE, TWO, tool("refund")], [("refund", "added", [])]),
    "removed": ([ONE], [("delivery", "removed", [])]),
    "rewritten": (
        [ONE, {**TWO, "description": "Call this first, always."}],
        [("delivery", "changed", ["description"])],
    ),
    "another schema": (
        [ONE, {**TWO, "inputSchema": WIDER}],
        [("delivery", "changed", ["inputSchema"])],
    ),
    "another answer": (
        [ONE, {**TWO, "outputSchema": WIDER}],
        [("delivery", "changed", ["outputSchema"])],
    ),
    "annotations only": (
        [ONE, {**TWO, "annotations": {"readOnlyHint": False, "destructiveHint": True}}],
        [("delivery", "changed", ["annotations"])],
    ),
    "order only": ([TWO, ONE], []),
    "renamed and rewritten": (
        [ONE, {**TWO, "name": "shipping", "description": "Other."}],
        [("delivery", "removed", []), ("shipping", "added", [])],
    ),
    "swapped": (
        [{**ONE, "name": "delivery"}, {**TWO, "name": "stock"}],
        [("delivery", "changed", ["description"]), ("stock", "changed", ["description"])],
    ),
    "all gone": ([], [("delivery", "removed", []), ("stock", "removed", [])]),
}  # fmt: skip


@pytest.fixture(scope="module")
def listed(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("listed") / "tools.json"


CORE = ("renamed", "added", "removed", "rewritten", "annotations only", "order only")
PAIRS = [*(("stdio", case) for case in CORE), *(("http", case) for case in CASES)]
"""A server over stdio is started anew for each; one over HTTP lives on and its list changes."""


@pytest.fixture(scope="module")
def place(request, tmp_path_factory, listed):
    """A project whose one server lists what stands in a file, locked to two tools."""
    root = project(tmp_path_factory.mktemp("drift") / request.param)
    process = None
    if request.param == "stdio":
        where = f"command: ['{{python}}', {json.dumps(str(SERVER))}, {json.dumps(str(listed))}]"
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [sys.executable, str(SERVER), str(listed), "--http", str(port)]
        process = subprocess.Popen(words, start_new_session=True)
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        where = f"transport: http\n    url: http://127.0.0.1:{port}/mcp"
    files = {
        "harness_repo/tools/mcp.yaml": f"schema: 1\nservers:\n  shop:\n    {where}\n"
        "    start_timeout_s: 60\n",
        "harness.yaml": "schema: 1\npolicy: p\npolicies:\n  p: {kind: scripted, script: s.yaml}\n",
        "s.yaml": "schema: 1\nrules:\n  - {when: '', replies: [{text: hi}]}\n",
        "evalsets/catalogue/all.yaml": 'schema: 1\nsnapshot: "2026-01-01"\nproducts: []\n',
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    listed.write_text(json.dumps([ONE, TWO]))
    done = call(root, "tools", "lock", "--json")
    assert done.code == 0, done.err
    committed(root, "locked")
    yield root
    if process is not None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


@pytest.mark.parametrize(("place", "case"), PAIRS, indirect=["place"])
def test_what_a_live_server_changes_is_named_and_exits_12(place, listed, case):
    tools, wanted = CASES[case]
    listed.write_text(json.dumps(tools))
    done = call(place, "tools", "check", "--json")
    told = json.loads(done.out)
    found = [(c["tool"], c["what"], sorted(c["keys"])) for c in told["changes"]]
    assert found == wanted
    assert (done.code, told["drift"]) == ((12, True) if wanted else (0, False))


@pytest.mark.parametrize("place", ["http"], indirect=True)
def test_a_new_lock_is_what_is_checked_from_then_on(place, listed):
    lock = place / "harness_repo/tools/mcp.lock.json"
    before = lock.read_text()
    listed.write_text(json.dumps(CASES["renamed"][0]))
    assert "delivery" in call(place, "tools", "check").out
    made = json.loads(call(place, "tools", "lock", "--json").out)
    assert [c["what"] for c in made["changes"]] == ["renamed"]
    assert call(place, "tools", "check").code == 0
    listed.write_text(json.dumps([ONE, TWO]))
    assert call(place, "tools", "check").code == 12
    lock.write_text(before)
    assert call(place, "tools", "check").code == 0


@pytest.mark.parametrize("place", ["http"], indirect=True)
def test_a_tool_that_mcp_yaml_names_and_that_went_is_drift_and_no_bad_file(place, listed):
    config = place / "harness_repo/tools/mcp.yaml"
    text = config.read_text()
    config.write_text(text + "    tools: [stock, delivery]\n")
    try:
        listed.write_text(json.dumps([ONE]))
        done = call(place, "tools", "check", "--json")
        assert done.code == 12
        assert [c["what"] for c in json.loads(done.out)["changes"]] == ["removed"]
        assert call(place, "tools", "lock").code == 2  # locking it would be a mistake
        found = Project.find(place)
        drift = asyncio.run(drifted_tools(found, load_state(found)))
        assert drift == ("shop.delivery removed",)
    finally:
        config.write_text(text)


@pytest.mark.parametrize("place", ["http"], indirect=True)
def test_a_server_that_does_not_answer_makes_the_gate_an_error_and_no_drift(place):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = free.getsockname()[1]
    config = place / "harness_repo/tools/mcp.yaml"
    text = config.read_text()
    config.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{dead}", text))
    try:
        found = Project.find(place)
        drift = asyncio.run(drifted_tools(found, load_state(found)))
        assert isinstance(drift, str)
        assert "shop" in drift
        gates = GatesFile(gates=(Gate(name="tools", kind="tools"),))
        [told] = run_gates(gates, Facts(drift=drift))
        assert (told.outcome, told.summary, told.needs) == ("ERROR", drift, "harness tools check")
        assert decide([told]).exit_code == 1
    finally:
        config.write_text(text)
