"""`harness runs prune` never takes what a channel's proof or a running process needs."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from program import call
from small_shop import make_shop, run_shop

from harness_cli.records.manifest import Channel, Evidence, Manifest, Predicate
from harness_cli.release.channels import switched, write_channel
from harness_cli.release.manifest import statement
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunStore

REFS = "refs/harness/runs/"


@pytest.fixture
def shop(tmp_path):
    """Three runs of uncommitted harnesses, so that each holds a ref; ids oldest first."""
    project = make_shop(tmp_path / "shop")
    block = project.harness / "prompts/blocks/base.md"
    for n in range(3):
        block.write_text(block.read_text() + f"{n}\n")
        run_shop(project, limit=1)
    return project


def ids(project) -> list[str]:
    return [run.id for run in reversed(RunStore(project.runs).list())]


def refs(project) -> list[str]:
    return sorted(ref.removeprefix(REFS) for ref in Repo.open(project.harness).refs(REFS))


def resting_on(name: str, run: str) -> Manifest:
    return statement(
        Predicate(
            id=name, created="now", policy={"id": "p"}, harness={"tree": "t"}, inventory=(),
            tools_sha256="", mcp_lock_sha256="", thresholds={}, evalsets={}, catalogue_sha256="",
            judge={}, gates_sha256="", gates=(), approvals=(),
            evidence=(Evidence(run=run, evalset="shop", n=1, report_sha256=""),),
        )
    )  # fmt: skip


def serve(project, **switches: str) -> None:
    """A channel whose switches name manifests."""
    channel = switched(Channel(name="dev"), **switches, action="promote", by="Ann", at="now")
    write_channel(project.manifests, channel)


def write(project, name: str, run: str) -> None:
    project.manifests.mkdir(exist_ok=True)
    text = msgspec.json.encode(resting_on(name, run))
    (project.manifests / f"{name}.json").write_bytes(text)


def prune(project, *words: str) -> dict:
    done = call(project.root, "runs", "prune", "--json", *words)
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_evidence_of_both_switches_stays_with_its_refs(shop):
    one, two, three = ids(shop)
    write(shop, "m1", one)
    write(shop, "m2", two)
    serve(shop, policy="m1", harness="m2")
    told = prune(shop, "--keep", "0")
    assert told["runs"] == [three]
    assert {k["run"]: k["reason"] for k in told["kept"]} == dict.fromkeys(
        (one, two), "evidence of a live manifest"
    )
    assert ids(shop) == refs(shop) == [one, two]


def test_evidence_of_a_manifest_that_no_channel_serves_goes(shop):
    one, two, three = ids(shop)
    write(shop, "m1", one)
    write(shop, "m2", two)
    serve(shop, policy="m2", harness="m2")
    assert set(prune(shop, "--keep", "0")["runs"]) == {one, three}
    assert ids(shop) == refs(shop) == [two]


def test_the_ref_of_live_evidence_stays_where_its_folder_is_gone(shop):
    one, *_ = ids(shop)
    write(shop, "m1", one)
    serve(shop, policy="m1", harness="m1")
    for file in (shop.runs / one).iterdir():
        file.unlink()
    (shop.runs / one).rmdir()
    prune(shop, "--keep", "0")
    assert refs(shop) == [one]


def test_a_manifest_that_cannot_be_read_stops_the_pruning(shop):
    write(shop, "m1", ids(shop)[0])
    serve(shop, policy="m1", harness="m1")
    (shop.manifests / "m1.json").write_text("{")
    done = call(shop.root, "runs", "prune", "--keep", "0", "--json")
    assert done.code == 2
    assert len(ids(shop)) == len(refs(shop)) == 3


def test_a_run_that_another_process_writes_stays(shop):
    _, two, _ = ids(shop)
    holder = (
        "import sys, pathlib\n"
        "from harness_cli.store.locks import locked\n"
        f"with locked(pathlib.Path({str(shop.runs / two / 'lock')!r}), what='eval',"
        " if_locked='fail'):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        told = prune(shop, "--keep", "0")
        assert told["kept"] == [{"run": two, "reason": f"being written by process {process.pid}"}]
        assert ids(shop) == refs(shop) == [two]
        process.stdin.close()
    assert prune(shop, "--keep", "0")["runs"] == [two]
    assert ids(shop) == refs(shop) == []


def test_a_ref_whose_run_is_gone_is_dropped_and_a_dry_run_drops_nothing(shop):
    repo = Repo.open(shop.harness)
    repo.run("update-ref", f"{REFS}20200101-000000-0000000", repo.resolve("HEAD"))
    told = prune(shop, "--keep", "2", "--dry-run")
    assert told["dry_run"] is True
    assert len(told["runs"]) == 1
    assert len(told["refs"]) == 2
    assert len(ids(shop)) == 3
    assert len(refs(shop)) == 4
    prune(shop, "--keep", "2")
    assert ids(shop) == refs(shop)
    assert len(ids(shop)) == 2
    assert repo.refs("refs/heads/")  # nothing but runs' refs
