"""What changed between two texts, by the units a person speaks of: sections, rules, lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

_HEADING = re.compile(r"^#{1,6}\s+(.*\S)\s*$")
_BULLET = re.compile(r"^(?:[-*+]|\d+[.)])\s+")
_ALIKE = 0.45
"""Two units at one place that share so much are one unit, reworded."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """One unit that came, went, moved or was reworded."""

    section: str
    """Heading above it; empty before the first."""
    unit: str
    """`rule` (a bullet), `text` (a paragraph) or `section`."""
    action: str
    """added, removed, changed or moved."""
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class _Unit:
    kind: str
    text: str


def diff_text(before: str, after: str) -> list[TextChange]:
    """Changes from one Markdown text to another, in the order of the newer one."""
    old, new = _sections(before), _sections(after)
    changes: list[TextChange] = []
    for title in [t for t in old if t not in new]:
        changes.append(TextChange(title, "section", "removed", before=_joined(old[title])))
    for title, units in new.items():
        if title in old:
            changes += _diff_units(title, old[title], units)
        else:
            changes.append(TextChange(title, "section", "added", after=_joined(units)))
    shared = [t for t in new if t in old]
    if shared != [t for t in old if t in new]:
        changes.append(
            TextChange("", "section", "moved", before=_names(old, new), after=", ".join(shared))
        )
    return changes


def _names(old: dict[str, list[_Unit]], new: dict[str, list[_Unit]]) -> str:
    return ", ".join(t for t in old if t in new)


def _joined(units: list[_Unit]) -> str:
    return "\n".join(unit.text for unit in units)


def _sections(text: str) -> dict[str, list[_Unit]]:
    """Heading → its units; a heading that stands twice gets a number."""
    found: dict[str, list[_Unit]] = {"": []}
    title = ""
    fenced = False
    for line in text.split("\n"):
        heading = None if fenced else _HEADING.match(line)
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if heading:
            title, number = heading[1], 2
            while title in found:
                title, number = f"{heading[1]} ({number})", number + 1
            found[title] = []
        else:
            _add_line(found[title], line)
    return {t: [u for u in units if u.text] for t, units in found.items() if t or any(units)}


def _add_line(units: list[_Unit], line: str) -> None:
    """A bullet begins a rule, a blank line a paragraph; an indented line belongs to its rule."""
    bullet = _BULLET.match(line)
    if bullet:
        units.append(_Unit("rule", line[bullet.end() :].strip()))
    elif not line.strip():
        units.append(_Unit("text", ""))
    elif units and (units[-1].text or line[:1].isspace()):
        last = next((i for i in range(len(units) - 1, -1, -1) if units[i].text), None)
        indented = line[:1].isspace()
        if last is not None and (indented or last == len(units) - 1):
            kept = units[last]
            units[last] = _Unit(kept.kind, f"{kept.text}\n{line.strip()}")
            del units[last + 1 :]
        else:
            units.append(_Unit("text", line.strip()))
    else:
        units.append(_Unit("text", line.strip()))


def _diff_units(title: str, old: list[_Unit], new: list[_Unit]) -> Iterator[TextChange]:
    gone: list[_Unit] = []
    come: list[_Unit] = []
    found: list[TextChange] = []
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            continue
        rest_old, rest_new = list(old[a0:a1]), list(new[b0:b1])
        for unit in new[b0:b1]:
            twin = _nearest(unit, rest_old)
            if twin is not None:
                rest_old.remove(twin)
                rest_new.remove(unit)
                found.append(TextChange(title, unit.kind, "changed", twin.text, unit.text))
        gone += rest_old
        come += rest_new
    for unit in list(come):
        if unit not in gone:  # gone from elsewhere once may come twice
            continue
        gone.remove(unit)
        come.remove(unit)
        found.append(TextChange(title, unit.kind, "moved", unit.text, unit.text))
    yield from found
    for unit in gone:
        yield TextChange(title, unit.kind, "removed", before=unit.text)
    for unit in come:
        yield TextChange(title, unit.kind, "added", after=unit.text)


def _nearest(unit: _Unit, others: list[_Unit]) -> _Unit | None:
    """The unit that was reworded into this one, if any is alike enough."""
    best, likeness = None, _ALIKE
    for other in others:
        ratio = SequenceMatcher(a=other.text, b=unit.text, autojunk=False).ratio()
        if ratio >= likeness and other != unit:
            best, likeness = other, ratio
    return best
