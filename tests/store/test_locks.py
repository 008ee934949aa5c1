import os
import subprocess
import sys
import time

import pytest

from harness_cli.errors import Locked
from harness_cli.store.locks import boot_id, holder_of, locked

HOLD = """
import sys, time
from pathlib import Path
from harness_cli.store.locks import locked
with locked(Path(sys.argv[1]), what="a long run"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""

LOOK = """
import fcntl, sys, time
with open(sys.argv[1], "rb") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("looking", flush=True)
    time.sleep(0.3)
"""


@pytest.fixture
def holder(tmp_path):
    started = []

    def hold(seconds=30.0):
        command = [sys.executable, "-c", HOLD, str(tmp_path / "lock"), str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_a_free_lock_is_held_and_given_back(tmp_path):
    path = tmp_path / "locks" / "one"
    with locked(path, what="x"):
        assert path.exists()
    assert holder_of(path) is None
    with locked(path, what="y"):
        pass


def test_a_held_lock_fails_with_pid_age_and_what(tmp_path, holder):
    process = holder()
    message = rf"held by process {process.pid} \(a long run\) for \d+ s"
    with pytest.raises(Locked, match=message) as caught, locked(tmp_path / "lock", what="me"):
        pass
    assert caught.value.exit_code == 12
    assert "--if-locked wait" in caught.value.hint


def test_who_holds_a_lock_is_known_with_its_boot(tmp_path, holder):
    process = holder()
    found = holder_of(tmp_path / "lock")
    assert found.pid == process.pid
    assert found.boot_id == boot_id() != ""
    assert found.age_s < 30


def test_wait_takes_over_when_the_holder_is_done(tmp_path, holder):
    holder(0.5)
    began = time.monotonic()
    with locked(tmp_path / "lock", what="me", if_locked="wait"):
        assert holder_of(tmp_path / "lock").pid == os.getpid()
    assert time.monotonic() - began < 10


def test_wait_gives_up_after_its_time(tmp_path, holder):
    holder()
    with (
        pytest.raises(Locked),
        locked(tmp_path / "lock", what="me", if_locked="wait", timeout_s=0.3),
    ):
        pass


def test_a_killed_holder_leaves_no_lock_behind(tmp_path, holder):
    process = holder()
    process.kill()
    process.wait()
    assert holder_of(tmp_path / "lock") is None
    with locked(tmp_path / "lock", what="me"):
        pass


def test_a_lock_of_another_boot_says_so(tmp_path, monkeypatch, holder):
    holder()
    monkeypatch.setattr("harness_cli.store.locks.boot_id", lambda: "another")
    with (
        pytest.raises(Locked, match="of another machine or boot"),
        locked(tmp_path / "lock", what="me"),
    ):
        pass


def test_a_lock_file_nobody_holds_is_free_whatever_it_says(tmp_path):
    (tmp_path / "lock").write_text("{half a rec")
    assert holder_of(tmp_path / "lock") is None


def test_looking_who_holds_a_lock_needs_no_right_to_write_and_disturbs_nobody(tmp_path):
    path = tmp_path / "lock"
    path.touch(mode=0o444)
    assert holder_of(path) is None
    looks = subprocess.Popen(
        [sys.executable, "-c", LOOK, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert looks.stdout.readline() == "looking\n"
    with locked(path, what="me"):  # held by the one who looks, without a name: waited out
        pass
    looks.communicate()
