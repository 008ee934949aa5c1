"""Lessons lie on the disk: what a data set needs in memory does not grow with its rows."""

import tracemalloc

from lesson_shop import byte_tokenizer

from harness_cli.records.training import Provenance, SftRow
from harness_cli.store.runs import Key
from harness_cli.training.lessons import Lessons, Spooled
from harness_cli.training.masking import AHEAD, CHUNK, Masked, Order, Tools, mask_all
from harness_cli.training.students import Lesson


def spooled(item, text, student="agent"):
    origin = Provenance(evalset="shop", split="dev", item=item)
    messages = ({"role": "user", "content": "hi"}, {"role": "assistant", "content": text})
    row = SftRow(id=f"{item}/{student}", student=student, messages=messages, provenance=origin)
    return Spooled(row=row, trained=(1,), sampled={1: (5, 6)})


def test_lessons_come_back_in_order_of_their_items_and_the_first_of_equal_ones_counts():
    with Lessons() as found:
        for item, text in (("c", "same"), ("a", "one"), ("b", "same")):
            found.keep((Key(item), 0), spooled(item, text), text.encode())
        found.close_books()
        assert [s.row.id for s in found.each()] == ["a/agent", "b/agent"]
        assert [(x.item, x.reason) for x in found.left_out] == [("c", "duplicate")]
        assert found.rows == 2
        first = next(found.each())
        assert first == spooled("a", "one")
        assert first.order() == Order(Lesson("agent", first.row.messages, (1,)), None, {1: (5, 6)})


def test_a_thousand_long_lessons_take_the_memory_of_one():
    tracemalloc.start()
    try:
        with Lessons() as found:
            for n in range(1000):
                text = f"{n} " * 8_000
                found.keep((Key(f"i-{n:05d}"), 0), spooled(f"i-{n:05d}", text), str(n).encode())
                written = found._spool.tell()
            found.close_books()
            tracemalloc.reset_peak()
            assert sum(len(s.row.messages[1]["content"]) > 15_000 for s in found.each()) == 1000
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert written > 30_000_000
    assert peak < 3_000_000


def test_lessons_are_read_a_few_chunks_ahead_of_the_processes(tmp_path):
    folder = byte_tokenizer(tmp_path / "model")
    read = 0

    def orders(count):
        nonlocal read
        for n in range(count):
            read += 1
            said = ({"role": "user", "content": "hi"}, {"role": "assistant", "content": f"{n}"})
            yield Order(Lesson("agent", said, (1,)), None)

    count, most = 20 * CHUNK, 0
    for done, result in enumerate(
        mask_all(Tools(folder, folder), orders(count), processes=2, count=count), start=1
    ):
        assert isinstance(result, Masked)
        most = max(most, read - done)
    assert done == read == count
    assert most <= (2 * AHEAD + 1) * CHUNK
