"""Many promotions, rollbacks and verifications at once, some of them killed; and a full disk."""

import os
import random
import resource
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from released import chosen, edited, git, measured_project, promoted, wrong

from harness_cli.errors import HarnessError, RepoError, Stale
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.release.channels import list_manifests, read_channel
from harness_cli.release.clock import now
from harness_cli.release.gather import gather, read_approvals
from harness_cli.release.promote import promote
from harness_cli.release.rollback import roll_back
from harness_cli.release.session import compared_anew
from harness_cli.release.verify import verified, verify
from harness_cli.store.project import Project

BUSY = 12
"""Exit code of a process that gave way to others; it has changed nothing."""
TRIES = 30


@pytest.fixture(scope="module")
def two_releases(tmp_path_factory, isolated_session) -> Path:
    root = tmp_path_factory.mktemp("at-once") / "shop"
    project = measured_project(root)
    promoted(project)
    edited(project)
    promoted(project)
    return root


@pytest.fixture
def project(two_releases, tmp_path) -> Project:
    return Project.find(shutil.copytree(two_releases, tmp_path / "shop", symlinks=True))


def work(project: Project, kind: str, who: str) -> int:
    """One process's task; giving way is tried again, as a script in cron would."""
    for _ in range(TRIES):
        try:
            if kind == "promote":
                promoted(project, approver=None, by=who)
            elif kind == "rollback":
                roll_back(project, "dev", axes=frozenset({"policy", "harness"}), by=who, reason="")
            else:
                served = read_channel(project.manifests, "dev").harness
                return 0 if verified(verify(project, str(served))[1]) else 1
            return 0
        except (Stale, RepoError) as exc:
            if "is switched, but git did not commit it" in str(exc):
                return 0  # the orphaned git of a killed one was at work; the next switch commits it
            time.sleep(random.uniform(0.01, 0.2))
        except HarnessError as exc:
            if "no earlier state" in str(exc):
                return BUSY
            raise
    return BUSY


def started(project: Project, kind: str, who: str) -> int:
    """A process that ends with its task's exit code."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        code = work(project, kind, who)
    finally:
        os._exit(code)


def storm(project: Project, processes: int, at_once: int) -> dict[str, int]:
    """Runs them; who → exit code, or -9."""
    drawn = random.Random(5)
    kinds = [drawn.choice(("promote", "promote", "rollback", "verify")) for _ in range(processes)]
    doomed = set(range(3, processes, 10))
    alive: dict[int, tuple[str, float | None]] = {}
    done: dict[str, int] = {}
    waiting = list(enumerate(kinds))
    while waiting or alive:
        while waiting and len(alive) < at_once:
            number, kind = waiting.pop(0)
            end = time.monotonic() + drawn.uniform(0.1, 1.5) if number in doomed else None
            alive[started(project, kind, f"{kind}-{number}")] = (f"{kind}-{number}", end)
        for child, (_, end) in alive.items():
            if end is not None and time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(0.02)
        elif child in alive:
            who, _ = alive.pop(child)
            done[who] = os.waitstatus_to_exitcode(status)
    return done


def check_after(project: Project, done: dict[str, int]) -> None:
    """No lost update, no torn file, every entry of the history; and the next promotion works."""
    assert set(done.values()) <= {0, BUSY, -signal.SIGKILL}, done
    by = [event.by for event in read_channel(project.manifests, "dev").history]
    wrote = {who for who, code in done.items() if code == 0 and not who.startswith("verify")}
    killed = {who for who, code in done.items() if code == -signal.SIGKILL}
    assert wrote <= set(by)
    assert set(by) <= wrote | killed | {"Ann"}
    assert len(by) == len(set(by)) + 1  # Ann's two are from before
    (project.root / ".git" / "index.lock").unlink(missing_ok=True)  # as the message says to
    promoted(project, approver=None, by="last")
    channel = read_channel(project.manifests, "dev")
    known = list_manifests(project.manifests)
    assert {event.harness for event in channel.history} <= known.keys()
    assert wrong(project, str(channel.harness)) == {}
    assert git(project.root, "status", "--porcelain", "--", "manifests/channels") == ""
    git(project.root, "fsck", "--no-dangling")


def test_a_promotion_that_lost_the_race_is_compared_with_what_serves_now(project):
    """Under the lock, and without its harness being read again."""
    slow = chosen(project)
    facts = gather(slow, drift=(), approvals=read_approvals(project))
    fast = promoted(project, approver=None, by="fast").manifest.predicate.id
    assert slow.incumbent.predicate.id != fast
    with pytest.raises(Stale, match="moved while the gates ran"):
        promote(slow, facts, at=now(), by="slow")
    done = promote(slow, facts, at=now(), by="slow", anew=lambda old: compared_anew(old, ()))
    assert done.manifest.predicate.incumbent == fast
    history = read_channel(project.manifests, "dev").history
    assert [event.by for event in history[-2:]] == ["fast", "slow"]
    assert wrong(project, done.manifest.predicate.id) == {}


def test_one_that_lost_the_race_and_no_longer_passes_switches_nothing(project):
    slow = chosen(project)
    facts = gather(slow, drift=(), approvals=read_approvals(project))
    served = promoted(project, approver=None, by="fast").manifest.predicate.id
    drifted = ("shop.get_price changed",)
    gates = GatesFile(gates=(*slow.gates.gates, Gate(name="tools", kind="tools")))
    slow = replace(slow, gates=gates)
    done = promote(slow, facts, at=now(), by="s", anew=lambda old: compared_anew(old, drifted))
    assert not done.decision.promotes
    assert done.manifest is None
    assert read_channel(project.manifests, "dev").harness == served


def test_processes_at_once_lose_no_switch_and_tear_no_file(project):
    check_after(project, storm(project, 14, 6))


@pytest.mark.accept
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_two_hundred_processes_24_at_once_one_in_ten_killed(project):
    done = storm(project, 200, 24)
    assert sum(code == -signal.SIGKILL for code in done.values()) >= 10
    check_after(project, done)


@pytest.mark.parametrize("room", [300, 2048])
def test_where_the_disk_has_no_room_nothing_is_switched_and_later_it_works(project, room):
    before = read_channel(project.manifests, "dev")
    manifests = set(list_manifests(project.manifests))
    child = os.fork()
    if child == 0:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            promoted(project, approver=None)
            code = 0
        except OSError as exc:
            code = 5 if "manifests" in str(exc.filename) else 6
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert read_channel(project.manifests, "dev") == before
    assert set(list_manifests(project.manifests)) == manifests
    assert not list(project.manifests.rglob("*.part"))
    assert promoted(project, approver=None).decision.promotes
