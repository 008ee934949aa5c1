"""What the tiny base reads: repetitions, listings with requests, words of a topic, tool chats.

Nothing of the shop's harness, catalogue or comments is in it but single words. A document is a list
of pieces with a weight of loss each; `Encoder` makes ids of them. How hard listings are grows with
`level`, which waits for each level to be learnt (`base.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from harness_cli.training.tiny.pieces import NAME, Piece, called, shown
from harness_cli.training.tiny.pieces import said as said_turn
from harness_cli.training.tiny.words import FILLERS, PARTS, TOPICS, all_words

LEVELS: Final = (
    (2, 1, 0), (3, 1, 0), (3, 1, 2), (3, 2, 2), (4, 2, 4), (5, 2, 5), (6, 3, 6), (7, 3, 7),
)  # fmt: skip
"""Entries of a listing, words that describe one, fillers in a request (at most)."""
CHATS: Final = 4
"""Level from which chats are read."""
_ARROWS: Final = (' -> "', ' -> "', ' = "', ' : "')
_SKILL_NAMES: Final = ("skill", "name", "page", "skill_name", "guide_name", "playbook_name")
_LINK_NAMES: Final = (
    "link_id", "link_id", "link", "item_id", "link_no", "item_position", "shelf_number",
    "listing_number",
)  # fmt: skip
_LOADERS: Final = ("read a skill", "load a skill", "open a skill", "get a skill", "see a page")
_HEADINGS: Final = ("Rules", "Rules", "Guidelines", "House rules", "规则 Rules")
_OPENINGS: Final = (
    "Load a skill, do as it says, then reply.",
    "Read a skill, then reply as it says.",
    "Use a tool, then answer.",
    "Load, call, reply.",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing."""

    words: tuple[str, ...]
    name: str


class Writer:
    """Writes documents; the same generator writes the same."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.words = all_words()
        self.late = False

    def document(self, level: int, *, late: bool = False) -> tuple[str, list[Piece]]:
        """Kind and pieces of the next document.

        `late`: half of them are chats of many requests, and the assistant says what was asked and
        which entry fits before it loads a page, so that looking up is what it is in a listing.
        """
        self.late = late
        if late and self.draw.random() < 0.5:
            return "routing", self.routing(level)
        chance = self.draw.random()
        chats = level >= CHATS
        if chance < (0.1 if chats else 0.25):
            return "repeat", self.repetition()
        if chance < (0.2 if chats else 0.3):
            return "topic", self.topics()
        if not chats or chance < 0.4:
            now = level if self.draw.random() < 0.7 else self.draw.randrange(level + 1)
            return ("listing" if now == level else "earlier"), self.listing(now)
        if chance < 0.85:
            return "chat", self.chat(level)
        return "instruction", self.instruction()

    # Parts

    def name(self) -> str:
        """A name of two or three parts."""
        parts = [
            self.draw.choice(PARTS if self.draw.random() < 0.6 else self.words).lower()
            for _ in range(self.draw.choice((2, 2, 2, 3)))
        ]
        return self.draw.choice("-_").join(parts)

    def entries(self, count: int, words: int, joint: str | None = None) -> list[Entry]:
        """Entries with words that no two share, half of them of one topic each."""
        chosen: list[Entry] = []
        used: set[str] = set()
        begun: set[str] = set()
        topics = self.draw.sample(sorted(TOPICS), min(count, len(TOPICS)))
        for topic in topics:
            pool = TOPICS[topic] if self.draw.random() < 0.6 else self.words
            free = [w for w in pool if w not in used and w not in FILLERS]
            said = self.draw.sample(free, min(words, len(free)))
            used |= set(said)
            name = self.name()
            while name.replace("_", "-").split("-")[0] in begun:
                name = self.name()
            begun.add(name.replace("_", "-").split("-")[0])
            chosen.append(Entry(tuple(said), name if joint is None else name.replace("-", joint)))
        return chosen

    def request(self, entry: Entry, fillers: int, others: Sequence[Entry] = ()) -> str:
        """A sentence with a word of the entry among fillers, or one of its topic."""
        word = self.draw.choice(entry.words)
        kin = self._kin(word, {w for e in others for w in e.words})
        if kin and fillers > 2 and self.draw.random() < 0.5:
            word = self.draw.choice(kin)
        said = [self.draw.choice(FILLERS) for _ in range(self.draw.randrange(fillers + 1))]
        said.insert(self.draw.randrange(len(said) + 1), word)
        return " ".join(said)

    def _kin(self, word: str, taken: set[str]) -> list[str]:
        topic = next((ws for ws in TOPICS.values() if word in ws), ())
        return [w for w in topic if w not in taken] if topic else []

    def described(self, entry: Entry) -> str:
        """The words of an entry as a phrase."""
        said = list(entry.words)
        for _ in range(self.draw.randrange(4)):
            said.insert(self.draw.randrange(len(said)), self.draw.choice(FILLERS))
        return " ".join(said)

    # Documents

    def repetition(self) -> list[Piece]:
        """Words and names, stretches of which come again at varied distances."""
        said: list[str] = []
        loss: list[float] = []
        while len(said) < 44:
            if len(said) > 6 and self.draw.random() < 0.5:
                length = self.draw.randrange(3, 9)
                start = self.draw.randrange(max(1, len(said) - length))
                again = said[start : start + length]
                said += again
                loss += [0.0] + [1.0] * (len(again) - 1)
            else:
                fresh = [self.draw.choice(self.words) for _ in range(self.draw.randrange(2, 6))]
                said += fresh
                loss += [0.0] * len(fresh)
        return [(f" {w}", n) for w, n in zip(said, loss, strict=True)]

    def topics(self) -> list[Piece]:
        """Lines of words of one topic: which words are said together."""
        found: list[Piece] = []
        for topic in self.draw.sample(sorted(TOPICS), 4):
            pool = TOPICS[topic]
            said = self.draw.sample(pool, min(len(pool), 6))
            found += [(f" {said[0]}", 0.0), *((f" {w}", 0.5) for w in said[1:]), ("\n", 0.2)]
        return found

    def listing(self, level: int) -> list[Piece]:
        """A listing, then requests and the names that answer them."""
        count, words, fillers = LEVELS[level]
        arrow = self.draw.choice(_ARROWS if level > 1 else _ARROWS[:1])
        entries = self.entries(count, words)
        lines = "".join(f'\n- {" ".join(e.words)}{arrow}{e.name}"' for e in entries)
        found: list[Piece] = [(lines, 0.0)]
        for _ in range(3 if level > 4 else 4):
            entry = self.draw.choice(entries)
            found.append((f"\n {self.request(entry, fillers, entries)}{arrow}", 0.0))
            found += [(entry.name, NAME), ('"', 1.0)]
        return found

    def chat(self, level: int) -> list[Piece]:
        """A chat: the assistant loads a page of a listing, calls the tool it names, and replies."""
        count, words, fillers = LEVELS[level]
        skills = self.entries(count, words, self.draw.choice("-_"))
        tools = self.entries(self.draw.randrange(2, 6), self.draw.randrange(1, 4), "_")
        loader = self.name().replace("-", "_")
        parameter, given = self.draw.choice(_SKILL_NAMES), self._parameter()
        skill, tool = self.draw.choice(skills), self.draw.choice(tools)
        slot, pattern = self._pattern()
        value = self._value()
        number = str(self.draw.randrange(1, 10))
        calls = self.draw.random() < 0.8
        lines = [f'\n- {self.described(e)} -> "{e.name}"' for e in skills]
        offered = [f'\n- {" ".join(e.words)} -> "{e.name}" {given}' for e in tools]
        loading = f'\n- {self.draw.choice(_LOADERS)} -> "{loader}" {parameter}'
        offered.insert(self.draw.randrange(len(offered) + 1), loading)
        blocks = [self.draw.choice(_OPENINGS), "".join(lines).lstrip("\n")]
        if self.draw.random() < 0.3:
            blocks.reverse()
        last = self.draw.choice(self.words) if self.draw.random() < 0.15 else ""
        if last:
            blocks.append(f"- End the reply with the word {last}.")
        system = "\n\n".join(blocks) + "\nTools:" + "".join(offered)
        asked = self._asked(self.request(skill, fillers, skills), number if calls else "")
        said = pattern.replace("{" + slot + "}", value) if calls else self._plain()
        rules = [
            f"Call `{tool.name}` for the link." if calls else "Call no tool.",
            f"Say: {pattern if calls else said}",
        ]
        if self.draw.random() < 0.3:
            rules.reverse()
        heading, bullet = self.draw.choice(_HEADINGS), self.draw.choice("--*")
        listed = "\n".join(f"{bullet} {rule}" for rule in rules)
        body = f"# Skill: {skill.name}\n\n## {heading}\n\n{listed}\n"
        found = [
            *shown("system", system),
            *shown("user", asked),
            *called(loader, parameter, skill.name, aloud=self._thought(asked, skill)),
            *shown("tool", body),
        ]
        if calls:
            result = f'{{"{slot}": {value if value.isdigit() else chr(34) + value + chr(34)}}}'
            found += [*called(tool.name, given, number), *shown("tool", result)]
        return [*found, *said_turn(f"{said} {last}" if last else said)]

    def routing(self, level: int) -> list[Piece]:
        """A chat of many requests, each answered by loading the page that fits it."""
        count, words, fillers = LEVELS[level]
        skills = self.entries(self.draw.randrange(max(2, count - 2), count + 1), words)
        tools = self.entries(self.draw.randrange(1, 6), self.draw.randrange(1, 4), "_")
        loader, parameter = self.name().replace("-", "_"), self.draw.choice(_SKILL_NAMES)
        lines = "".join(f'\n- {self.described(e)} -> "{e.name}"' for e in skills)
        given = self._parameter()
        offered = [f'\n- {" ".join(e.words)} -> "{e.name}" {given}' for e in tools]
        loading = f'\n- {self.draw.choice(_LOADERS)} -> "{loader}" {parameter}'
        offered.insert(self.draw.randrange(len(offered) + 1), loading)
        opening = self.draw.choice(_OPENINGS)
        system = f"{opening}\n{lines}\nTools:" + "".join(offered)
        found = shown("system", system)
        for _ in range(5):
            skill = self.draw.choice(skills)
            number = str(self.draw.randrange(1, 10)) if self.draw.random() < 0.8 else ""
            asked = self._asked(self.request(skill, fillers, skills), number)
            found += shown("user", asked)
            found += called(loader, parameter, skill.name, aloud=self._thought(asked, skill))
            found += shown("tool", f"# Skill: {skill.name}")
        return found

    def instruction(self) -> list[Piece]:
        """A short instruction that can be checked, and an answer that follows it."""
        asked, answer = instruction_of(self.draw, self.words)
        return [*shown("user", asked), *said_turn(answer)]

    def _thought(self, asked: str, entry: Entry) -> list[Piece]:
        if not self.late:
            return []
        return [(asked, 0.5), (' -> "', 1.0), (entry.name, NAME), ('"', 1.0)]

    def _parameter(self) -> str:
        return self.draw.choice(_LINK_NAMES)

    def _asked(self, words: str, number: str) -> str:
        if not number:
            return words
        link = f"link {number}"
        return f"{words} {link}" if self.draw.random() < 0.6 else f"{link} {words}"

    def _pattern(self) -> tuple[str, str]:
        slot = self.draw.choice(self.words).lower()
        said = [self.draw.choice(self.words) for _ in range(self.draw.randrange(1, 4))]
        said.insert(self.draw.randrange(len(said) + 1), "{" + slot + "}")
        return slot, "It " + " ".join(said) + "."

    def _plain(self) -> str:
        return (
            " ".join(self.draw.choice(self.words) for _ in range(self.draw.randrange(2, 5))) + "!"
        )

    def _value(self) -> str:
        if self.draw.random() < 0.5:
            return str(self.draw.randrange(2, 1000))
        said = [self.draw.choice(self.words) for _ in range(self.draw.randrange(1, 5))]
        said.insert(self.draw.randrange(len(said) + 1), str(self.draw.randrange(1, 99)))
        return " ".join(said)


def instruction_of(draw: Random, words: Sequence[str]) -> tuple[str, str]:
    """One instruction of eight kinds and its answer."""
    a, b, c = draw.sample(list(words), 3)
    n = draw.choice(("two", "three"))
    times = {"two": 2, "three": 3}[n]
    line = " ".join(draw.sample(list(words), draw.randrange(3, 6)))
    kinds = (
        (f"Repeat the word {a} twice", f"{a} {a}"),
        (f"Repeat: {line}", line),
        (f"Write {a} before {b}", f"{a} {b}"),
        (f"Write {a} after {b}", f"{b} {a}"),
        (f"first word of: {line}", line.split()[0]),
        (f"last word of: {line}", line.split()[-1]),
        (f"Say {a} and end with {c}", f"{a} {c}"),
        (f"Write {a} {n} times", " ".join([a] * times)),
    )
    return draw.choice(kinds)
