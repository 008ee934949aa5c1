"""What keeps a proposal from being the dev split learnt by heart, or from growing without end."""

import re
from collections.abc import Iterable, Sequence

from harness_cli.evolution.ops import Files, apply_ops
from harness_cli.evolution.text_file import TextFile
from harness_cli.evolution.unified import lines_of
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Edit

WORDS = 5
"""So many words in a row of one dev comment, or more, are a copy of it."""
HAN = 8
"""The same for characters of a Chinese run."""
EDITS = 8
"""Edits of one proposal: a person must be able to review it, and to tell what helped."""
CHARACTERS = 1_200
"""Characters one edit may add."""

_TOKEN = re.compile(r"[^\W_\u3400-\u9fff]+(?:['’][^\W\d_]+)?|[\u3400-\u9fff]+")
_HAN = re.compile(r"[\u3400-\u9fff]")


class LeakCheck:
    """Finds wording of dev items in text that an edit would add to the harness."""

    def __init__(self, comments: Iterable[str]) -> None:
        self._words: set[tuple[str, ...]] = set()
        self._han: set[str] = set()
        for comment in comments:
            words, runs = _parts(comment)
            self._words |= _windows(words, WORDS)
            for run in runs:
                self._han |= {run[i : i + HAN] for i in range(len(run) - HAN + 1)}

    def copied(self, text: str) -> str | None:
        """The first run of words or characters that stands in a dev comment; None if none does."""
        for line in text.split("\n"):
            words, runs = _parts(line)
            for at in range(len(words) - WORDS + 1):
                window = tuple(words[at : at + WORDS])
                if window in self._words:
                    return " ".join(window)
            for run in runs:
                for at in range(len(run) - HAN + 1):
                    if run[at : at + HAN] in self._han:
                        return run[at : at + HAN]
        return None


def _parts(text: str) -> tuple[list[str], list[str]]:
    tokens = _TOKEN.findall(text.casefold().replace("’", "'"))
    return [t for t in tokens if not _HAN.match(t)], [t for t in tokens if _HAN.match(t)]


def _windows(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def added_text(files: Files, edit: Edit) -> str:
    """The lines an edit would add or change. Raises `BadFile` when an operation does not apply."""
    added = []
    for path, data in apply_ops(files, edit.ops).items():
        if data is None:
            continue
        old = files.get(path)
        before = set(lines_of(TextFile.of(old, name=path).text)) if old is not None else set()
        added += [x for x in lines_of(TextFile.of(data, name=path).text) if x not in before]
    return "".join(added)


def fault_of(files: Files, edit: Edit, leaks: LeakCheck) -> str | None:
    """Why an edit should not be proposed; None when it may be."""
    added = added_text(files, edit)
    copied = leaks.copied(added)
    if copied is not None:
        return f"copies a dev item word for word: `{copied}`"
    if len(added) > CHARACTERS + sum(len(files.get(op.path, b"")) for op in edit.ops[:1]) // 10:
        return f"adds {counted(len(added), 'character')}, too many for one edit"
    return None


def within_budget(edits: Iterable[Edit], *, most: int = EDITS) -> list[Edit]:
    """The edits that promise most, at most `most`, of equal promise the smaller first."""
    ranked = sorted(edits, key=lambda e: (-len(e.predicted_fixes), len(e.ops), e.id))
    return ranked[:most]
