"""Verifiable instructions for a bare model: prompt in, answer out, checked without a judge."""

from collections.abc import Callable, Sequence

from harness_cli.records.item import Assertion, Item
from harness_cli.records.request import Request
from harness_cli.simulator.scenarios.draws import generator, pick

Made = tuple[str, tuple[Assertion, ...]]

TOPICS = (
    ("a rainy morning in a harbour town", "harbour"),
    ("how bread rises", "yeast"),
    ("why the sea is salty", "salt"),
    ("learning to ride a bicycle", "balance"),
    ("a library at night", "books"),
    ("growing tomatoes on a balcony", "sunlight"),
    ("packing for a short trip", "luggage"),
    ("the first snow of the year", "snow"),
    ("repairing an old clock", "gears"),
    ("a walk through a market", "stalls"),
)
FRUITS = ("apple", "banana", "cherry", "grape", "lemon", "mango", "orange", "peach", "pear", "plum")
PER_KIND = 6


def instruction_items(seed: int) -> list[Item]:
    """Items of every kind, `PER_KIND` each, in a fixed order."""
    items: list[Item] = []
    for name, make in KINDS.items():
        for n in range(PER_KIND):
            prompt, checks = make(n, seed)
            number = len(items) + 1
            items.append(
                Item(
                    id=f"gi-{number:03d}",
                    split="all",
                    category=name,
                    request=Request(prompt=prompt),
                    assert_=checks,
                    tags=("bare", f"kind:{name}"),
                )
            )
    return items


def _topic(n: int, seed: int, kind: str) -> tuple[str, str]:
    order = list(TOPICS)
    generator(seed, "instructions", kind).shuffle(order)
    return order[n % len(order)]


def _keyword(n: int, seed: int) -> Made:
    about, word = _topic(n, seed, "keyword")
    prompt = f'Write two or three sentences about {about}. Use the word "{word}".'
    return prompt, (Assertion(type="icontains", value=word),)


def _all_keywords(n: int, seed: int) -> Made:
    words = generator(seed, "words", n).sample(FRUITS, 3)
    listed = f"{words[0]}, {words[1]} and {words[2]}"
    prompt = f"Write a short story of three sentences that mentions {listed}."
    return prompt, (Assertion(type="icontains-all", value=words),)


def _forbidden(n: int, seed: int) -> Made:
    about, word = _topic(n, seed, "forbidden")
    prompt = f'Describe {about} in two sentences without using the word "{word}".'
    checks = (Assertion(type="not-icontains", value=word), Assertion(type="regex", value=r"\w{3,}"))
    return prompt, checks


def _no_letter(n: int, seed: int) -> Made:
    letter = generator(seed, "letter").sample("zqxjkv", 6)[n]
    prompt = f'Name three animals in one sentence. The letter "{letter}" must not occur anywhere.'
    checks = (
        Assertion(type="not-icontains", value=letter),
        Assertion(type="regex", value=r"(?:\w+\W+){2,}\w+"),
    )
    return prompt, checks


def _words(n: int, seed: int) -> Made:
    about, _ = _topic(n, seed, "words")
    low = 10 + 5 * n
    high = low + 15
    prompt = f"Write between {low} and {high} words about {about}."
    return prompt, (Assertion(type="word-count", value={"min": low, "max": high}),)


def _at_most(n: int, seed: int) -> Made:
    about, _ = _topic(n, seed, "at-most")
    high = 12 + 4 * n
    prompt = f"In at most {high} words: {about}."
    return prompt, (Assertion(type="word-count", value={"min": 1, "max": high}),)


def _json(n: int, seed: int) -> Made:
    fruit = pick(generator(seed, "json", n), FRUITS)
    count = 2 + n
    schema = {
        "type": "object",
        "properties": {"fruit": {"const": fruit}, "count": {"const": count}},
        "required": ["fruit", "count"],
    }
    prompt = (
        f'Answer with a JSON object only, no other text, with the keys "fruit" (the text {fruit}) '
        f'and "count" (the number {count}).'
    )
    return prompt, (Assertion(type="is-json", value=schema),)


def _end(n: int, seed: int) -> Made:
    about, word = _topic(n, seed, "end")
    prompt = f'Write one sentence about {about}. Its last word must be "{word}", then a full stop.'
    return prompt, (Assertion(type="regex", value=rf"(?i)\b{word}\.\s*$"),)


def _start(n: int, seed: int) -> Made:
    about, _ = _topic(n, seed, "start")
    opener = ("Surely", "Perhaps", "Once", "Today", "Quietly", "Imagine")[n]
    prompt = f'Write two sentences about {about}. Begin with the word "{opener}".'
    return prompt, (Assertion(type="regex", value=rf"^\s*{opener}\b"),)


def _bullets(n: int, seed: int) -> Made:
    about, _ = _topic(n, seed, "bullets")
    count = 2 + n % 4
    prompt = (
        f'Give exactly {count} bullet points about {about}. Begin each with "* " '
        "and write nothing else."
    )
    value = rf"^\s*(?:\* [^\n]+\n+){{{count - 1}}}\* [^\n]+\s*$"
    return prompt, (Assertion(type="regex", value=value),)


def _capitals(n: int, seed: int) -> Made:
    about, _ = _topic(n, seed, "capitals")
    prompt = f"Write one sentence about {about} in capital letters only."
    checks = (
        Assertion(type="regex", value=r"[A-Z]{3,}"),
        Assertion(type="not-regex", value=r"[a-z]"),
    )
    return prompt, checks


def _lower(n: int, seed: int) -> Made:
    about, _ = _topic(n, seed, "lower")
    prompt = f"Write one sentence about {about} in lower-case letters only, no capitals."
    checks = (
        Assertion(type="regex", value=r"[a-z]{3,}"),
        Assertion(type="not-regex", value=r"[A-Z]"),
    )
    return prompt, checks


def _no_commas(n: int, seed: int) -> Made:
    about, _ = _topic(n, seed, "commas")
    prompt = f"Write three sentences about {about} without any comma."
    checks = (
        Assertion(type="not-contains", value=","),
        Assertion(type="regex", value=r"(?s)[.!?].+[.!?].+[.!?]"),
    )
    return prompt, checks


def _exact(n: int, seed: int) -> Made:  # noqa: ARG001  one signature for all kinds
    reply = ("I see.", "Not today.", "All clear", "42", "Good night", "Roger that")[n]
    prompt = f"Answer with exactly this text and nothing else: {reply}"
    return prompt, (Assertion(type="regex", value=rf"^\s*{_escaped(reply)}\s*$"),)


def _chinese(n: int, seed: int) -> Made:  # noqa: ARG001
    topic = ("春天", "早餐", "大海", "火车", "小猫", "月亮")[n]
    prompt = f"用一句中文介绍“{topic}”，不要出现任何英文字母，句子里必须有“{topic}”。"
    checks = (
        Assertion(type="contains", value=topic),
        Assertion(type="not-regex", value=r"[A-Za-z]"),
    )
    return prompt, checks


def _escaped(text: str) -> str:
    return text.replace(".", r"\.")


KINDS: dict[str, Callable[[int, int], Made]] = {
    "keyword": _keyword,
    "all-keywords": _all_keywords,
    "forbidden-word": _forbidden,
    "no-letter": _no_letter,
    "word-range": _words,
    "word-limit": _at_most,
    "json": _json,
    "last-word": _end,
    "first-word": _start,
    "bullets": _bullets,
    "capitals": _capitals,
    "lower-case": _lower,
    "no-commas": _no_commas,
    "exact": _exact,
    "chinese": _chinese,
}
"""Kinds of instructions, by the name of their category."""


def kinds() -> Sequence[str]:
    """The kinds there are."""
    return tuple(KINDS)
