"""`manifest verify` of a release with 5,000 recorded items, over hashing and decoding its files.

The release is a real promotion whose evidence is tiled to enough lines, so that the file, the
manifest and every check are those of a large one. The control reads the same files from git, takes
their SHA-256 and decodes what is JSON, YAML or compressed lines. Both in turns, each turn a process
of its own: what one remembered helps no other. Modules are loaded before.

With an archive every dialogue is one of its own, of an evalset that the scenario generator makes
with several seeds; the control then unpacks, hashes and decodes the archive as well. `verify` makes
each digest anew, grades and scores each dialogue again, with every core; so there are two ratios,
of the walls, which is the goal's time, and of the CPU seconds of all processes.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.floor import result
from benchmarks.process import harness, run

GOAL = 2.0
SEEDS = range(11, 100)
"""Of generated items, a few more than 1,400 each; none is the shipped sets' own."""
GATES = """schema: 1
gates:
  - {name: provenance, kind: provenance}
  - {name: judge, kind: judge, accept_judges: [grounded]}
  - {name: business, kind: regression, evalset: live_stream_qa, split: dev, minimum_n: 30}
  - {name: approvals, kind: approvals, approvals: 1}
"""


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    n, rounds = (1_000, 3) if quick else (5_000, 7)
    harness(folder, "init", "shop", "-q")
    root = folder / "shop"
    (root / "gates.yaml").write_text(GATES)
    subprocess.run(["git", "commit", "-qam", "gates"], cwd=root, check=True)
    harness(root, "eval", "live_stream_qa", "--limit", "40", "-q", "--json")
    name = release(root, n)
    verified(root, name)  # loads the modules
    yield from ratios(root, name, rounds, f"{n} recorded items")
    harness(folder, "init", "archived", "-q")
    root = folder / "archived"
    name = archived(root, n)
    yield from ratios(root, name, rounds, f"{n} recorded items, their dialogues archived")


def ratios(root: Path, name: str, rounds: int, what: str) -> Iterator[dict]:
    """The goal of one release, in walls and in CPU seconds."""
    turns = [
        (spent(lambda: verified(root, name)), spent(lambda: read(root, name)))
        for _ in range(rounds)
    ]
    for place, kind in enumerate(("wall", "CPU")):
        found = [ours[place] / control[place] for ours, control in turns]
        yield result(
            f"{kind} of manifest verify ({what}) over hashing and decoding its files",
            median(found),
            f"<= {GOAL:g}",
            median(found) <= GOAL,
            f"median of {rounds} ratios ({min(found):.2f} to {max(found):.2f}), a process each, "
            f"{len(os.sched_getaffinity(0))} cores",
        )


def archived(root: Path, n: int) -> str:
    """A promotion that rests on `n` different dialogues, and their archive; its manifest's id."""
    (root / "gates.yaml").write_text(GATES.replace("live_stream_qa", "dialogues"))
    different_items(root, n)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "dialogues"], cwd=root, check=True)
    harness(root, "eval", "dialogues", "--concurrency", "8", "-q", "--json")
    name = json.loads(harness(root, "promote", "--approve", "Ann", "--json").out)["manifest"]
    harness(root, "manifest", "archive", name, "-q")
    return name


def different_items(root: Path, n: int) -> None:
    """The evalset `dialogues`: `n` items of the intent mix of live_stream_qa."""
    from harness_cli.records.reader import load_yaml

    made, kept = root.parent / "scenarios", list[str]()
    for seed in SEEDS:
        words = ["--seed", seed, "--evalsets", root / "evalsets", "--out", made / str(seed)]
        run([sys.executable, "-m", "harness_cli.simulator.scenarios", *words])
        for line in (made / str(seed) / "live_stream_qa" / "items.jsonl").read_text().splitlines():
            item = json.loads(line)
            item.pop("split", None)
            kept.append(json.dumps(item | {"id": f"{seed}-{item['id']}"}, ensure_ascii=False))
        if len(kept) >= n:
            break
    folder = root / "evalsets" / "dialogues"
    folder.mkdir()
    (folder / "items.jsonl").write_text("\n".join(kept[:n]) + "\n")
    own = load_yaml(
        (root / "evalsets/live_stream_qa/evalset.yaml").read_text(), name="evalset.yaml"
    )
    header = {k: v for k, v in own.items() if k not in ("seal", "digests")}
    text = json.dumps(header | {"name": "dialogues", "splits": {"dev": n}})
    (folder / "evalset.yaml").write_text(text)


def release(root: Path, n: int) -> str:
    """A promotion whose evidence holds `n` items; its manifest's id."""
    from harness_cli.records.manifest import Approval
    from harness_cli.release.candidate import named_run, pair_of_run, read_gates
    from harness_cli.release.clock import now
    from harness_cli.release.gather import candidate, gather
    from harness_cli.release.promote import promote
    from harness_cli.store.project import Project

    project = Project.find(root)
    named = named_run(project, None)
    chosen = candidate(project, read_gates(project), pair_of_run(named.config()), named)
    yes = Approval(by="Ann", at=now(), subject=chosen.pair.subject)
    facts = gather(chosen, drift=(), approvals=[yes])
    some = facts.runs["business"]
    lines = tuple(
        msgspec.structs.replace(line, item_id=f"{line.item_id}-{k}")
        for k in range(-(-n // len(some.lines)))
        for line in some.lines
    )[:n]
    facts = replace(facts, runs={"business": replace(some, lines=lines, planned=n)})
    done = promote(chosen, facts, at=now(), by="Ann")
    if done.manifest is None:
        raise RuntimeError(f"not promoted: {done.decision}")
    return done.manifest.predicate.id


def verified(root: Path, name: str) -> None:
    """The release under test."""
    from harness_cli.release.verify import verified as holds
    from harness_cli.release.verify import verify
    from harness_cli.store.project import Project

    checks = verify(Project.find(root), name)[1]
    if not holds(checks):
        raise RuntimeError(str([c for c in checks if c.outcome == "wrong"]))


def read(root: Path, name: str) -> None:
    """The control: every file that a verifier cannot do without, hashed and decoded."""
    import zstandard

    from harness_cli.records.reader import load_yaml
    from harness_cli.store.project import Project
    from harness_cli.store.repo import Repo

    project = Project.find(root)
    manifest = (project.manifests / f"{name}.json").read_bytes()
    hashlib.sha256(manifest).hexdigest()
    bound = json.loads(manifest)["predicate"]
    packed = (project.manifests / "evidence" / f"{name}.jsonl.zst").read_bytes()
    hashlib.sha256(packed).hexdigest()
    text = zstandard.ZstdDecompressor().stream_reader(packed).read()
    for line in text.splitlines():
        hashlib.sha256(line).hexdigest()
        json.loads(line)
    read_archive(project.manifests / "archive" / f"{name}.zip")
    repo = Repo.open(root)
    commit = bound["harness"]["commit"]
    files = repo.files(commit, project.harness) | repo.files(commit, project.evalsets)
    for path, entry in files.items():
        hashlib.sha256(entry.data).hexdigest()
        if path.endswith((".yaml", ".yml")):
            load_yaml(entry.data.decode(), name=path)
        elif path.endswith(".json"):
            json.loads(entry.data)
        elif path.endswith(".jsonl"):
            for line in entry.data.splitlines():
                json.loads(line)


def read_archive(path: Path) -> None:
    """The control's part of an archive, where there is one."""
    if not path.is_file():
        return
    hashlib.sha256(path.read_bytes()).hexdigest()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            text = archive.read(info)
            hashlib.sha256(text).hexdigest()
            for line in text.splitlines():
                json.loads(line)


def spent(work: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU seconds of a copy of this process that does it, its children among them."""
    from harness_cli.store.children import Children

    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with Children() as children:
        children.start(work)
        done = children.wait() == [True]
    wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if not done:
        work()  # so that its error is raised
        raise RuntimeError("a turn failed, and did not when it was done again")
    return wall, used.ru_utime - before.ru_utime + used.ru_stime - before.ru_stime
