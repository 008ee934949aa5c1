"""General instructions: every one can be met, and a careless answer does not meet it."""

import asyncio
import json
import re
from pathlib import Path

import msgspec
import pytest

from harness_cli.judges.assertions import check_assertions
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.simulator.scenarios.instructions import KINDS, PER_KIND, instruction_items

PATH = Path(__file__).parents[2] / "evalsets" / "general_instructions" / "items.jsonl"
ITEMS = [msgspec.json.decode(line, type=Item) for line in PATH.read_bytes().splitlines()]


def met(item: Item, reply: str) -> bool:
    trajectory = Trajectory(request_id="r", item_id=item.id, agent="bare", reply=reply)
    results = check_assertions(item, trajectory)
    if asyncio.iscoroutine(results):
        results = asyncio.run(results)
    assert all(r.passed is not None for r in results)
    return all(r.passed for r in results)


def quoted(item: Item) -> list[str]:
    return re.findall(r"[\"“]([^\"”]+)[\"”]", item.request.prompt)


def numbers(item: Item) -> list[int]:
    return [int(n) for n in re.findall(r"\b\d+\b", item.request.prompt)]


ANSWERS = {
    "keyword": lambda i: f"It is quiet there. You notice the {quoted(i)[0]} first.",
    "all-keywords": lambda i: (
        f"One day {i.assert_[0].value[0]} met {i.assert_[0].value[1]}. "
        f"Then came {i.assert_[0].value[2]}. They left."
    ),
    "forbidden-word": lambda i: "It takes time and care. In the end it is worth it.",
    "no-letter": lambda i: "A hen, a cat and a dog.",
    "word-range": lambda i: " ".join(["calm"] * (numbers(i)[0] + 2)) + ".",
    "word-limit": lambda i: "It is calm and slow.",
    "json": lambda i: json.dumps(
        {"fruit": re.search(r"the text (\w+)", i.request.prompt)[1], "count": numbers(i)[-1]}
    ),
    "last-word": lambda i: f"All of it comes down to {quoted(i)[0]}.",
    "first-word": lambda i: f"{quoted(i)[0]} it begins. Then it goes on.",
    "bullets": lambda i: "\n".join(["* a point"] * numbers(i)[0]),
    "capitals": lambda i: "IT IS CALM THERE.",
    "lower-case": lambda i: "it is calm there.",
    "no-commas": lambda i: "It is calm. It is slow. It is good.",
    "exact": lambda i: i.request.prompt.partition("nothing else: ")[2],
    "chinese": lambda i: f"{quoted(i)[0]}让人心里很安静。",
}
CARELESS = {
    "bullets": "* only one",
    "exact": "Sure! Here is the text you asked for.",
    "word-limit": "word " * 60,
    "no-commas": "Well, no, not quite. So. It.",
    "no-letter": "A zebra, a fox, a jackal, a quokka and a vicuna, maybe a kiwi.",
    "lower-case": "It Is Not.",
    "forbidden-word": "harbour yeast salt balance books sunlight luggage snow gears stalls",
}


@pytest.mark.parametrize("item", ITEMS, ids=[i.id for i in ITEMS])
def test_an_instruction_can_be_met_and_can_be_missed(item):
    kind = item.category
    assert met(item, ANSWERS[kind](item))
    assert not met(item, CARELESS.get(kind, "I would rather talk about something else."))


def test_there_are_between_60_and_100_of_every_kind_and_none_twice():
    assert 60 <= len(ITEMS) == len(KINDS) * PER_KIND <= 100
    assert len({i.request.prompt for i in ITEMS}) == len(ITEMS)
    assert set(ANSWERS) == set(KINDS)


def test_bare_items_hold_a_prompt_and_deterministic_assertions_only():
    for item in ITEMS:
        assert item.request.prompt
        assert not item.request.comments
        assert item.assert_
        assert not {a.type for a in item.assert_} & {"llm-rubric", "select-best"}


def test_the_same_seed_makes_the_same_instructions():
    assert instruction_items(3) == instruction_items(3)
    assert instruction_items(3) != instruction_items(4)
