"""Builds and runs the C stub: an endpoint that is never the bottleneck."""

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("stub_server.c")


class Stub:
    """A running stub; `url` is its OpenAI base URL."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"

    def ask(self, path: str) -> dict:
        """One of its own pages: `__stats`, `__counts`, `__reset`, `__cfg?think=20&f429=5`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=30) as answer:
            return json.loads(answer.read())

    def counts(self) -> dict[int, list[int]]:
        """Sample → calls of its first and second turn."""
        return {int(sid): turns for sid, turns in self.ask("__counts").items()}


@contextmanager
def stub(folder: Path, *, think_ms: float, seed: int = 0) -> Iterator[Stub]:
    """The stub on a free port, ended with the block."""
    program = folder / "stub"
    if not program.exists():
        subprocess.run(["gcc", "-O2", "-w", "-o", program, SOURCE], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [program, "-p", port, "-t", think_ms, "-s", seed]
    process = subprocess.Popen([str(w) for w in words])
    try:
        running = Stub(port)
        _wait(running)
        yield running
    finally:
        process.kill()
        process.wait()


def _wait(running: Stub) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            running.ask("__stats")
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
