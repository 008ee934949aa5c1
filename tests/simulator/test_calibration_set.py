"""The calibration set of judges: made anew byte by byte, and labelled by how it was made."""

import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from harness_cli.records.calibration import CORRUPTIONS, CandidateLine
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import read_yaml
from harness_cli.simulator.calibration import SEED, write_set
from harness_cli.simulator.oracle import read_templates
from harness_cli.store.catalogue import read_catalogue

EVALSETS = Path(__file__).parents[2] / "evalsets"
SET = EVALSETS / "judge_calibration"
WORLD = read_catalogue(EVALSETS / "catalogue")
LINES = [
    msgspec.json.decode(line, type=CandidateLine)
    for line in (SET / "candidates.jsonl").read_bytes().splitlines()
]
ITEMS = {
    item.id: item
    for line in (EVALSETS / "live_stream_qa" / "items.jsonl").read_bytes().splitlines()
    if (item := msgspec.json.decode(line, type=Item)).split == "dev"
}
CORRECT = {line.item_id: line.replies[0].reply for line in LINES}


def corrupted(kind):
    return [
        (line, reply) for line in LINES for reply in line.replies[1:] if reply.corruption == kind
    ]


def test_the_committed_set_is_what_the_generator_makes(tmp_path):
    counts = write_set(EVALSETS, tmp_path, SEED)
    for name in ("candidates.jsonl", "evalset.yaml"):
        assert (tmp_path / name).read_bytes() == (SET / name).read_bytes(), name
    assert counts["correct"] == 482


def test_another_seed_gives_other_candidates(tmp_path):
    write_set(EVALSETS, tmp_path, SEED + 1)
    assert (tmp_path / "candidates.jsonl").read_bytes() != (SET / "candidates.jsonl").read_bytes()


def test_it_shares_the_dev_items_by_id_and_says_what_it_is():
    header = read_yaml(SET / "evalset.yaml", EvalsetHeader)
    assert (header.role, header.items_of, header.splits) == (
        "judge",
        "live_stream_qa",
        {"dev": 482},
    )
    assert "never a policy test set" in header.notes
    assert "BY CONSTRUCTION" in header.notes
    assert [line.item_id for line in LINES] == list(ITEMS)


def test_every_item_has_its_correct_reply_and_at_most_one_corruption():
    for line in LINES:
        first, *more = line.replies
        assert (first.accuracy, first.effectiveness, first.corruption) == (1, 1, "")
        assert len(more) <= 1
    counts = Counter(r.corruption for line in LINES for r in line.replies[1:])
    assert set(counts) == set(CORRUPTIONS)
    assert min(counts.values()) >= 20


def said(reply, fact):
    forms = [str(fact.value), *fact.forms]
    if isinstance(fact.value, float | int) and not isinstance(fact.value, bool):
        forms[0] = f"{fact.value:g}"
    return any(f.casefold() in reply.casefold() for f in forms)


def test_a_correct_reply_holds_every_fact_that_the_item_asks_for():
    missing = [
        (item.id, fact.field, CORRECT[item.id])
        for item in ITEMS.values()
        for fact in item.expect.facts
        if not said(CORRECT[item.id], fact)
    ]
    assert not missing


def test_a_correct_reply_holds_nothing_that_the_item_forbids():
    for item in ITEMS.values():
        for phrase in item.expect.forbidden:
            assert phrase.casefold() not in CORRECT[item.id].casefold(), item.id


LABELS = {
    "wrong_price": {(0, 0.0), (0, 0.5)},
    "unsupported_claim": {(0, 1.0)},
    "false_promise": {(0, 1.0)},
    "human_identity": {(0, 1.0), (0, 0.0)},
    "wrong_link": {(0, 0.5)},
    "partial": {(1, 0.5)},
    "missed_comment": {(1, 0.5)},
    "over_refusal": {(1, 0.0)},
}


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_labels_follow_from_the_corruption(kind):
    found = corrupted(kind)
    assert {(r.accuracy, float(r.effectiveness)) for _, r in found} <= LABELS[kind]
    assert all(r.reply != CORRECT[line.item_id] for line, r in found)


def test_a_wrong_price_stands_in_the_reply_and_in_no_tool_result_about_it():
    for line, reply in corrupted("wrong_price"):
        field, true, false = re.fullmatch(r"(\w+) ([\d.]+) → (\d+)", reply.change).groups()
        assert false in reply.reply
        assert f"{float(true):g}" in json.dumps(msgspec.to_builtins(line.calls))
        products = {f.product for f in ITEMS[line.item_id].expect.facts if f.product}
        amounts = {a for p in WORLD.products if p.id in products for a in (p.price, p.list_price)}
        assert float(false) not in amounts, (field, line.item_id)


def test_a_wrong_link_names_another_product_of_the_room():
    for line, reply in corrupted("wrong_link"):
        true, false = map(int, re.findall(r"\d+", reply.change))
        products = ITEMS[line.item_id].request.room.products
        assert products[true - 1] != products[false - 1]
        assert re.search(rf"(?<!\d){false}(?!\d)", reply.reply)


def test_an_added_sentence_stands_after_the_whole_correct_answer():
    for kind in ("unsupported_claim", "false_promise"):
        for line, reply in corrupted(kind):
            sentence = reply.change.removeprefix("added: ")
            whole = reply.reply.removesuffix(sentence).rstrip()
            assert whole == CORRECT[line.item_id]


def test_no_source_supports_an_unsupported_claim_or_a_promise():
    texts = read_templates(SET / "templates.yaml").corruptions
    pools = [*texts.unsupported_claim.values(), *texts.false_promise.values(), texts.human_identity]
    sources = msgspec.json.encode(WORLD).decode().casefold()
    for pool in pools:
        for sentence in (*pool.en, *pool.zh):
            assert sentence.casefold().strip(".。") not in sources


def test_a_missed_comment_and_a_partial_answer_keep_something_of_the_answer():
    for kind in ("missed_comment", "partial"):
        for line, reply in corrupted(kind):
            facts = ITEMS[line.item_id].expect.facts
            assert not all(said(reply.reply, f) for f in facts) or kind == "partial"
            assert reply.reply.strip()
            assert len(reply.reply) < len(CORRECT[line.item_id]) or kind == "partial"
