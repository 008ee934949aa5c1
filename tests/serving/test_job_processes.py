"""Process control with real processes: a stand-in engine that is slow, dies, is never ready."""

import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from job_bench import ask, end_all, make_project, standin, until
from typer.testing import CliRunner

from harness_cli.commands._serving import job_log, policy_log
from harness_cli.errors import BadFile, HarnessError, UnknownName, UsageError
from harness_cli.main import app
from harness_cli.records.config import CheckpointRef
from harness_cli.serving.bench.route import with_job
from harness_cli.serving.child import rotate
from harness_cli.serving.control import down, switch, up
from harness_cli.serving.job_folder import JobFolder, runs
from harness_cli.serving.jobs import last_words, tail
from harness_cli.serving.launch import reachable
from harness_cli.serving.standing import standings
from harness_cli.store.processes import begun_of


@pytest.fixture
def project(tmp_path):
    made = make_project(tmp_path)
    yield made
    end_all(made)


def live_of(project, name="engine"):
    return JobFolder.of(project.root, name).live()


def test_up_waits_until_it_is_ready_and_down_ends_the_whole_group(project):
    job = standin(habits={"ready_after_s": 0.6, "child": True})
    live, fresh = up(project, job)
    assert (fresh, live.phase) == (True, "ready")
    assert ask(live.url)[0] == 200
    folder = JobFolder.of(project.root, "engine")
    grandchild = int(next(x for x in tail(folder.log("replica-0"), 9) if "child" in x).split()[1])
    assert os.getpgid(live.replicas[0].process.pid) == live.replicas[0].process.pid
    again, fresh = up(project, job)
    assert (fresh, again.supervisor) == (False, live.supervisor)
    with pytest.raises(UsageError, match="by other settings"):
        up(project, standin(replicas=1, served_name="other"))

    assert down(project.root, "engine")
    assert not runs(live.supervisor)
    assert not runs(live.replicas[0].process)
    until(lambda: begun_of(grandchild) <= 0)
    assert standings(project.root) == []


@pytest.mark.parametrize(
    ("habits", "process", "said"),
    [
        ({"exit_at_start": True}, {}, r"ended before it was ready \(exit code 3\).*no memory"),
        ({"never_ready": True}, {"ready_s": 0.5}, "not ready within 0.5 s;"),
    ],
)
def test_what_does_not_become_ready_says_why_and_leaves_nothing(project, habits, process, said):
    with pytest.raises(HarnessError, match=said):
        up(project, standin(habits=habits, process=process))
    assert standings(project.root) == []
    log = JobFolder.of(project.root, "engine").log("replica-0")
    assert log.exists()


def test_a_program_that_is_not_there_says_so(project):
    import msgspec

    job = msgspec.structs.replace(standin(), launcher=("no-such-python",))
    with pytest.raises(HarnessError, match="`no-such-python` cannot be started"):
        up(project, job)


def test_a_taken_port_is_refused_before_anything_starts(project):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HarnessError, match=f"port {port} .* taken by process {os.getpid()}"):
            up(project, standin(port=port))
    assert standings(project.root) == []


def test_one_that_dies_is_started_again_and_the_reason_is_kept(project):
    live, _ = up(project, standin(habits={"die_after": 2}))
    assert ask(live.url)[0] == 200
    with pytest.raises((ConnectionError, OSError)):
        ask(live.url)
    until(lambda: any(r.restarts == 1 and r.state == "ready" for r in live_of(project).replicas))
    events = " ".join(live_of(project).events)
    assert "failed: it ended with code 7" in events
    assert ask(live.url)[0] == 200


def test_restarts_are_bounded_and_the_job_then_counts_as_failed(project):
    up(project, standin(process={"max_restarts": 1}))

    def ready(restarts):
        return [
            r for r in live_of(project).replicas if r.state == "ready" and r.restarts == restarts
        ]

    for restarts in (0, 1):
        (replica,) = until(lambda n=restarts: ready(n))
        os.kill(replica.process.pid, signal.SIGKILL)
    (found,) = until(lambda: [s for s in standings(project.root) if s.state == "failed"])
    assert "stays down" in " ".join(found.live.events)


def test_one_that_ignores_sigterm_is_killed_after_the_drain_bound(project):
    live, _ = up(project, standin(habits={"ignore_sigterm": True}, process={"drain_s": 0.5}))
    begun = time.monotonic()
    down(project.root, "engine")
    assert 0.4 < time.monotonic() - begun < 10
    assert not runs(live.replicas[0].process)


def test_requests_in_flight_are_finished_before_it_ends(project):
    live, _ = up(project, standin(habits={"think_s": 0.8}))
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(ask, live.url)
        time.sleep(0.3)
        down(project.root, "engine")
        assert slow.result() == (200, f"weights-a on {live.url.rsplit(':')[-1].split('/')[0]}")


def test_a_supervisor_that_was_killed_leaves_orphans_that_are_seen_and_ended(project):
    live, _ = up(project, standin(habits={"child": True}))
    log = JobFolder.of(project.root, "engine").log("replica-0")
    grandchild = int(next(x for x in tail(log, 9) if "child" in x).split()[1])
    os.kill(live.supervisor.pid, signal.SIGKILL)
    until(lambda: not runs(live.supervisor))
    (found,) = standings(project.root)
    assert (found.state, found.orphans) == ("orphaned", (live.replicas[0].process.pid,))
    assert ask(live.url)[0] == 200
    anew, fresh = up(project, standin())
    assert fresh
    assert not runs(live.replicas[0].process)
    # An engine that ends before its own processes do leaves none of them.
    until(lambda: begun_of(grandchild) <= 0)
    assert ask(anew.url)[0] == 200


def test_switch_moves_a_running_engine_to_other_weights_without_a_restart(project):
    live, _ = up(project, standin())
    moved = switch(project, "engine", model="weights-b", sha256="ab" * 32)
    assert moved.replicas[0].process == live.replicas[0].process
    assert ask(live.url)[1].startswith("weights-b")
    (found,) = standings(project.root)
    assert found.says["0"] == {"model_path": "weights-b", "weight_version": "ab" * 8}
    assert found.differs == ()
    # A restart starts with the weights it was switched to.
    os.kill(moved.replicas[0].process.pid, signal.SIGKILL)
    until(lambda: live_of(project).replicas[0].restarts == 1)
    until(lambda: live_of(project).replicas[0].state == "ready")
    assert ask(live.url)[1].startswith("weights-b")


def test_an_engine_that_reads_weights_is_not_taken_for_dead(project):
    """SGLang answers no `/health` while it reads: 70 GB take longer than six looks."""
    rules = {"health_s": 0.05, "unhealthy": 2}
    live, _ = up(project, standin(process=rules, habits={"update_s": 1.0}))
    moved = switch(project, "engine", model="weights-b")
    assert moved.replicas[0].process == live.replicas[0].process
    assert "not healthy" not in " ".join(moved.events)
    assert ask(live.url)[1].startswith("weights-b")


def test_weights_that_are_refused_leave_the_old_ones_serving_and_desired(project):
    live, _ = up(project, standin())
    with pytest.raises(HarnessError, match=r"did not take the weights.*no such weights"):
        switch(project, "engine", model="bad-weights")
    assert ask(live.url)[1].startswith("weights-a")
    until(lambda: live_of(project).generation == 3)
    (found,) = standings(project.root)
    assert (found.state, found.desired.model, found.differs) == ("ready", "weights-a", ())


def test_a_replica_that_cannot_go_back_is_named(project):
    """`weights-once` is taken, `bad-…` never: nobody is told that the old weights serve."""
    up(project, standin(replicas=2, router=True, habits={"weights_once": True}))
    with pytest.raises(HarnessError, match="replica 0 did not go back and serves the new weights"):
        switch(project, "engine", model="weights-b")


def test_weights_are_not_switched_past_a_replica_that_restarts(project):
    live, _ = up(project, standin(replicas=2, router=True, process={"restart_pause_s": 60}))
    os.kill(live.replicas[1].process.pid, signal.SIGKILL)
    until(lambda: live_of(project).replicas[1].state == "waiting")
    with pytest.raises(HarnessError, match="replica 1 is starting again"):
        switch(project, "engine", model="weights-b")
    assert ask(live.url)[1].startswith("weights-a")


def test_what_answers_after_a_switch_is_what_a_benchmark_is_bound_to(project):
    up(project, standin(checkpoint=CheckpointRef(uri="weights-a", sha256="ab" * 32)))
    policy = with_job(project, "engine")[0].policy("engine")[1]
    assert policy.checkpoint.sha256 == "ab" * 32
    switch(project, "engine", model="weights-b", sha256="cd" * 32)
    policy = with_job(project, "engine")[0].policy("engine")[1]
    assert (policy.checkpoint.uri, policy.checkpoint.sha256) == ("weights-b", "cd" * 32)


def test_a_job_that_is_taken_down_while_it_comes_up_says_that(project):
    folder = JobFolder.of(project.root, "engine")
    with ThreadPoolExecutor() as pool:
        coming = pool.submit(up, project, standin(habits={"ready_after_s": 30}))
        until(lambda: folder.desired() is not None)
        down(project.root, "engine")
        with pytest.raises(HarnessError, match="was taken down while it came up"):
            coming.result(timeout=30)
    assert standings(project.root) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "nothing to switch"),
        ({"replicas": 1, "sha256": "ab" * 32}, "--sha256 is of weights"),
        ({"replicas": 9}, "9 replicas need a router"),
    ],
)
def test_a_switch_that_cannot_be_meant_is_refused(project, words, said):
    up(project, standin())
    with pytest.raises(UsageError, match=said):
        switch(project, "engine", **words)


def test_the_log_that_is_shown_is_a_running_replicas_and_an_unknown_one_is_an_error(project):
    up(project, standin())
    folder = JobFolder.of(project.root, "engine")
    for number in (2, 10):
        folder.log(f"replica-{number}").write_text("of an earlier one\n")
    assert job_log(project.root, "engine", None) == folder.log("replica-0")
    down(project.root, "engine")
    assert job_log(project.root, "engine", None) == folder.log("replica-10")
    with pytest.raises(UnknownName, match="no served policy named `zzz`"):
        policy_log(project.root, "zzz")


def test_an_error_keeps_its_advice_and_advice_its_error(tmp_path):
    log = tmp_path / "engine.log"
    assert last_words(log) == ""
    log.write_text("loading\nerror: no such weights\nhint: known: a, b\n\n")
    assert last_words(log) == "error: no such weights; hint: known: a, b"
    log.write_text("loading\nboom\n")
    assert last_words(log) == "boom"


def test_logs_are_rotated_without_moving_the_file_under_its_writer(tmp_path):
    log = tmp_path / "engine.log"
    with log.open("a") as writer:
        for number in range(4):
            writer.write(f"line {number} " + "x" * 100 + "\n")
            writer.flush()
            assert rotate(log, limit=50, keep=2)
    assert log.read_text() == ""
    assert [p.name for p in sorted(tmp_path.iterdir())] == [
        "engine.log", "engine.log.1", "engine.log.2",
    ]  # fmt: skip
    assert log.with_name("engine.log.1").read_text().startswith("line 3")
    assert not rotate(log, limit=50, keep=2)


def test_live_json_reads_as_a_record_at_any_moment(project):
    up(project, standin())
    path = JobFolder.of(project.root, "engine").path / "live.json"
    assert json.loads(path.read_text())["schema"] == 1


def test_a_state_file_that_was_cut_short_names_the_way_out_and_it_is_one(project):
    live, _ = up(project, standin())
    path = JobFolder.of(project.root, "engine").path / "live.json"
    path.write_text('{"schema": 1, "na')
    with pytest.raises(BadFile, match=r"live\.json") as caught:
        standings(project.root)
    assert caught.value.hint == "remove it; `harness serve down engine` then ends what still runs"
    path.unlink()
    down(project.root, "engine")
    until(lambda: not runs(live.supervisor) and not runs(live.replicas[0].process))
    assert standings(project.root) == []


def test_what_was_switched_is_no_longer_what_the_job_file_asks_for(project):
    job = standin(replicas=1, router=True)
    up(project, job)
    switch(project, "engine", replicas=2)
    with pytest.raises(UsageError, match="served already, with 2 replicas and not 1") as raised:
        up(project, job)
    assert raised.value.hint == "harness serve switch engine --replicas 1"
    live, fresh = up(project, standin(replicas=2, router=True))
    assert (fresh, len(live.replicas)) == (False, 2)
    switch(project, "engine", model="weights-b")
    with pytest.raises(UsageError, match="weights `weights-b` and not `weights-a`") as raised:
        up(project, standin(replicas=2, router=True))
    assert raised.value.hint == "harness serve switch engine weights-a"


def test_a_job_on_another_address_says_the_address_it_has(project):
    live, _ = up(project, standin(host="localhost", router=True))
    assert live.url.startswith("http://localhost:")
    assert ask(live.url)[0] == 200
    assert [reachable(h) for h in ("0.0.0.0", "::", "10.0.0.5", "fd00::5")] == [
        "127.0.0.1", "127.0.0.1", "10.0.0.5", "[fd00::5]",
    ]  # fmt: skip


def test_the_stats_of_a_job_are_of_every_replica(project):
    job = standin(replicas=2, router=True)
    up(project, job)
    folder = JobFolder.of(project.root, "engine")
    text = (
        "[2026-07-30 02:35:01] Decode batch, #running-req: {n}, #token: 10, token usage: 0.00, "
        "cuda graph: True, gen throughput (token/s): 300.12, #queue-req: 0\n"
    )
    for number in (0, 1):
        folder.log(f"replica-{number}").write_text(text.format(n=number + 1) * 3)
    folder.log("replica-7").write_text("of an earlier one\n")
    # The README names none: it is the only one that is served.
    for name in ([], ["engine"]):
        words = ["serve", "logs", "--stats", *name, "--json", "-C", str(project.root)]
        done = CliRunner().invoke(app, words)
        found = json.loads(done.stdout)["logs"]
        assert [log["running"]["mean"] for log in found] == [1.0, 2.0]
    shown = CliRunner().invoke(app, ["serve", "logs", "--json", "-C", str(project.root)])
    assert json.loads(shown.stdout)["log"].endswith("engine/replica-1.log")
