"""Is an augmented state still the same task? Held against the base, not against its own recipe.

The state loads and `harness check` has nothing to say; nothing speaks of an old name; skills,
tools, hooks and prompts say what the base's say (`validate_skills`, `validate_rest`). What gold
solutions make of it is seen in `golds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harness_cli.augmentation.draft import CLASSES, JUDGES, Draft
from harness_cli.augmentation.renames import LOCK, SILENT
from harness_cli.augmentation.renaming import Renaming
from harness_cli.augmentation.speech import Speech
from harness_cli.augmentation.validate_rest import hook_faults, prompt_faults, tool_faults
from harness_cli.augmentation.validate_skills import Originals, skill_faults
from harness_cli.errors import BadFile
from harness_cli.harness.check_classes import check_classes
from harness_cli.harness.load import loaded
from harness_cli.harness.memo import Memo
from harness_cli.records.harness import HarnessState
from harness_cli.store.tree import Entry

_KNOWN: Memo[frozenset[str]] = Memo(8)
_STATES: Memo[HarnessState] = Memo(8)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a state is discarded."""

    kind: str
    """`check`, `names`, `skills`, `tools`, `hooks`, `prompts`, `map`, `gold`."""
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def examined(
    base: Draft, made: Draft, originals: Originals | None = None
) -> tuple[HarnessState | None, list[Fault]]:
    """The state that a draft makes up, and everything that is wrong with it.

    `originals`: canonical form of a model's paraphrase → that of the text it stands for.
    """
    state, faults = _loads(base, made)
    faults += [Fault("names", what) for what in old_names(made)]
    if state is None:
        return None, faults
    try:
        Renaming(made.map)
    except BadFile as exc:
        faults.append(Fault("map", str(exc)))
    faults += [Fault("skills", w) for w in skill_faults(base, made, originals or {})]
    before = base_state(base.files)
    faults += [Fault("tools", w) for w in tool_faults(before, state, made.map)]
    faults += [Fault("hooks", w) for w in hook_faults(before, state, made.map)]
    faults += [
        Fault("prompts", w) for w in prompt_faults(base, made, before, state, originals or {})
    ]
    return state, faults


def old_names(made: Draft) -> list[str]:
    """Places that speak of a name which is no more."""
    names = {**made.map.skills, **made.map.tools, **made.map.hooks}
    gone = dict.fromkeys(made.map.masked_skills, "")
    speech = Speech({**{old: new for old, new in names.items() if old != new}, **gone})
    found = []
    for path in sorted(made.files):
        if path.startswith(JUDGES) or path in SILENT or path == LOCK:
            continue
        spoken = speech.spoken(path) + speech.spoken(_told(made.text(path), path))
        if path.startswith(CLASSES):
            spoken = [name for name in spoken if name not in gone]
        found += [f"{path} speaks of `{name}`" for name in spoken]
    return found


def _told(text: str, path: str) -> str:
    """What a file says, less the names that executors go by."""
    if not path.startswith("tools/"):
        return text
    return "\n".join(x for x in text.split("\n") if not x.strip().startswith("harness.operation:"))


def _loads(base: Draft, made: Draft) -> tuple[HarnessState | None, list[Fault]]:
    """The state, and what `harness check` finds that it does not find in the base."""
    try:
        state, findings = loaded(made.files)
    except BadFile as exc:
        return None, [Fault("check", str(exc).split("\n")[0])]
    known = _KNOWN.get((base.files,), None, lambda: _known(base.files))
    found = [*findings, *check_classes(made.files)]
    fresh = [f for f in found if f.rule not in known]
    return state, [Fault("check", f"{f.place} {f.rule}: {f.message}") for f in fresh]


def _known(base: Mapping[str, Entry]) -> frozenset[str]:
    """Rules that the base itself does not keep."""
    _, findings = loaded(base)
    return frozenset(f.rule for f in [*findings, *check_classes(base)])


def base_state(base: Mapping[str, Entry]) -> HarnessState:
    """The base as a state, loaded once."""
    return _STATES.get((base,), None, lambda: loaded(base)[0])
