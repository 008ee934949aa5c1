"""The adapter of docs/examples under real `verifiers`, in a virtual environment of its own.

`VERIFIERS_BIN` names the `bin` folder of an environment that has it; without one it is installed.
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = "0.4.0"
TOOLS = [("load_skill", {"skill": "item-qa"}), ("get_product_info_by_link_id", {"link_id": 2})]


@pytest.fixture(scope="module")
def verifiers(tmp_path_factory):
    """The folder with `vf-eval`."""
    given = os.environ.get("VERIFIERS_BIN")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("verifiers")
    install = [str(folder / "bin/python"), "-m", "pip", "install", "-q", f"verifiers=={VERSION}"]
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True)
    if made.returncode or subprocess.run(install, capture_output=True).returncode:
        pytest.skip("verifiers cannot be installed here")
    return folder / "bin"


class Host(BaseHTTPRequestHandler):
    """A model that looks link 2 up, then speaks of it."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": "Link 2 is here in the room, have a look!"}
        if body["messages"][-1]["role"] != "tool":
            calls = [
                {
                    "id": f"c{n}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                for n, (name, given) in enumerate(TOOLS)
            ]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        answer = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.mark.accept
@pytest.mark.timeout(900)
def test_verifiers_rolls_its_model_out_in_our_rooms_and_has_our_rewards(verifiers, tmp_path):
    model = ThreadingHTTPServer(("127.0.0.1", 0), Host)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    environment = {**os.environ, "HARNESS_SANDBOX_TOKEN": "abc"}
    server = subprocess.Popen(
        [sys.executable, "-m", "harness_cli.simulator.server", "-C", str(ROOT)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        url = json.loads(server.stdout.readline())["url"]
        words = {
            "--model": "stub",
            "--client.base-url": f"http://127.0.0.1:{model.server_port}/v1",
            "--client.api-key-var": "NONE",
            "--env.taskset.url": url,
            "--env.taskset.seeds": "3",
            "--env.agent.runtime.type": "subprocess",
            "--push": "false",
            "--output-dir": str(tmp_path),
        }
        done = subprocess.run(
            [verifiers / "vf-eval", "live_room", *(w for pair in words.items() for w in pair)],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": str(ROOT / "docs/examples/verifiers_room")},
        )
        (path,) = tmp_path.rglob("traces.jsonl")
        lines = path.read_text().splitlines()
    finally:
        server.terminate()
        server.wait(20)
        model.shutdown()
    traces = [t for line in lines for t in json.loads(line)["traces"]]
    assert len(traces) == 3, done.stdout[-2000:]
    for trace in traces:
        assert not trace["errors"]
        assert {"rule_compliance", "tool_rationality"} <= set(trace["rewards"])
        assert all(0 <= r["score"] <= 1 for r in trace["rewards"].values())
        assert trace["info"]["outcomes"][0]["trajectory_sha256"]
        assert trace["num_output_tokens"] >= 6
