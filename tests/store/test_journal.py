import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from harness_cli.errors import BadFile, HarnessError
from harness_cli.records.journal import TextRecord
from harness_cli.store.journal import Journal, cut_torn_tail, line_of, read_at, scan


def write(path, texts):
    async def main():
        journal = Journal(path)
        for n, text in enumerate(texts):
            journal.append(TextRecord(id=str(n), text=text))
        await journal.close()
        return journal

    return asyncio.run(main())


def texts(path):
    return [msgspec.json.decode(line.data, type=TextRecord).text for line in scan(path)]


def test_records_come_back_in_the_order_they_were_appended(tmp_path):
    path = tmp_path / "journal.jsonl"
    write(path, ["a", "b\n", "\u4f60\u597d", ""])
    assert texts(path) == ["a", "b\n", "\u4f60\u597d", ""]
    assert path.read_bytes().count(b"\n") == 4


def test_a_second_process_appends_behind_the_first(tmp_path):
    path = tmp_path / "journal.jsonl"
    write(path, ["a"])
    write(path, ["b"])
    assert texts(path) == ["a", "b"]


def test_a_scan_names_kind_and_offset_and_read_at_finds_the_record(tmp_path):
    path = tmp_path / "journal.jsonl"
    write(path, ["a", "b"])
    lines = list(scan(path))
    assert [line.kind for line in lines] == ["text", "text"]
    assert read_at(path, lines[1].offset) == lines[1].data


def test_an_awaited_record_is_on_the_disk_and_many_share_one_sync(tmp_path):
    path = tmp_path / "journal.jsonl"

    async def main():
        journal = Journal(path)
        acks = [journal.append(TextRecord(id=str(n), text="x" * 100)) for n in range(500)]
        await acks[-1]
        seen = len(list(scan(path)))
        await journal.close()
        return seen, journal.syncs, journal.records

    seen, syncs, records = asyncio.run(main())
    assert seen == records == 500
    assert syncs <= 125  # performance.md G7: at most 0.25 syncs a record


def test_what_was_written_is_in_the_file_while_the_disk_still_syncs(tmp_path, monkeypatch):
    path = tmp_path / "journal.jsonl"
    slow, sync = threading.Event(), os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (slow.wait(30), sync(fd)))

    async def main():
        journal = Journal(path)
        first = journal.append(TextRecord(id="1", text="a"))
        journal.write_out()
        await asyncio.sleep(0.05)
        second = journal.append(TextRecord(id="2", text="b"))
        journal.write_out()
        seen = texts(path), first.done, second.done
        slow.set()
        await second
        done = first.done
        await journal.close()
        return seen, done

    assert asyncio.run(main()) == ((["a", "b"], False, False), True)


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_torn_tail_is_left_out_and_cut_to_the_last_newline(tmp_path, cut):
    path = tmp_path / "journal.jsonl"
    write(path, ["a", "b", "c" * 50])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert texts(path) == ["a", "b"]
    assert cut_torn_tail(path) > 0
    assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:2])
    assert cut_torn_tail(path) == 0


def test_a_tail_of_zeros_after_a_power_cut_is_torn_too(tmp_path):
    path = tmp_path / "journal.jsonl"
    write(path, ["a"])
    with path.open("ab") as file:
        file.write(b"\0" * 4096)
    assert cut_torn_tail(path) == 4096
    assert texts(path) == ["a"]


def test_a_changed_record_before_whole_ones_is_refused_with_its_line(tmp_path):
    path = tmp_path / "journal.jsonl"
    write(path, ["a", "bbbb", "c"])
    path.write_bytes(path.read_bytes().replace(b"bbbb", b"bbbB"))
    with pytest.raises(BadFile, match=r"journal.jsonl:2: .*checksum"):
        list(scan(path))


def test_the_line_format_is_golden():
    # The sum is what `b2sum -l 64` prints for the record's bytes.
    data = b'{"kind":"text","id":"1","text":"x"}'
    assert line_of(data) == (
        b'{"sum":"198085c56352a9c2","record":{"kind":"text","id":"1","text":"x"}}\n'
    )


def test_a_full_disk_is_told_to_everyone_who_waits_and_to_close(tmp_path):
    async def main():
        journal = Journal(tmp_path / "journal.jsonl")
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, journal._fd)
        os.close(full)
        with pytest.raises(HarnessError, match="No space left"):
            await journal.append(TextRecord(id="1", text="x"))
        with pytest.raises(HarnessError, match="No space left"):
            await journal.close()

    asyncio.run(main())


WRITER = """
import asyncio, sys
from pathlib import Path
from harness_cli.records.journal import TextRecord
from harness_cli.store.journal import Journal

async def main():
    journal = Journal(Path(sys.argv[1]))
    async def producer(name):
        n = 0
        while True:
            await journal.append(TextRecord(id=f"{name}-{n}", text="x" * 3000))
            sys.stdout.write(f"{name}-{n}\\n")
            sys.stdout.flush()
            n += 1
    await asyncio.gather(*(producer(n) for n in range(8)))
    await journal.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_kill_loses_no_acknowledged_record(tmp_path, seed):
    path = tmp_path / "journal.jsonl"
    command = [sys.executable, "-c", WRITER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.0, 0.25))
    process.send_signal(signal.SIGKILL)
    told = process.communicate()[0].splitlines()
    cut_torn_tail(path)
    kept = {msgspec.json.decode(line.data, type=TextRecord).id for line in scan(path)}
    acknowledged = {line for line in told if line.count("-") == 1 and line[-1].isdigit()}
    # The last line of a killed writer's pipe may be cut short, and then names another record.
    assert {a for a in acknowledged if a != told[-1]} <= kept
    assert len(kept) > 8


def test_journals_of_two_processes_are_never_mixed_within_a_line(tmp_path):
    path = tmp_path / "journal.jsonl"
    script = WRITER.replace("while True", "while n < 20").replace("sys.stdout", "sys.stderr")
    command = [sys.executable, "-c", script, str(path)]
    both = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(list(scan(Path(path)))) == 2 * 8 * 20
