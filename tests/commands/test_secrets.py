"""A key that an endpoint says back, in answers and in errors, reaches no file and no stream."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness_cli.loop.scaffold import make_project

KEY = "quite private words 7"
"""Of no known shape, under a name that does not look secret: only the policy names it."""
OTHER = "zq9vOTHERvalue77"
"""Of another service, under a name that looks secret."""


class Echo(BaseHTTPRequestHandler):
    """Answers with the authorization it was sent, as a message or as an error."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        told = f"your key is {self.headers['authorization']}, the other one {OTHER} \x1b]0;x\x07"
        if self.path.startswith("/refuses"):
            self.answer(401, {"error": {"message": told}})
            return
        call = {"name": "get_faq", "arguments": json.dumps({"question": told})}
        message = {
            "role": "assistant", "content": told, "reasoning_content": told,
            "tool_calls": [{"id": told, "type": "function", "function": call}],
        }  # fmt: skip
        self.answer(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def answer(self, status: int, value: dict) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def shop(tmp_path_factory, isolated_session) -> Path:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = make_project(tmp_path_factory.mktemp("secrets") / "shop").root
    address = f"http://127.0.0.1:{server.server_port}"
    policies = "".join(
        f'  {name}: {{kind: openai, base_url: "{address}/{path}/v1", model: m, max_attempts: 1,'
        f" transport: {transport}, stream: false, api_key_env: MY_WORDS}}\n"
        for name, path, transport in (
            ("lean", "says", "lean"), ("package", "says", "openai"), ("refuses", "refuses", "lean"),
        )
    )  # fmt: skip
    settings = root / "harness.yaml"
    settings.write_text(settings.read_text().replace("policies:\n", f"policies:\n{policies}", 1))
    yield root
    server.shutdown()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("eval live_stream_qa --limit 2 --policy lean --record answers.jsonl -vv", 0),
        ("eval live_stream_qa --limit 2 --policy package", 0),
        ("eval live_stream_qa --limit 2 --policy refuses -vv", 0),
        ("run hello --policy lean", 0),
        ("run hello --policy package --json", 0),
        ("run hello --policy refuses", 1),
        ("show trajectory lsq-0001 --json", 0),
        ("diagnose", 0),
        ("edit --plan-only --policy lean -o p.yaml", 1),
        ("edit --plan-only --policy refuses -o p.yaml", 1),
        ("doctor --json", 0),
        ("incidents", 0),
    ],
)
def test_no_command_writes_or_shows_a_key(shop, command, code):
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", *command.split()],
        cwd=shop, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "MY_WORDS": KEY, "OTHER_API_KEY": OTHER},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    for text in (done.stdout, done.stderr):
        assert KEY not in text
        assert OTHER not in text
        assert "\x1b" not in text
    for path in shop.rglob("*"):
        if path.is_file() and ".git/" not in path.as_posix():
            data = path.read_bytes()
            assert KEY.encode() not in data, path
            assert OTHER.encode() not in data, path


def test_an_address_with_a_password_is_refused(shop, tmp_path):
    text = (shop / "harness.yaml").read_text().replace("http://127", "http://me:pass@127", 1)
    (tmp_path / "harness.yaml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "doctor"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "this address holds a password" in done.stdout + done.stderr
