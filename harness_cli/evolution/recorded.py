"""Diagnosis of dialogues that another tool recorded: an imported run, or its file as it stands.

No harness of the project made them, so no module of it is suspected, no edit can be proposed, and
the classes are those of any dialogue; facts and clusters are made as for our own runs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.imports.imported import Imported, ImportOptions
from harness_cli.evaluation.imports.keep_run import as_recorded, result_of
from harness_cli.evaluation.imports.kinds import guessed, reader
from harness_cli.evaluation.imports.source import opened
from harness_cli.evaluation.redaction import Cleaner
from harness_cli.evolution.clusters import Kind
from harness_cli.evolution.diagnose import Material, Subject, diagnose, gather
from harness_cli.evolution.dialogue_classes import DIALOGUE_CLASSES
from harness_cli.evolution.failure import Evidence
from harness_cli.evolution.session import FILE, evidence_of
from harness_cli.records.canonical import write_json
from harness_cli.records.diagnosis import Diagnosis
from harness_cli.records.run import RunConfig
from harness_cli.store.project import Project
from harness_cli.store.redact import Redactor
from harness_cli.store.runs import RunFolder

ADVICE = {
    "action": "read",
    "reasons": [
        "another tool's harness made these rollouts: nothing of this project can be edited"
    ],
}


def diagnose_imported(
    project: Project, run: RunFolder, *, vectors: Kind = "tfidf"
) -> tuple[Diagnosis, tuple[str, ...]]:
    """The diagnosis of an imported run, written into its folder, and what to say beside it."""
    config = run.config()
    items, notes = {}, _notes(config)
    try:
        evalset = load_evalset(project, config.evalset.name, split=config.evalset.split)
        if evalset.digest == config.evalset.digest:
            items = {item.id: item for item in evalset.items}
        else:
            notes += (f"`{config.evalset.name}` changed: expectations are not looked at",)
    except UsageError as exc:
        notes += (f"without the items ({exc}): expectations are not looked at",)
    evidence = evidence_of(run, items, ())
    judged = config.imported is not None and config.imported.rescored
    made = _diagnosed(run.id, config.evalset.name, evidence, vectors, judged=judged)
    write_json(run.path / FILE, made)
    return made, notes


def diagnose_file(path: Path, *, vectors: Kind = "tfidf") -> tuple[Diagnosis, tuple[str, ...]]:
    """The diagnosis of a result file; nothing is written. Raises `BadFile`, `UsageError`."""
    with opened(path) as source:
        kind = guessed(source)
        imported = reader(kind)(source, ImportOptions())
        made = _diagnosed(source.name, imported.header.name, _evidence(imported), vectors)
    told = f"{kind}, policy {imported.policy_id}, user simulator {imported.simulator or 'none'}"
    return made, (told, *imported.notes)


def _evidence(imported: Imported) -> Iterator[Evidence]:
    cleaner = Cleaner(Redactor.from_environment().once)
    items = {item.id: item for item in imported.items}
    for raw in imported.recorded():
        one = replace(raw, trajectory=cleaner.record(raw.trajectory))
        item = items[one.item_id]
        result = cleaner.record(result_of(item, one, as_recorded(one, imported.judge_id)))
        yield Evidence(result=result, trajectory=one.trajectory, item=item)


def _diagnosed(
    run: str, evalset: str, evidence: Iterable[Evidence], vectors: Kind, *, judged: bool = False
) -> Diagnosis:
    material = gather(evidence)
    if not material.seen:
        raise BadFile(f"`{run}` has no finished item")
    notes: tuple[str, ...] = ()
    if not judged:
        material, notes = _by_facts(material)
    made = diagnose(
        material,
        Subject(run=run, harness_id="", evalset=evalset),
        classes=DIALOGUE_CLASSES,
        module_exists=lambda _: False,
        vectors=vectors,
    )
    return msgspec.structs.replace(made, advice=ADVICE, notes=notes)


def _by_facts(material: Material) -> tuple[Material, tuple[str, ...]]:
    """Of what a file grades not at all, only that counts as failed in which something went wrong.

    Nobody judged it: that there is no verdict is no fault of a judge, and no failure.
    """
    found, quiet = [], 0
    for failure in material.failures:
        facts = tuple(o for o in failure.observations if o.kind != "unscored")
        if failure.seen.state != "unscored":
            found.append(failure)
        elif facts:
            found.append(msgspec.structs.replace(failure, observations=facts))
        else:
            quiet += 1
    told = f"without a score, and nothing wrong was seen: {quiet} of {len(material.seen)}"
    return Material(tuple(found), material.seen), (told,) if quiet else ()


def _notes(config: RunConfig) -> tuple[str, ...]:
    imported = config.imported
    if imported is None:
        raise UsageError(f"run `{config.id}` was not imported")
    simulator = imported.user_simulator or "none"
    return (f"imported from `{imported.file}`, user simulator {simulator}", *imported.notes)
