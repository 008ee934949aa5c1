"""From a run on disk to its diagnosis and to the ground a proposer stands on."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.evaluation.evalsets import Evalset, load_evalset, load_header
from harness_cli.evolution.advice import Stage
from harness_cli.evolution.classes import load_classes
from harness_cli.evolution.clusters import Kind
from harness_cli.evolution.diagnose import Material, Subject, diagnose, gather
from harness_cli.evolution.failure import Evidence
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.harness.load import load_state
from harness_cli.records.canonical import write_json
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Diagnosis
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.reader import read_json
from harness_cli.records.run import RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.store.project import Project
from harness_cli.store.runs import Key, RunFolder, RunStore

FILE = "diagnosis.json"
GATES = ("harness", "promote")
"""How the runs begin that a promotion made."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A run with everything diagnosis needs of it."""

    run: RunFolder
    config: RunConfig
    state: HarnessState
    material: Material
    names: frozenset[str]
    """Words of product names of the evalset's catalogue."""
    fields: dict[str, str]
    """Its attributes, with their Chinese names."""
    notes: tuple[str, ...]
    """What was missing: said beside the result."""


def choose_run(project: Project, name: str | None) -> RunFolder:
    """The named run, or the newest complete one that somebody evaluated to learn from.

    Runs that `promote` made for its gates are none: who edits by what a gate found has no gate.
    """
    store = RunStore(project.runs)
    if name is not None:
        return store.get(name)
    try:
        return store.newest(
            fits=lambda c: (
                c.imported is None and c.command[:2] != GATES and not is_sealed(project, c)
            )
        )
    except UnknownName as exc:
        if not (others := store.list()):
            raise
        raise UnknownName(
            f"{exc} to learn from; the runs here are imported, sealed, a gate's or unfinished",
            hint=f"name an imported one (the newest run is `{others[0].id}`), or evaluate dev",
        ) from None


def is_sealed(project: Project, config: RunConfig) -> bool:
    """The run's items are of a sealed split."""
    try:
        header = load_header(project, config.evalset.name)
    except UsageError:  # an evalset that is gone: the run alone says nothing about a seal
        return False
    return config.evalset.split in header.seal.splits


def examine(project: Project, run: RunFolder) -> Examined:
    """Read a run and observe its failures. A sealed split is refused (METHODS §8)."""
    config = run.config()
    if is_sealed(project, config):
        raise UsageError(
            f"run `{run.id}` is of the sealed split `{config.evalset.split}`",
            hint="diagnosis and editing use the dev split only; evaluate that one",
        )
    if config.imported is not None:
        raise UsageError(
            f"run `{run.id}` was imported from `{config.imported.file}`: no harness "
            "of this project made it, so there is nothing to edit",
            hint="evaluate the harness here; `harness diagnose` reads imported runs as they are",
        )
    state = load_state(project, config.harness_ref or config.harness_commit or config.harness_id)
    evalset, notes = _items(project, config)
    items = {item.id: item for item in evalset.items} if evalset else {}
    skills = tuple(skill.name for skill in state.skills)
    material = gather(evidence_of(run, items, skills))
    if not material.seen:
        raise BadFile(f"run `{run.id}` has no finished item", hint="`harness eval` makes one")
    if (status := run.status()) != "complete":
        finished = counted(len(material.seen), "finished item")
        notes = (f"run `{run.id}` is {status}: {finished} of it looked at", *notes)
    world = evalset.world if evalset else Catalogue(snapshot="")
    fields = fields_of(world)
    return Examined(run, config, state, material, product_words(world), fields, notes)


def product_words(world: Catalogue) -> frozenset[str]:
    """English words and whole Chinese names of what is sold."""
    english = (word for p in world.products for word in p.name.casefold().split())
    return frozenset(english) | {p.zh_name for p in world.products if p.zh_name}


def fields_of(world: Catalogue) -> dict[str, str]:
    """Attribute → its Chinese name, those of most products first."""
    counts = Counter(a.name for p in world.products for a in p.attributes)
    chinese = {a.name: a.zh_name for p in world.products for a in p.attributes}
    return {name: chinese[name] for name in sorted(counts, key=lambda n: (-counts[n], n))}


def _items(project: Project, config: RunConfig) -> tuple[Evalset | None, tuple[str, ...]]:
    name = config.evalset.name
    try:
        evalset = load_evalset(project, name, split=config.evalset.split)
    except UsageError as exc:
        return None, (f"without the items of `{name}` ({exc}): expectations are not looked at",)
    if evalset.digest != config.evalset.digest:
        return None, (f"`{name}` changed since this run: expectations are not looked at",)
    return evalset, ()


def evidence_of(
    run: RunFolder, items: Mapping[str, Item], skills: tuple[str, ...]
) -> Iterator[Evidence]:
    """Every item of a run, streamed: passes by their results, failures with their trajectories."""
    failed: dict[Key, ItemResult] = {}
    for result in run.results():
        if result.state != "passed":
            failed[Key(result.item_id, result.repeat)] = result
        else:
            yield Evidence(result=result, item=items.get(result.item_id), skill_names=skills)
    met: set[Key] = set()
    for trajectory in run.trajectories(failed.__contains__):
        key = Key(trajectory.item_id or "", trajectory.repeat)
        if key in failed:
            met.add(key)
            yield Evidence(
                result=failed[key],
                trajectory=trajectory,
                item=items.get(key.item),
                skill_names=skills,
            )
    for key in failed.keys() - met:
        yield Evidence(result=failed[key], item=items.get(key.item), skill_names=skills)


def diagnose_run(
    project: Project,
    seen: Examined,
    *,
    stages: tuple[Stage, ...] = (),
    vectors: Kind = "tfidf",
) -> Diagnosis:
    """The diagnosis of a run, written into its folder."""
    made = diagnose(
        seen.material,
        Subject(
            run=seen.run.id, harness_id=seen.config.harness_id, evalset=seen.config.evalset.name
        ),
        classes=load_classes(project.harness),
        module_exists=module_in(seen),
        previous=previous_diagnosis(project, seen),
        stages=stages,
        vectors=vectors,
    )
    write_json(seen.run.path / FILE, made)
    return made


def module_in(seen: Examined) -> Callable[[str], bool]:
    """Whether the run's harness has a file, or a folder named with a slash at its end."""
    files = seen.state.files
    return lambda m: m in files or (m.endswith("/") and any(f.startswith(m) for f in files))


def read_diagnosis(run: RunFolder) -> Diagnosis | None:
    """The diagnosis in a run's folder."""
    path = run.path / FILE
    return read_json(path, Diagnosis, name=f"{run.id}/{FILE}") if path.is_file() else None


def diagnosis_of(project: Project, seen: Examined) -> Diagnosis:
    """The run's diagnosis, made where there is none, or one of before the run went on."""
    made = read_diagnosis(seen.run)
    now = len(seen.material.failures), len(seen.material.seen)
    if made is None or (made.failures, made.of) != now:
        return diagnose_run(project, seen)
    return made


def previous_diagnosis(project: Project, seen: Examined) -> Diagnosis | None:
    """The newest earlier diagnosis on the same evalset: cluster ids live on from it."""
    for run in RunStore(project.runs).list():
        if run.id < seen.run.id and (run.path / FILE).is_file():
            made = read_diagnosis(run)
            if made is not None and made.evalset == seen.config.evalset.name:
                return made
    return None


def ground_of(seen: Examined, diagnosis: Diagnosis) -> Ground:
    """What a proposer starts from."""
    return Ground(
        diagnosis=diagnosis,
        failures=seen.material.failures,
        seen=seen.material.seen,
        state=seen.state,
        files=seen.state.files,
        names=seen.names,
        fields=seen.fields,
        pipeline=seen.config.pipeline,
    )


def proposal_path(project: Project, name: str) -> Path:
    """Where a proposal waits for a person when no file was named."""
    return project.root / f"{name}.yaml"
