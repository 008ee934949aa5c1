"""What a study file names must be there before anything is copied, trained or shown.

A row of an arm that there is not would say "not run" for ever; a seed 0 would be taken for the
base's; a name with slashes would lead out of the folder of studies.
"""

from collections.abc import Iterable, Iterator

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.records.study import Study
from harness_cli.store.checkpoints import checked_name

BASE_ARM = "base"
"""The name of what every arm begins from."""


def check_study(study: Study) -> None:
    """Raise `UsageError` for a study whose parts do not fit together."""
    if study.schema != 1:
        raise BadFile(f"study schema {study.schema} is not known", hint="this is 1")
    checked_name(study.name)
    _refuse_twice("seed", map(str, study.seeds))
    _refuse_twice("arm", [BASE_ARM, *(arm.name for arm in study.arms)])
    _refuse_twice("column", (m.column for m in study.sets))
    if not study.seeds or min(study.seeds) < 1:
        raise UsageError("`seeds` of a study are numbers from 1 on", hint="0 is the base's")
    _check_arms(study)
    _check_tables(study)


def check_chosen(study: Study, seed: int | None, arms: Iterable[str]) -> None:
    """Raise `UnknownName` for a seed or an arm that the study does not name."""
    if seed is not None and seed not in study.seeds:
        raise UnknownName.of("seed", str(seed), map(str, study.seeds))
    for name in arms:
        _known("arm", name, [arm.name for arm in study.arms])


def _check_arms(study: Study) -> None:
    before = [BASE_ARM]
    for arm in study.arms:
        checked_name(arm.name)
        _known("stage", arm.stage, study.stages)
        for name in (arm.start, arm.teacher or BASE_ARM):
            _known(f"arm before `{arm.name}`", name, before)
        before.append(arm.name)


def _check_tables(study: Study) -> None:
    arms = [BASE_ARM, *(arm.name for arm in study.arms)]
    for table in study.tables:
        for column in table.columns:
            _known("column", column, [m.column for m in study.sets])
    for name in _shown(study):
        _known("arm", name, arms)


def _shown(study: Study) -> Iterator[str]:
    for table in study.tables:
        for row in table.rows:
            yield row.arm
            if row.against is not None:
                yield row.against
        for contrast in table.contrasts:
            yield from (contrast.plus, contrast.minus)


def _known(what: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        raise UnknownName.of(what, name, names)


def _refuse_twice(what: str, given: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in given:
        if name in seen:
            raise UsageError(f"the {what} `{name}` stands twice in the study")
        seen.add(name)
