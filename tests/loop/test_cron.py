"""`harness cron`: lock, maximum runtime, last success; without a terminal, by exit codes alone."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))

from small_harness import committed, project

from harness_cli.errors import Locked, Stale, UsageError
from harness_cli.loop.cron import Job, check_success, lock_path, refuse_words, run_job, words_of
from harness_cli.records.durations import seconds_of
from harness_cli.store.locks import locked

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
SETTINGS = """schema: 1
policy: slow
policies:
  slow: {kind: scripted, script: script.yaml}
"""


@pytest.fixture
def place(tmp_path) -> Path:
    root = project(tmp_path / "project")
    (root / "harness.yaml").write_text(SETTINGS)
    (root / "script.yaml").write_text("schema: 1\nrules:\n  - {when: '', replies: [{text: hi}]}\n")
    (root / ".harness").mkdir(exist_ok=True)
    (root / "evalsets" / "catalogue").mkdir(parents=True, exist_ok=True)
    empty = 'schema: 1\nsnapshot: "2026-01-01"\nproducts: []\n'
    (root / "evalsets" / "catalogue" / "all.yaml").write_text(empty)
    committed(root, "all")
    return root


def cron(root: Path, *words: str, **more) -> subprocess.CompletedProcess:
    args = [sys.executable, "-m", "harness_cli.main", "cron", *words]
    return subprocess.run(args, cwd=root, capture_output=True, text=True, **more)


def waiting_job(root: Path, **more) -> Job:
    """A verb that reads its input to the end: it would wait for a person, if there were one."""
    known = {"words": ("run", "--chat"), "folder": root, "lock": lock_path(root, "room")}
    return Job(**{**known, **more})


def test_the_first_job_of_a_fresh_clone_has_its_success_in_the_projects_own_folder(place):
    (place / ".harness").rmdir()
    done = cron(place, "--last-success", ".harness/nightly.ok", "--", "runs")
    assert done.returncode == 0, done.stderr
    assert (place / ".harness" / "nightly.ok").read_text().endswith(" harness runs\n")


def test_a_success_is_on_record_and_a_failure_is_not(place):
    ok = place / ".harness" / "nightly.ok"
    begun = datetime.now(UTC) - timedelta(seconds=1)
    done = cron(place, "--last-success", str(ok), "--", "runs", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == []
    when, what = ok.read_text().strip().split(" ", 1)
    assert datetime.fromisoformat(when) >= begun
    assert what == "harness runs list --json"
    before = ok.read_text()
    failed = cron(place, "--last-success", str(ok), "--json", "--", "runs", "show", "no-such")
    assert failed.returncode == 2
    told = json.loads(failed.stdout)
    assert (told["state"], told["exit_code"], told["last_success"]) == ("failed", 2, None)
    assert "no-such" in failed.stderr
    assert ok.read_text() == before


def test_options_behind_the_verb_are_the_verbs(place):
    done = cron(place, "runs", "list", "--json", "-q")
    assert json.loads(done.stdout)["runs"] == []


def test_a_verb_has_no_terminal_and_no_input(place):
    done = cron(place, "--", "run", "--chat", "-q", input="hello\n")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def held(root: Path, name: str):
    """Another process that holds a job's lock until it is told to end."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom harness_cli.store.locks import locked\n"
        "with locked(Path(sys.argv[1]), what='another job'):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", code, str(lock_path(root, name))]
    made = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert made.stdout.readline() == "held\n"
    return made


def test_where_the_same_job_runs_it_skips_fails_or_waits(place):
    other = held(place, "runs")
    try:
        ok = place / ".harness" / "ok"
        skip = cron(place, "--if-locked", "skip", "--last-success", str(ok), "--", "runs")
        assert (skip.returncode, skip.stdout) == (0, "")
        assert "skipped" in skip.stderr
        assert not ok.exists()
        fail = cron(place, "--", "runs")
        assert fail.returncode == 12
        assert "another job" in fail.stderr
        late = cron(place, "--if-locked", "wait", "--max-runtime", "1s", "--", "runs")
        assert late.returncode == 12
        assert cron(place, "--lock", "else", "--", "runs").returncode == 0
    finally:
        other.communicate("")
    assert cron(place, "--if-locked", "wait", "--", "runs").returncode == 0


def test_a_verb_that_takes_too_long_is_ended_and_says_13(place):
    ok = place / ".harness" / "ok"
    begun = time.monotonic()
    bounds = ("--max-runtime", "2s", "--last-success", str(ok), "--json")
    done = cron(place, *bounds, "--", "view", "--port", "0")
    assert done.returncode == 13, done.stderr
    assert json.loads(done.stdout)["state"] == "max_runtime"
    assert time.monotonic() - begun < 25
    assert not ok.exists()


def test_one_that_does_not_listen_to_term_is_killed(place, monkeypatch):
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)\n"
    (place / "sitecustomize.py").write_text(deaf)
    monkeypatch.setenv("PYTHONPATH", str(place))
    begun = time.monotonic()
    done = run_job(waiting_job(place, max_s=1.0, grace_s=0.5))
    assert (done.state, done.exit_code) == ("max_runtime", 13)
    assert time.monotonic() - begun < 20


def test_a_signal_to_the_job_ends_the_verb(place):
    args = [sys.executable, "-m", "harness_cli.main", "cron", "--", "view", "--port", "0"]
    process = subprocess.Popen(args, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child = child_of(process.pid)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=40)
    assert not Path(f"/proc/{child}").exists()
    with locked(lock_path(place, "view"), what="free again"):
        pass


def test_a_job_whose_wrapper_was_killed_still_holds_its_lock(place):
    args = [sys.executable, "-m", "harness_cli.main", "cron", "--", "view", "--port", "0"]
    process = subprocess.Popen(args, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child = child_of(process.pid)
    process.kill()
    process.wait(20)
    try:
        with pytest.raises(Locked):
            run_job(waiting_job(place, lock=lock_path(place, "view")))
    finally:
        os.kill(child, signal.SIGTERM)
        process.communicate(timeout=40)
    end = time.monotonic() + 30
    while Path(f"/proc/{child}/cmdline").exists() and time.monotonic() < end:
        if not Path(f"/proc/{child}/cmdline").read_bytes():
            break  # a zombie whose parent is gone
        time.sleep(0.05)
    assert run_job(waiting_job(place, lock=lock_path(place, "view"))).state == "done"


def child_of(pid: int) -> int:
    """The verb below a job, once it is up."""
    end = time.monotonic() + 40
    while time.monotonic() < end:
        told = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in told:
            if b"view" in Path(f"/proc/{one}/cmdline").read_bytes():
                return int(one)
        time.sleep(0.05)
    raise AssertionError("no child came up")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-11-28T09:00:00Z harness eval", "27 h ago"),
        ("2026-11-20T09:00:00Z harness eval", "9 d ago"),
        ("2026-11-30T09:00:00Z harness eval", "of a time to come"),
        ("soon", "names no time"),
        ("", "names no time"),
        ("2026-11-28T09:00:00 no zone", "names no time"),
    ],
)
def test_an_old_or_unreadable_success_is_stale(tmp_path, text, said):
    path = tmp_path / "ok"
    path.write_text(text)
    with pytest.raises(Stale, match=said):
        check_success(path, 26 * 3600, NOW)
    path.write_text("2026-11-28T11:00:00Z harness eval\n")
    assert check_success(path, 26 * 3600, NOW) == timedelta(hours=25)


def test_the_age_of_a_success_is_an_exit_code(place):
    ok = place / ".harness" / "ok"
    words = ("--last-success", str(ok), "--younger-than", "26h")
    done = cron(place, *words)
    assert done.returncode == 12
    assert "there was no success yet" in done.stderr
    assert cron(place, "--last-success", str(ok), "--", "runs").returncode == 0
    assert cron(place, *words).returncode == 0
    ok.write_text("2026-01-01T00:00:00Z harness runs\n")
    assert cron(place, *words, "--json").returncode == 12


@pytest.mark.parametrize(
    "words",
    [
        ("--max-runtime", "soon", "--", "runs"),
        ("--max-runtime", "0s", "--", "runs"),
        ("--lock", "../x", "--", "runs"),
        ("--last-success", "no/such/folder/ok", "--", "runs"),
        ("--younger-than", "1h"),
        ("--younger-than", "1h", "--last-success", "ok", "--", "runs"),
        (),
        ("--", "cron", "--", "runs"),
    ],
)
def test_what_cannot_be_meant_is_a_wrong_option(place, words):
    assert cron(place, *words).returncode == 2


def test_where_the_success_cannot_be_written_the_job_fails(place):
    folder = place / ".harness" / "shut"
    folder.mkdir()
    (folder / "ok").mkdir()  # a folder in the file's place: nobody can replace it, not even root
    done = cron(place, "--last-success", str(folder / "ok"), "--", "runs")
    assert done.returncode == 1
    assert "was not written" in done.stderr


def test_nothing_to_run_is_refused():
    for words in ([], ["cron"]):
        with pytest.raises(UsageError):
            refuse_words(words)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("3h", 10800), ("7d", 604800), ("2w", 1209600), (" 1h ", 3600),
     ("1", None), ("h", None), ("-1h", None), ("1.5h", None), ("", None)],
)  # fmt: skip
def test_durations_are_a_number_and_a_unit(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(("hours", "told"), [(0.5, "30 min"), (27, "27 h"), (72, "3 d")])
def test_ages_are_told_in_the_unit_that_fits(hours, told):
    assert words_of(timedelta(hours=hours)) == told
