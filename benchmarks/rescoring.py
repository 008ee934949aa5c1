"""A run of 10,000 items scored again and reported, over decoding its journal; and its page.

The rollouts are real: the embedded policy on the 482 dev items of `live_stream_qa`, copied under
new ids until there are enough. Both sides work on the same journal, in turns, and count the best
of their rounds: what other programs take of the machine only ever adds. Beside the ratio of the
walls stands that of the CPU time of all processes, children included. The page is opened by
Chromium where one is installed.
"""

import importlib.util
import json
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF
from statistics import median
from typing import NamedTuple

import msgspec

from benchmarks.floor import result
from benchmarks.process import harness, run

SET, TILED = "live_stream_qa", "tiled"
OPENS_S, PAGE_MB, RATIO = 2.0, 10.0, 1.3
OPENING = "seconds to open a page"


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    n, page_n, rounds = (964, 964, 3) if quick else (10_000, 5_000, 7)
    harness(folder, "init", "shop", "-q")
    root = folder / "shop"
    limit = ["--limit", 60] if quick else []
    harness(root, "eval", SET, *limit, "-q", "--json")
    large = tiled(root, n)
    yield rescoring(root, large, rounds)
    yield memory(root, large)
    smaller = tiled(root, page_n)
    yield from page(root, smaller, page_n)


def tiled(root: Path, n: int) -> str:
    """A run of `n` items made of the newest one's; its id."""
    from harness_cli.evaluation.evalsets import load_evalset
    from harness_cli.evaluation.summary import write_reports
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    project = Project.find(root)
    store = RunStore(project.runs)
    source = store.newest(evalset=SET, fits=lambda config: config.rescored_of is None)
    make_evalset(project.evalsets, n, [r.item_id for r in source.results()])
    evalset = load_evalset(project, TILED)
    config = msgspec.structs.replace(
        source.config(), id=store.new_id(), evalset=evalset.ref, limit=None
    )
    folder = store.create(config)
    copy_journal(source.journal, folder.journal, n)
    write_reports(folder, planned=n, status="complete", metrics=evalset.header.metrics)
    return folder.id


def make_evalset(evalsets: Path, n: int, ids: list[str]) -> None:
    """The items of the run under new ids, `n` of them."""
    known = {}
    for line in (evalsets / SET / "items.jsonl").read_text().splitlines():
        item = json.loads(line)
        known[item["id"]] = item
    (evalsets / TILED).mkdir(exist_ok=True)
    with (evalsets / TILED / "items.jsonl").open("w") as file:
        for i in range(n):
            item = known[ids[i % len(ids)]]
            line = json.dumps({**item, "id": name(item["id"], i // len(ids))}, ensure_ascii=False)
            file.write(line + "\n")
    (evalsets / TILED / "evalset.yaml").write_text(f"name: {TILED}\nsplits: {{dev: {n}}}\n")


def name(item: str, copy: int) -> str:
    return f"{copy:04d}-{item}"


def copy_journal(source: Path, target: Path, n: int) -> None:
    """Every record under its new ids; long texts stand once a copy, as a longer run has them."""
    from harness_cli.records.journal import JournalRecord
    from harness_cli.store.journal import line_of, scan

    decode = msgspec.json.Decoder(JournalRecord).decode
    records = [decode(line.data) for line in scan(source)]
    ids = sorted({r.item for r in records if hasattr(r, "item")})
    place = {item: i for i, item in enumerate(ids)}
    with target.open("wb") as file:
        for copy in range(-(-n // len(ids))):
            for record in records:
                item = getattr(record, "item", None)
                if item is not None and copy * len(ids) + place[item] >= n:
                    continue
                file.write(line_of(msgspec.json.encode(renamed(record, copy))))


def renamed(record, copy: int):
    if not hasattr(record, "item"):
        return record
    new = name(record.item, copy)
    changed = {"item": new}
    for part in ("trajectory", "result"):
        inner = getattr(record, part, None)
        if hasattr(inner, "item_id"):
            changed[part] = msgspec.structs.replace(inner, item_id=new)
    return msgspec.structs.replace(record, **changed)


class Spent(NamedTuple):
    """Seconds by the clock, and of CPU in this process and the children it has waited for."""

    wall: float
    cpu: float

    @classmethod
    def by(cls, work: Callable[[], object]) -> "Spent":
        """What a piece of work takes."""
        wall, cpu = time.perf_counter(), cpu_s()
        work()
        return cls(time.perf_counter() - wall, cpu_s() - cpu)


def cpu_s() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))


def decode_all(journal: Path) -> None:
    """Check and decode every record."""
    from harness_cli.records.journal import JournalRecord
    from harness_cli.store.journal import scan

    decode = msgspec.json.Decoder(JournalRecord).decode
    for line in scan(journal):
        decode(line.data)


def rescore_and_report(root: Path, run: str) -> Path:
    """Load the evalset, score every item again, write both reports and the table; the folder."""
    from harness_cli.evaluation.report import markdown
    from harness_cli.evaluation.rescore import rescore
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    project = Project.find(root)
    outcome = rescore(project, RunStore(project.runs).get(run))
    assert markdown(outcome.report)
    assert outcome.report.status == "complete"
    return outcome.run.path


def rescoring(root: Path, run: str, rounds: int) -> dict:
    journal = root / ".harness/runs" / run / "journal.jsonl"
    made: list[Path] = []

    def scored() -> None:
        made.append(rescore_and_report(root, run))

    decoding, scoring = [], []
    for _ in range(1 + rounds):
        decoding.append(Spent.by(lambda: decode_all(journal)))
        scoring.append(Spent.by(scored))
        shutil.rmtree(made.pop())
    wall, cpu = (
        [min(spent[i] for spent in side[1:]) for side in (decoding, scoring)] for i in (0, 1)
    )
    value = wall[1] / wall[0]
    size = journal.stat().st_size / 1e6
    how = (
        f"{size:.0f} MB journal; decoding {wall[0]:.2f} s ({cpu[0]:.2f} s of CPU), scored and "
        f"reported {wall[1]:.2f} s ({cpu[1]:.2f} s of CPU in all processes, ratio "
        f"{cpu[1] / cpu[0]:.2f}), best of {rounds} rounds each"
    )
    return result(
        "re-score and report / decode the journal", value, f"<= {RATIO}", value <= RATIO, how
    )


PEAK = """import json, resource, subprocess, sys
words = [sys.executable, "-m", "harness_cli.main", *json.loads(sys.argv[1])]
subprocess.run(words, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A child's peak counts from its parent's size on: a small process starts the measured one."""


def memory(root: Path, large: str) -> dict:
    """Peak memory of `harness report` on the large run against a small one."""
    small = tiled(root, 500)
    peaks = []
    for each in (small, large):
        words = ["report", each, "-o", "page.html", "--json", "-q"]
        done = run([sys.executable, "-c", PEAK, json.dumps(words)], root)
        peaks.append((int(done.out.splitlines()[-1]) / 1024, done.wall_s))
    grown = peaks[1][0] - peaks[0][0]
    how = f"{peaks[0][0]:.0f} MiB at 500 items, {peaks[1][0]:.0f} MiB here, {peaks[1][1]:.1f} s"
    return result("MiB that `harness report` grows by", grown, "<= 64", grown <= 64, how)


def page(root: Path, run: str, n: int) -> Iterator[dict]:
    done = harness(root, "report", run, "-o", "page.html", "--json", "-q")
    said = json.loads(done.out)
    value = said["bytes"] / 1e6
    how = f"{n} items, {said['trajectories_left_out']} trajectories left out, {done.wall_s:.1f} s"
    ok = value <= PAGE_MB and said["trajectories_left_out"] == 0
    yield result("MB of a page", value, f"<= {PAGE_MB:g}", ok, how)
    if importlib.util.find_spec("playwright") is None or shutil.which("chromium") is None:
        how = "no Chromium or no Playwright here"
        goal = f"<= {OPENS_S:g}"
        yield {"name": OPENING, "value": None, "goal": goal, "ok": None, "how": how}
        return
    times = [seconds_to_open(root / "page.html") for _ in range(5)]
    value = median(times)
    how = f"{n} items, navigation to a drawn table, median of 5 new browsers"
    yield result(OPENING, value, f"<= {OPENS_S:g}", value <= OPENS_S, how)


def seconds_to_open(path: Path) -> float:
    """From the start of the navigation until the table stands, by the browser's own clock."""
    from playwright.sync_api import sync_playwright

    args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=args)
        opened = browser.new_page()
        opened.goto(path.as_uri())
        opened.wait_for_selector("html[data-ready] #table tbody tr")
        value = opened.evaluate("performance.getEntriesByName('ready')[0].startTime") / 1000
        browser.close()
    return float(value)
