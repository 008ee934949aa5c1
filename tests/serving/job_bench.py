"""A project with serving jobs, and clients that talk to them."""

import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from harness_cli.records.serve_job import (
    Admission,
    ProcessSettings,
    RouterSettings,
    ServeJob,
)
from harness_cli.serving.control import down
from harness_cli.serving.job_folder import job_names
from harness_cli.store.project import Project

STANDIN = Path(__file__).with_name("standin_engine.py")
CONFIG = """
policies:
  demo: {kind: scripted, script: demo.yaml}
policy: demo
"""
SCRIPT = "rules:\n- replies: [{text: Welcome!, delay_s: 0.2}]\n"


def make_project(folder: Path) -> Project:
    (folder / "harness.yaml").write_text(CONFIG)
    (folder / "demo.yaml").write_text(SCRIPT)
    return Project.find(folder)


def standin(name="engine", *, process=None, router=False, **given) -> ServeJob:
    """A job whose engine is the stand-in; `habits` says how it behaves."""
    habits = given.pop("habits", {})
    rules = {"ready_s": 20.0, "drain_s": 3.0, "health_s": 0.1, "restart_pause_s": 0.05}
    return ServeJob(
        name=name,
        engine="sglang",
        version="0.5.23",
        model=given.pop("model", "weights-a"),
        launcher=(sys.executable, str(STANDIN)),
        env={"STANDIN_HABITS": json.dumps(habits), "STANDIN_NUMBER": "{replica}"},
        port=given.pop("port", 0),
        router=router if isinstance(router, RouterSettings) else RouterSettings(use=router),
        process=ProcessSettings(**(rules | (process or {}))),
        **given,
    )


def scripted(name="pair", **given) -> ServeJob:
    """A job of our own server behind the real router."""
    rules = {"ready_s": 60.0, "drain_s": 5.0, "health_s": 0.2, "restart_pause_s": 0.1}
    return ServeJob(
        name=name,
        engine="policy",
        policy="demo",
        port=0,
        process=ProcessSettings(**rules),
        admission=given.pop("admission", Admission()),
        **given,
    )


def ask(url, timeout=30):
    """(status, text) of one chat."""
    body = {"model": "agent", "messages": [{"role": "user", "content": "hi"}]}
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return 200, json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read().decode()


def until(holds, seconds=20):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
    return found


def end_all(project: Project) -> None:
    for name in job_names(project.root):
        down(project.root, name)
