"""A stand-in for an engine of others: a real process with SGLang's options and its bad habits.

It reads the options that SGLang reads (full names, unknown ones are errors), serves /health, chat,
/model_info and /update_weights_from_disk on the standard library alone, and misbehaves as
STANDIN_HABITS (JSON) says: `ready_after_s`, `never_ready`, `exit_at_start`, `die_after` (requests),
`think_s`, `fail_every` (every n-th chat answers 500), `refuse_weights`, `weights_once` (replica 0
alone takes some, once), `update_s` (reading weights, `/health` answers 503 meanwhile),
`ignore_sigterm`, `child` (it starts a process of its own).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OPTIONS = {
    "model-path": str, "served-model-name": str, "host": str, "port": int, "dtype": str,
    "tp-size": int, "pp-size": int, "tool-call-parser": str, "reasoning-parser": str,
    "max-running-requests": int, "max-queued-requests": int, "weight-version": str,
    "speculative-algorithm": str, "speculative-num-steps": int, "speculative-eagle-topk": int,
    "speculative-num-draft-tokens": int, "speculative-accept-threshold-single": float,
    "speculative-accept-threshold-acc": float, "mem-fraction-static": float,
}  # fmt: skip


class Engine:
    def __init__(self):
        parser = argparse.ArgumentParser(allow_abbrev=False)
        for name, kind in OPTIONS.items():
            parser.add_argument(f"--{name}", type=kind)
        for name in ("enable-metrics", "enable-cache-report"):
            parser.add_argument(f"--{name}", action="store_true")
        self.options = parser.parse_args()
        self.habits = json.loads(os.environ.get("STANDIN_HABITS", "{}"))
        self.model = self.options.model_path
        self.version = self.options.weight_version or "default"
        self.born = time.monotonic()
        self.asked = 0
        self.updated = self.updating = False
        self.number = int(os.environ.get("STANDIN_NUMBER", "0"))
        self.running = 0
        self.ended = threading.Event()
        self.lock = threading.Lock()

    @property
    def ready(self):
        late = time.monotonic() - self.born < self.habits.get("ready_after_s", 0)
        held = self.habits.get("never_ready") or self.updating
        return not (late or held or self.ended.is_set())

    def update(self, body):
        if self.habits.get("refuse_weights") or "bad" in body["model_path"]:
            return 400, {"success": False, "message": "no such weights"}
        if self.habits.get("weights_once"):  # by replica: 0 takes them once, others never
            if self.model == body["model_path"] or self.updated or self.number > 0:
                return 400, {"success": False, "message": "no such weights"}
            self.updated = True
        self.updating = True
        time.sleep(self.habits.get("update_s", 0))
        self.updating = False
        self.model, self.version = body["model_path"], body.get("weight_version", "default")
        return 200, {"success": True, "message": "Succeeded to update model weights."}

    def chat(self, body):
        with self.lock:
            self.asked += 1
            number = self.asked
            self.running += 1
        try:
            time.sleep(self.habits.get("think_s", 0))
            if number >= self.habits.get("die_after", 1 << 60):
                os._exit(7)
            every = self.habits.get("fail_every")
            if every and number % every == 0:
                return 500, {"error": {"message": "stand-in fails", "type": "server_error"}}
            text = f"{self.model} on {self.options.port}"
            return 200, {
                "id": f"c{number}", "object": "chat.completion", "created": 0, "model": "agent",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                             "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            }  # fmt: skip
        finally:
            with self.lock:
                self.running -= 1


def handler(engine):  # noqa: C901  a class in a function: no global state
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self, answer):
            text = answer["choices"][0]["message"]["content"]
            head = {"id": answer["id"], "object": "chat.completion.chunk", "model": "agent"}
            deltas = [
                {"role": "assistant", "content": ""},
                {"content": text[:4]},
                {"content": text[4:]},
            ]
            chunks = [{**head, "choices": [{"index": 0, "delta": d}]} for d in deltas]
            end = {"index": 0, "delta": {}, "finish_reason": "stop"}
            chunks += [
                {**head, "choices": [end]},
                {**head, "choices": [], "usage": answer["usage"]},
            ]
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in lines:
                self.wfile.write(f"{len(line.encode()):x}\r\n{line}\r\n".encode())
            self.wfile.write(b"0\r\n\r\n")

        def do_GET(self):
            if self.path == "/health":
                self.answer(200 if engine.ready else 503, {})
            elif self.path in ("/model_info", "/server_info"):
                told = {"model_path": engine.model, "weight_version": engine.version}
                self.answer(200, told)
            elif self.path == "/v1/models":
                self.answer(200, {"object": "list", "data": [{"id": "agent"}]})
            else:
                self.answer(404, {})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/v1/chat/completions":
                status, answer = engine.chat(body)
                if status == 200 and body.get("stream"):
                    self.stream(answer)
                else:
                    self.answer(status, answer)
            elif self.path == "/update_weights_from_disk":
                self.answer(*engine.update(body))
            else:
                self.answer(404, {})

        def log_message(self, form, *words):
            sys.stderr.write(f"{self.path} {form % words}\n")

    return Handler


def main():
    engine = Engine()
    if engine.habits.get("exit_at_start"):
        sys.stderr.write("torch.OutOfMemoryError: the stand-in has no memory\n")
        sys.exit(3)
    if engine.habits.get("child"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        sys.stderr.write(f"child {child.pid}\n")
    server = ThreadingHTTPServer((engine.options.host, engine.options.port), handler(engine))

    def end(*_):
        if engine.habits.get("ignore_sigterm"):
            return
        engine.ended.set()
        threading.Thread(target=drain, args=(engine, server), daemon=True).start()

    signal.signal(signal.SIGTERM, end)
    sys.stderr.write(f"the stand-in listens on {engine.options.port}\n")
    server.serve_forever(poll_interval=0.02)


def drain(engine, server):
    while engine.running:
        time.sleep(0.01)
    server.shutdown()


if __name__ == "__main__":
    main()
