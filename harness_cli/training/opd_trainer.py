"""TRL's distillation trainer, as it is for prompts and with our rollouts for the simulator."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from trl import DistillationConfig, DistillationTrainer

from harness_cli.models.checkpoint_model import CheckpointModel, load_model
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.local_trainer import (
    Student,
    Watch,
    arguments,
    in_bfloat16,
    lora_config,
)

if TYPE_CHECKING:
    from harness_cli.training.opd_job import OpdPlan


@contextmanager
def make_trainer(
    plan: "OpdPlan", folder: JobFolder, student: Student, watch: Watch
) -> Iterator[Any]:
    """The trainer of a plan; what its rollouts opened is given back at the end."""
    yield DistillationTrainer(**common(plan, folder, student, watch))


def common(plan: "OpdPlan", folder: JobFolder, student: Student, watch: Watch) -> dict[str, Any]:
    """What both kinds give the trainer."""
    job = plan.job
    student.tokenizer.padding_side = "left"
    ends = CheckpointModel(student.model, student.tokenizer, student.template).ends
    student.model.generation_config.eos_token_id = sorted(ends)
    config = DistillationConfig(
        **arguments(job, folder, plan.steps),
        beta=1.0,
        temperature=job.temperature,
        top_p=1.0,
        top_k=0,
        max_completion_length=job.new_tokens,
    )
    return {
        "model": student.model,
        "teacher_model": load_model(
            plan.teacher.folder, dtype="bfloat16" if in_bfloat16(job) else "float32"
        ),
        "args": config,
        "train_dataset": Dataset.from_list(
            [{"id": p.id, "prompt": list(p.messages)} for p in plan.prompts]
        ),
        "processing_class": student.tokenizer,
        "peft_config": lora_config(job),
        "callbacks": [watch],
    }
