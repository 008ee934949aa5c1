"""What a study's folder was made from, so that scores of another study are never shown as its own.

`study.json` beside the scores: digests by part. Arms, columns, seeds and tables may be added and
left out from one call to the next; a part that says something else than when it was first there is
refused, as what is done is not done again.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.canonical import digest, file_sha256, write_json
from harness_cli.records.reader import read_json
from harness_cli.records.study import Arm, Study, StudyData

FILE: Final = "study.json"
CONTENT: Final = ("harness.yaml", "harness_repo", "evalsets", "recipes")
"""Of the project: what decides anything."""


def parts(study: Study, project: Path) -> dict[str, str]:
    """Digest of every part that scores depend on, by its name in the study file."""
    shared = {
        "template": study.template,
        "lessons": (study.training_set, study.recipe, study.state_seed),
        "variant_states": (study.variant_states, study.state_seed),
        "split": study.split,
        "limit": study.limit,
        "base": study.base,
        "threads": study.threads,
        **{f"data {name}": _data(data) for name, data in study.data.items()},
        **{f"variants {name}": recipe for name, recipe in study.variants.items()},
        **{f"arm {arm.name}": _arm(study, arm) for arm in study.arms},
        **{f"column {one.column}": one for one in study.sets},
    }
    found = {name: digest(msgspec.to_builtins(value)) for name, value in shared.items()}
    return found | {"project": _content(project)}


def _data(data: StudyData) -> dict[str, Any]:
    """What a file of lessons is made of. `together` came later: without it a file is what it was,
    and a study that was begun before goes on."""
    kept: dict[str, Any] = msgspec.to_builtins(data)
    if data.together == 1:
        del kept["together"]
    return kept


def bind(folder: Path, study: Study, project: Path) -> None:
    """Write down what a folder is made from. Raise `UsageError` where it was made from else."""
    told = parts(study, project)
    file = folder / FILE
    before = read_json(file, dict[str, str]) if file.is_file() else {}
    other = sorted(name for name in told.keys() & before.keys() if told[name] != before[name])
    if other:
        raise UsageError(
            f"study `{study.name}` was begun with another {', '.join(f'`{n}`' for n in other)}",
            hint=f"give the changed study a name of its own, or remove {folder}",
        )
    if told.keys() - before.keys():
        write_json(file, before | told)


def _arm(study: Study, arm: Arm) -> Any:
    return (msgspec.structs.replace(arm, on_request=False), study.stages.get(arm.stage))


def _content(project: Path) -> str:
    files = (
        path
        for name in CONTENT
        for path in ((project / name).rglob("*") if (project / name).is_dir() else [project / name])
        if path.is_file()
    )
    return digest({str(p.relative_to(project)): file_sha256(p) for p in sorted(files)})
