"""Annotation at a terminal, one pair at a time; the terminal comes as two functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness_cli.evaluation.blind.annotations import AnnotationLog
from harness_cli.records.blind import TAGS, BlindPair, BlindReply

HELP = """\
a - A is better (a reason is asked for)
b - B is better (a reason is asked for)
t - a tie
s - skip: it comes again next time
u - back to the pair before
q - quit; everything decided is kept
? - this help"""
QUESTION = "Which is better [a,b,t,s,u,q,?]? "
SILENT = "(says nothing)"


@dataclass(slots=True)
class Terminal:
    """How to speak with the annotator."""

    say: Callable[[str], None]
    ask: Callable[[str], str]
    """A line of input; raises EOFError at the end of input."""


def annotate(log: AnnotationLog, terminal: Terminal, only: Sequence[str] = ()) -> int:
    """Ask about every open pair (or the pairs in `only`, decided or not); how many were decided.

    Every decision is on the disk before the next pair is shown.
    """
    session = _Session(log, terminal, list(only) or log.open_pairs())
    try:
        while session.at < len(session.queue) and session.one():
            pass
    except EOFError:
        terminal.say("")
    return len(session.made)


@dataclass(slots=True)
class _Session:
    log: AnnotationLog
    terminal: Terminal
    queue: list[str]
    at: int = 0
    made: set[str] = field(default_factory=set)

    def one(self) -> bool:
        """Show the pair at hand and take one answer; False ends the session."""
        name = self.queue[self.at]
        pair = next(p for p in self.log.sheet.pairs if p.id == name)
        for line in lines_of(pair, self.at + 1, len(self.queue)):
            self.terminal.say(line)
        while True:
            key = self.terminal.ask(QUESTION).strip().lower()[:1]
            if key == "q":
                return False
            if self._act(key, name):
                return True

    def _act(self, key: str, name: str) -> bool:
        """Do what a key says; True when another pair is next."""
        if key in ("a", "b"):
            return self._prefer(name, key.upper())
        if key == "t":
            self._keep(name, "tie", "", "")
        elif key == "s":
            self.at += 1
        elif key == "u":
            if self.at == 0:
                self.terminal.say("this is the first one")
                return False
            self.at -= 1
        else:
            self.terminal.say(HELP)
            return False
        return True

    def _prefer(self, name: str, choice: str) -> bool:
        reason = self.terminal.ask(f"Why is {choice} better? ").strip()
        if not reason:
            self.terminal.say("a preference needs a reason; t is a tie")
            return False
        self._keep(name, choice, reason, self._tag())
        return True

    def _tag(self) -> str:
        names = list(TAGS)
        for number, tag in enumerate(names, 1):
            self.terminal.say(f"  {number} - {TAGS[tag]}")
        while True:
            answer = self.terminal.ask("What kind of reason [1-6, enter for none]? ").strip()
            if not answer:
                return ""
            if answer.isdecimal() and 1 <= int(answer) <= len(names):
                return names[int(answer) - 1]
            if answer in TAGS:
                return answer

    def _keep(self, name: str, choice: str, reason: str, tag: str) -> None:
        self.log.add(name, choice, reason=reason, tag=tag, via="terminal")
        self.made.add(name)
        self.at += 1


def lines_of(pair: BlindPair, number: int, of: int) -> list[str]:
    """One pair as it is shown: the request, then A, then B."""
    lines = ["", f"── {number} of {of} ── {pair.id} ── {pair.stratum}"]
    for title, texts in (
        ("products", pair.products),
        ("earlier", pair.history),
        ("host said", pair.anchor),
    ):
        if texts:
            lines += [f"{title}:", *(f"  {text}" for text in texts)]
    lines += [f"> {comment}" for comment in pair.comments]
    return [*lines, *_reply("A", pair.a), *_reply("B", pair.b)]


def _reply(side: str, reply: BlindReply) -> list[str]:
    lines = ["", f"{side}:", *(f"  {line}" for line in (reply.text or SILENT).splitlines())]
    return [*lines, *(f"  · {step}" for step in reply.trace)]
