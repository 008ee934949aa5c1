"""Skills of an augmented state against the base's: essential rules, patterns, tools, examples."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from harness_cli.augmentation.draft import Draft
from harness_cli.augmentation.masking import DROPPABLE, FILE, FOLDER, skill_names
from harness_cli.augmentation.rules import essential
from harness_cli.augmentation.skill_content import FIXED, kind_of, known_names
from harness_cli.augmentation.skill_text import entries, fronted, mark_of, parts
from harness_cli.augmentation.speech import Speech, unfolded
from harness_cli.augmentation.wording import canonical
from harness_cli.records.augmentation import AugmentationMap

Form = frozenset[tuple[str, int]]
"""The canonical tokens of a text and how often each stands there."""
Originals = Mapping[Form, Form]


def skill_faults(base: Draft, made: Draft, originals: Originals) -> Iterator[str]:
    """What a skill of the state no longer says, or says anew."""
    back = names_back(made.map)
    names = known_names(base)
    gone = Speech(dict.fromkeys(made.map.masked_skills, ""))
    here = set(skill_names(made))
    for name in skill_names(base):
        now = made.map.skills.get(name, name)
        if name in made.map.masked_skills:
            continue
        if now not in here:
            yield f"`{name}` is missing"
            continue
        before = _wanted(base.text(f"{FOLDER}{name}{FILE}"))
        after = _sections(made.text(f"{FOLDER}{now}{FILE}"))
        for kind in before.keys() - after.keys():
            yield f"`{now}` has no section `{kind}`"
        for kind in before.keys() & after.keys():
            wanted, mine = before[kind]
            if gone.names and kind in DROPPABLE:
                wanted = [said for said in wanted if not gone.spoken(said[0])]
                mine = Counter(form for _, form in wanted)
            forms = Counter(_form(e, back, originals) for e in after[kind])
            yield from _section(now, kind, wanted, mine, forms, names)


def names_back(given: AugmentationMap) -> dict[str, str]:
    """Every new name of a map → the base's, parameters too."""
    pairs = [*given.skills.items(), *given.tools.items(), *given.hooks.items()]
    pairs += [pair for names in given.parameters.values() for pair in names.items()]
    return {new: old for old, new in pairs}


def form_of(text: str, back: Mapping[str, str]) -> Form:
    """The canonical form of one line, in the base's names."""
    form, words = _canonical(text)
    if words.isdisjoint(back):
        return form
    tokens: dict[str, int] = {}
    for token, count in form:
        named = back.get(token, token)
        tokens[named] = tokens.get(named, 0) + count
    return frozenset(tokens.items())


@lru_cache(maxsize=16384)
def _canonical(text: str) -> tuple[Form, frozenset[str]]:
    found = canonical(text)
    return frozenset(found.items()), frozenset(found)


def _form(entry: str, back: Mapping[str, str], originals: Originals) -> Form:
    form = form_of(entry, back)
    return originals.get(form, form)


@lru_cache(maxsize=1024)
def _sections(text: str) -> dict[str, list[str]]:
    """Kind of section → its entries, each as one line without its mark."""
    found: dict[str, list[str]] = {}
    for part in parts(fronted(text)[1], "##"):
        if not part.heading:
            continue
        _, listed, behind = entries(part)
        said = listed or ("\n".join(part.lines).strip("\n").split("\n\n"))
        lines = [unfolded(e[len(mark_of(e)) :]) for e in said]
        rest = unfolded("\n".join(behind))
        found[kind_of(part)] = [*lines, rest] if rest else lines
    return found


@lru_cache(maxsize=512)
def _wanted(text: str) -> dict[str, tuple[list[tuple[str, Form]], Counter[Form]]]:
    """Kind of section of a base's skill → its entries with their forms, and how often each is."""
    found = {}
    for kind, said in _sections(text).items():
        formed = [(entry, form_of(entry, {})) for entry in said]
        found[kind] = formed, Counter(form for _, form in formed)
    return found


def _section(
    skill: str,
    kind: str,
    wanted: list[tuple[str, Form]],
    mine: Counter[Form],
    forms: Counter[Form],
    names: frozenset[str],
) -> Iterator[str]:
    """Entries that must be there and are not, and entries that nothing in the base says."""
    for entry, form in wanted:
        if forms[form] < mine[form]:
            if kind == "rules" and not essential(entry, names):
                continue
            yield f"`{skill}`, {kind}: not there any more: {entry[:60]}"
    if kind not in FIXED and any(count > mine[form] for form, count in forms.items()):
        yield f"`{skill}`, {kind}: something new is said"
