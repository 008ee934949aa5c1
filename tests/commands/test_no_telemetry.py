"""The loop reaches nobody: a guard inside every Python process, no network around all of them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installed import environment, site_packages

CAUGHT = 97
GUARD = """
import os, sys

STARTED, CAUGHT = {started!r}, {caught!r}

def outside(address):
    host = address[0] if isinstance(address, tuple) else address
    if host is None or isinstance(address, (str, bytes)) and not isinstance(host, str):
        return False  # a Unix socket
    host = host.decode() if isinstance(host, bytes) else str(host)
    return not (host in ("", "localhost", "::1") or host.startswith("127."))

def note(path, text):
    with open(path, "a") as file:
        file.write(text + "\\n")

def hook(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = args[1]
        wanted = isinstance(address, tuple) and outside(address)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        address = args[0]
        wanted = outside((address,))
    else:
        return
    if wanted:
        note(CAUGHT, f"{{event}} {{address}} by {{sys.orig_argv}}")
        os._exit(97)  # louder than an error that somebody may swallow

note(STARTED, " ".join(sys.orig_argv))
sys.addaudithook(hook)
"""
LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
os.execv(sys.argv[1], sys.argv[1:])
"""
GATES = """schema: 1
gates:
  - {name: provenance, kind: provenance}
  - {name: judge, kind: judge, accept_judges: [grounded]}
  - {name: tools, kind: tools}
  - {name: small, kind: regression, evalset: small, split: dev, minimum_n: 8, margin: 0.5}
  - {name: approvals, kind: approvals, approvals: 1}
"""
ENDPOINT = """schema: 1
policy: far
policies: {far: {kind: openai, base_url: "http://192.0.2.1/v1", model: m}}
"""


def no_network() -> list[str]:
    """A prefix that runs a program where only loopback exists; nothing where that is forbidden."""
    unshare = shutil.which("unshare")
    prefix = [unshare or "", "--map-root-user", "--net", sys.executable, "-c", LOOPBACK_UP]
    if unshare and subprocess.run([*prefix, "/bin/true"], capture_output=True).returncode == 0:
        return prefix
    return []


class Guarded:
    """Commands of an environment in which a connection to the outside ends the process."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder
        self.started, self.caught = folder / "started", folder / "caught"
        self.around = no_network()

    def run(self, folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*self.around, str(self.python.with_name(argv[0])), *argv[1:]],
            cwd=folder,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def complaints(self) -> str:
        return self.caught.read_text() if self.caught.exists() else ""


@pytest.fixture
def guarded(elsewhere, tmp_path):
    made = Guarded(elsewhere, tmp_path)
    packages = site_packages(elsewhere.parents[1])
    text = GUARD.format(started=str(made.started), caught=str(made.caught))
    (packages / "outside_guard.py").write_text(text)
    (packages / "outside_guard.pth").write_text("import outside_guard\n")
    yield made
    (packages / "outside_guard.pth").unlink()
    (packages / "outside_guard.py").unlink()


def make_small(shop: Path) -> None:
    """Eight items of the shipped evalset as one of its own, and gates that ask for no other."""
    items = (shop / "evalsets/live_stream_qa/items.jsonl").read_text().splitlines()
    dev = [item for item in items if json.loads(item).get("split", "dev") == "dev"]
    (shop / "evalsets/small").mkdir()
    (shop / "evalsets/small/items.jsonl").write_text("\n".join(dev[:8]) + "\n")
    (shop / "evalsets/small/evalset.yaml").write_text("schema: 1\nname: small\nsplits: {dev: 8}\n")
    (shop / "gates.yaml").write_text(GATES)
    for words in (("add", "-A"), ("commit", "-qm", "a small evalset")):
        subprocess.run(["git", *words], cwd=shop, check=True)


@pytest.mark.slow
def test_init_eval_diagnose_edit_compare_and_promote_reach_nobody(guarded, tmp_path):
    shop = tmp_path / "shop"
    editor = tmp_path / "editor"
    editor.write_text(
        '#!/bin/sh\necho "- Say a name once." >> "$(find "$1" -path "*greet/SKILL.md")"\n'
    )
    editor.chmod(0o755)
    loop = [
        ("init", "shop"),
        ("eval", "small", "-q"),
        ("diagnose", "-q"),
        ("edit", "--by-hand", "--by", "Ann", "-q"),
        ("eval", "small", "--harness", "evolve/1", "-q"),
        ("compare", "-q"),
        ("promote", "--approve", "Bob", "-q"),  # not the author of the edit
        ("manifest", "verify", "-q"),
    ]
    for words in loop:
        folder = tmp_path if words[0] == "init" else shop
        done = guarded.run(folder, "harness", *words, EDITOR=str(editor))
        assert not guarded.complaints()
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        if words[0] == "init":
            make_small(shop)
    started = guarded.started.read_text()
    for module in ("harness_cli.models.builtin.worker", "harness_cli.simulator.marketing_server"):
        assert module in started  # the children were guarded as well
    assert started.count("bin/harness") == len(loop)


def test_the_guard_stops_a_plain_connection_and_one_of_the_program(guarded, tmp_path):
    script = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    assert guarded.run(tmp_path, "python", "-c", script).returncode == CAUGHT
    assert "192.0.2.1" in guarded.complaints()
    guarded.caught.unlink()
    guarded.run(tmp_path, "harness", "init", "shop", "-q")
    (tmp_path / "shop" / "harness.yaml").write_text(ENDPOINT)
    done = guarded.run(tmp_path / "shop", "harness", "run", "hello")
    assert done.returncode == CAUGHT
    assert "socket.connect ('192.0.2.1', 80)" in guarded.complaints()


def test_around_the_guard_there_is_no_network(guarded, tmp_path):
    """What is no Python (git) cannot reach anyone either; loopback works."""
    if not guarded.around:
        pytest.skip("network namespaces are forbidden on this machine")
    script = (
        "import socket\n"
        "with socket.create_server(('127.0.0.1', 0)) as s:\n"
        "    socket.create_connection(s.getsockname(), 2).close()\n"
        "print(open('/proc/net/dev').read().count(':'))\n"
    )
    done = guarded.run(tmp_path, "python", "-c", script)
    assert done.stdout.strip() == "1", done.stderr
