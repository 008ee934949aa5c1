"""A journal scored in ranges by several processes gives what one process gives."""

import io
import json
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))
sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call
from small_shop import make_shop

from harness_cli.errors import BadFile, HarnessError
from harness_cli.evaluation import score_parts
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.part_sums import whole_of
from harness_cli.evaluation.rescore import rescore
from harness_cli.evaluation.score_parts import parts_of
from harness_cli.evaluation.scorer import Scorer, Window
from harness_cli.store.journal import data_of, line_of, ranges, scan
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    root = tmp_path_factory.mktemp("parts") / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "--repeat", "2", "-q").code == 0
    return root


@pytest.fixture
def cores(monkeypatch):
    """So many cores, and a journal of `least` bytes is worth one of them."""

    def have(n, least=1):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(n)))
        # Whatever threads other tests of this process left.
        monkeypatch.setattr(threading, "active_count", lambda: 1)
        monkeypatch.setattr(score_parts, "LEAST", least)

    return have


def score_in_parts(journal, scorer, window):
    """Whether children scored a journal into `scorer`."""
    with parts_of(journal, window) as parts:
        return parts is not None and parts.join(scorer)


def journal_of(root):
    return RunStore(Project.find(root).runs).list()[0].journal


def windows(root):
    items = load_evalset(Project.find(root), "shop").items
    return lambda: Window(iter(items), 2)


def read(scorer, text):
    """Every item record by the place that the scorer names."""
    found = {}
    for key, at in scorer.places.items():
        line = text[at : text.index(b"\n", at) + 1]
        found[key] = json.loads(data_of(line))
    return found


def alone(root, journal):
    file = io.BytesIO()
    scorer = Scorer(windows(root)(), file)
    for line in scan(journal):
        scorer.take(line)
    return read(scorer, file.getvalue())


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_ranges_give_the_same_results_wherever_the_borders_fall(shop, cores, count):
    cores(count)
    journal = journal_of(shop)
    file = io.BytesIO()
    scorer = Scorer(windows(shop)(), file)
    assert score_in_parts(journal, scorer, windows(shop))
    found = read(scorer, file.getvalue())
    assert found == alone(shop, journal)
    assert len(found) == 108
    assert scorer.size == len(file.getvalue())


def test_a_border_at_every_line_hands_records_over(shop, tmp_path, cores, monkeypatch):
    """Three lines of one item, a border between any two of them."""
    cores(8)
    lines = journal_of(shop).read_bytes().splitlines(keepends=True)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"".join(lines))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    wanted = alone(shop, journal)
    kinds = [line.kind for line in scan(journal)]
    ended = kinds.index("item")
    for border in range(max(ended - 3, 1), ended + 2):
        bounds = [(0, starts[border]), (starts[border], starts[-1])]
        monkeypatch.setattr(score_parts, "ranges", lambda *_, bounds=bounds: bounds)
        file = io.BytesIO()
        scorer = Scorer(windows(shop)(), file)
        assert score_in_parts(journal, scorer, windows(shop))
        assert read(scorer, file.getvalue()) == wanted, border


def test_small_journals_and_single_cores_are_left_to_one_process(shop, cores):
    scorer = Scorer(windows(shop)(), io.BytesIO())
    cores(8, least=1 << 24)
    assert not score_in_parts(journal_of(shop), scorer, windows(shop))
    cores(1)
    assert not score_in_parts(journal_of(shop), scorer, windows(shop))
    assert scorer.places == {}


@pytest.mark.parametrize("where", [0.1, 0.9])
def test_a_damaged_record_in_any_range_voids_the_attempt(shop, tmp_path, cores, where):
    cores(2)
    data = bytearray(journal_of(shop).read_bytes())
    data[int(len(data) * where)] ^= 1
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(bytes(data))
    file = io.BytesIO()
    scorer = Scorer(windows(shop)(), file)
    assert not score_in_parts(journal, scorer, windows(shop))
    assert file.getvalue() == b""
    with pytest.raises(BadFile, match="does not match its checksum"):
        alone(shop, journal)


def test_a_torn_end_is_left_out(shop, tmp_path, cores):
    cores(2)
    whole = journal_of(shop).read_bytes()
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(whole[:-30])
    file = io.BytesIO()
    scorer = Scorer(windows(shop)(), file)
    assert score_in_parts(journal, scorer, windows(shop))
    assert len(read(scorer, file.getvalue())) == 107


@pytest.mark.parametrize("count", [1, 2, 3, 7, 500])
def test_ranges_begin_with_lines_and_cover_the_file(shop, count):
    journal = journal_of(shop)
    data = journal.read_bytes()
    bounds = ranges(journal, count)
    assert bounds[0][0] == 0
    assert bounds[-1][1] == len(data)
    assert [end for _, end in bounds[:-1]] == [start for start, _ in bounds[1:]]
    assert all(start == 0 or data[start - 1 : start] == b"\n" for start, _ in bounds)
    assert 1 <= len(bounds) <= count
    lines = [line for start, end in bounds for line in scan(journal, start, end)]
    assert lines == list(scan(journal))
    assert lines[-1].end == len(data)


def test_a_sealed_split_is_logged_once(shop, cores):
    cores(2)
    assert call(shop, "eval", "shop", "--split", "test", "--reason", "first", "-q").code == 0
    assert call(shop, "eval", "--rescore", "latest", "--reason", "again", "-q").code == 0
    log = (shop / "evalsets/seal.log.jsonl").read_text()
    assert log.count('"again"') == 1


def rescored(shop, run):
    outcome = rescore(Project.find(shop), RunStore(Project.find(shop).runs).get(run))
    found = outcome.run.canonical.read_bytes(), msgspec.to_builtins(outcome.report)
    shutil.rmtree(outcome.run.path)
    for name in ("id", "started"):
        del found[1]["run"][name]
    return found


@pytest.mark.parametrize("count", [2, 3, 8])
def test_reports_have_the_same_bytes_however_many_processes_made_them(
    single, cores, monkeypatch, count
):
    shop, run = single
    cores(1)
    alone = rescored(shop, run)
    cores(count)
    seen = []
    monkeypatch.setattr(
        score_parts, "whole_of", lambda parts: seen.append(whole_of(parts)) or seen[0]
    )
    assert rescored(shop, run) == alone
    assert seen[0] is not None, "the parts were not used"
    assert len(alone[0].splitlines()) > 50


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """A run with one repeat: only such reports are made from parts."""
    root = tmp_path_factory.mktemp("single") / "shop"
    make_shop(root)
    done = call(root, "eval", "shop", "-q", "--json")
    return root, json.loads(done.out)["run"]["id"]


@pytest.mark.parametrize(
    ("line", "told"),
    [(None, "changed since run"), (b"{}\n", "items.jsonl:1: .*id")],
    ids=["other items", "no items"],
)
def test_what_was_scored_of_other_items_is_thrown_away(
    single, cores, monkeypatch, tmp_path, line, told
):
    """Children start before the items are known to be the run's."""
    shop, run = single
    cores(2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    items = shop / "evalsets/shop/items.jsonl"
    whole = items.read_bytes()
    items.write_bytes(line or whole.replace(b'"viewer": "', b'"viewer": "other-'))
    assert items.read_bytes() != whole
    runs = RunStore(Project.find(shop).runs)
    before = runs.list()
    try:
        with pytest.raises(HarnessError, match=told):
            rescored(shop, run)
    finally:
        items.write_bytes(whole)
    assert list(tmp_path.iterdir()) == []
    assert len(runs.list()) == len(before)
    with pytest.raises(ChildProcessError):  # nor is a child left
        os.waitpid(-1, os.WNOHANG)


def test_an_item_that_came_twice_leaves_the_report_to_the_journal(single, cores):
    """One that broke, and was done again when the run was resumed: the later result counts."""
    shop, run = single
    folder = RunStore(Project.find(shop).runs).get(run)
    whole = folder.journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    of_items = [line for line in scan(folder.journal) if line.kind == "item"]
    broken = json.loads(of_items[0].data)
    broken["result"] |= {"state": "errored", "scores": {}}
    again = next(line for line in scan(folder.journal) if line.kind == "trajectory")
    folder.journal.write_bytes(
        line_of(again.data) + line_of(json.dumps(broken).encode()) + b"".join(lines)
    )
    try:
        cores(1)
        alone = rescored(shop, run)
        cores(2)
        assert rescored(shop, run) == alone
        assert alone[1]["counts"]["missing"] == 0
    finally:
        folder.journal.write_bytes(whole)
