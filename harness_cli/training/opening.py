"""What a job needs before a weight is loaded: its base, its template, its place. No torch here."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from harness_cli.errors import BadFile, MissingExtra, UsageError
from harness_cli.evaluation.plan import run_versions
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.packaged import find_model
from harness_cli.models.template_source import template_for, template_place
from harness_cli.records.checkpoint import BaseModel
from harness_cli.records.reader import read_json
from harness_cli.records.training_job import TrainingJob
from harness_cli.store.checkpoints import (
    ADAPTER,
    CONFIG,
    checked_name,
    digest_of,
    read_checkpoint,
)
from harness_cli.store.project import Project
from harness_cli.training.masking import Tools
from harness_cli.training.tokens import Tokenizer

NEEDED: Final = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "tensorboardX")


@dataclass(frozen=True, slots=True)
class Base:
    """A checkpoint that a job starts from or is taught by."""

    folder: Path
    named: BaseModel


def require_extra(what: str) -> None:
    """Raise `MissingExtra` where the packages of training are not installed."""
    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtra.of(f"{what} (package {package})", "train")


def open_base(project: Project, reference: str, *, what: str = "base") -> Base:
    """The checkpoint a job names. Raises `UnknownName`, `BadFile` for a registered one whose files
    are not its record's, `UsageError` for an adapter alone, which cannot be trained further."""
    folder = find_model(project.root, reference)
    if (folder / ADAPTER).is_file():
        raise UsageError(
            f"the {what} `{reference}` is an adapter, no whole checkpoint",
            hint="train it with `lora: {save: merged}`",
        )
    record = read_checkpoint(folder)
    name = reference if record is None else record.name
    found = digest_of(folder)
    if record is not None and record.digest != found:
        raise BadFile(
            f"the {what} `{reference}` is not the checkpoint that was registered: its files were "
            "changed",
            hint=f"registered was {record.digest[:16]}, there is {found[:16]}: train it anew with "
            "--again, or copy the folder and name the copy",
        )
    return Base(folder, BaseModel(name=name, digest=found))


def open_tools(project: Project, job: TrainingJob, base: Base) -> tuple[ChatTemplate, Tools]:
    """The template that a job trains under, and where it and the tokenizer lie."""
    template = template_for(project.root, base.folder, job.template)
    where = base.folder if job.template is None else template_place(project.root, job.template)
    if not (base.folder / "tokenizer.json").is_file():
        raise BadFile(f"the base `{job.base}` holds no tokenizer.json")
    return template, Tools(where, base.folder)


def refuse_toolless(job: TrainingJob, template: ChatTemplate) -> None:
    """Raise `UsageError` for a template that knows no tools: a rollout under a harness has some,
    and no prompt of it could be rendered."""
    if template.arguments is None:
        raise UsageError(
            f"`{job.name}` plays rollouts with tools, and the chat template `{template.name}` "
            "knows none",
            hint="`template:` names one that does; for SmolLM2 trl:qwen2_5_training",
        )


def refuse_other_vocabulary(student: Base, teacher: Base) -> None:
    """Raise `UsageError` for a teacher whose tokens are others: a divergence compares token by
    token what both expect next."""
    one, other = (Tokenizer.read(base.folder).vocabulary() for base in (student, teacher))
    sizes = vocabulary_of(student.folder), vocabulary_of(teacher.folder)
    if one == other and sizes[0] == sizes[1]:
        return
    strange = sorted(token for token, number in other.items() if one.get(token) != number)
    said = f"`{strange[0]}` and {len(strange) - 1} more tokens" if strange else f"{sizes} tokens"
    raise UsageError(
        f"the teacher `{teacher.named.name}` has another vocabulary than "
        f"`{student.named.name}`: {said}",
        hint="distil from a checkpoint of the same family: its base, or what was trained from it",
    )


def vocabulary_of(folder: Path) -> int:
    """Tokens of a checkpoint's embedding."""
    config = _config_of(folder)
    size = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    if not isinstance(size, int):
        raise BadFile(f"`{folder}/config.json` names no vocab_size")
    return size


def refuse_beyond_context(base: Base, longest: int) -> None:
    """Raise `UsageError` for rows that are longer than the model has positions for."""
    config = _config_of(base.folder)
    inner = config.get("text_config") or {}
    context = config.get("max_position_embeddings") or inner.get("max_position_embeddings")
    if isinstance(context, int) and longest > context:
        raise UsageError(
            f"the longest row has {longest} tokens, `{base.named.name}` reads {context}",
            hint="shorter prompts (`pipeline: compact`), or a base of a longer context",
        )


def _config_of(folder: Path) -> dict[str, Any]:
    """`config.json` of a checkpoint. Raises `BadFile` for one that is cut short or no object."""
    return read_json(folder / CONFIG, dict[str, Any])


def check_job(job: TrainingJob) -> None:
    """Raise `UsageError` for a job that would write over what it reads."""
    checked_name(job.name)
    if job.name == job.base:
        raise UsageError(f"the job `{job.name}` would replace its own base", hint="another name")


def refuse_other_layers(job: TrainingJob, layers: Iterable[str]) -> None:
    """Raise `UsageError` for a target of `lora` that is no layer: peft leaves one out without a
    word as long as another fits. `layers` are the names of a model's modules."""
    names = list(layers)
    for target in () if job.lora is None else job.lora.targets:
        if not any(name == target or name.endswith(f".{target}") for name in names):
            known = ", ".join(sorted({n.rpartition(".")[2] for n in names if n.endswith("_proj")}))
            raise UsageError(f"the base has no layer `{target}`", hint=f"such as: {known}")


def versions() -> dict[str, str]:
    """Versions of everything that the weights depend on."""
    from importlib.metadata import version

    return {**run_versions(), **{name: version(name) for name in NEEDED}}
