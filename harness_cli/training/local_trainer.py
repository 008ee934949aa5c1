"""One node: what every job needs around TRL's trainers. The door of torch, trl and peft.

A step is measured when it is done, a state is marked when it is whole, a loss that is no number
ends the job before it reaches a weight that is kept, ^C ends it after the step.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from harness_cli.errors import HarnessError, Interrupted
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.checkpoint_model import load_model, load_tokenizer, quiet
from harness_cli.records.training_job import TrainingJob
from harness_cli.store.logs import hush
from harness_cli.training.job_folder import JobFolder, Running, disk_is_full, mark_complete
from harness_cli.training.opening import refuse_other_layers
from harness_cli.training.signals import on_signals

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

Observe = Callable[[Running, dict[str, float]], None]
"""Hears of every step: the job's state and what was measured."""
SKIPPED: Final = ("total_flos", "train_runtime", "train_samples_per_second", "epoch")


class NotFinite(HarnessError):
    """A loss or a gradient that is no number: the weights behind it are worth nothing."""


@dataclass(frozen=True, slots=True)
class Student:
    """A model to be trained, with the tokenizer and template it keeps."""

    model: Any
    tokenizer: Any
    template: ChatTemplate
    stored: torch.dtype
    """Type of the base's weights on disk: those of the checkpoint have it too."""


def open_student(job: TrainingJob, folder: Path, template: ChatTemplate) -> Student:
    """The base of a job, in the type it is trained in, with padding on the right.

    All weights are trained in float32, under autocast where the job says bfloat16; a base under
    adapters is held in bfloat16 then.
    """
    quiet()
    _calm()
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    transformers.set_seed(job.seed)
    stored = _stored(folder)
    held = "bfloat16" if job.lora is not None and in_bfloat16(job) else "float32"
    model = load_model(folder, dtype=held)
    refuse_other_layers(job, (name for name, _ in model.named_modules()))
    tokenizer = load_tokenizer(folder)
    tokenizer.chat_template = template.source
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Student(model, tokenizer, template, stored)


def in_bfloat16(job: TrainingJob) -> bool:
    """Whether the arithmetic of a job is bfloat16: on a GPU unless it says otherwise."""
    return job.dtype == "bfloat16" or (job.dtype == "auto" and torch.cuda.is_available())


def arguments(job: TrainingJob, folder: JobFolder, steps: int) -> dict[str, Any]:
    """The settings that every trainer of TRL takes alike."""
    return {
        "output_dir": str(folder.steps),
        "max_steps": steps,
        "per_device_train_batch_size": job.batch,
        "gradient_accumulation_steps": job.accumulate,
        "learning_rate": job.lr,
        "lr_scheduler_type": job.schedule,
        "warmup_steps": round(job.warmup * steps),
        "weight_decay": job.weight_decay,
        "max_grad_norm": job.clip,
        "bf16": in_bfloat16(job),
        "use_cpu": not torch.cuda.is_available(),
        "seed": job.seed,
        "data_seed": job.seed,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "steps",
        "save_steps": min(job.save_every, steps),
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "gradient_checkpointing": False,
    }


def lora_config(job: TrainingJob) -> Any:
    """peft's configuration of the job's adapters; None where all weights are trained."""
    if job.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=job.lora.r,
        lora_alpha=job.lora.alpha,
        lora_dropout=job.lora.dropout,
        target_modules=list(job.lora.targets) or "all-linear",
        task_type="CAUSAL_LM",
    )


class Watch(transformers.TrainerCallback):  # type: ignore[misc]
    """Writes the curve, marks states, hears of signals."""

    def __init__(self, running: Running, job: TrainingJob, observe: Observe | None) -> None:
        self.job = job
        self._running, self._observe = running, observe
        self._events: Any = None
        self._logged: dict[str, float] = {}
        self.asked_to_stop = False
        self.main = int(os.environ.get("RANK", "0")) == 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        """A step was measured."""
        values = {k: float(v) for k, v in (logs or {}).items() if _number(v) and k not in SKIPPED}
        step = int(state.global_step)
        if "loss" not in values:
            return
        bad = [k for k in ("loss", "grad_norm") if values.get(k, 0.0) - values.get(k, 0.0) != 0.0]
        if bad:
            raise NotFinite(
                f"step {step}: {bad[0]} is {values[bad[0]]}",
                hint="a smaller lr, or dtype: float32; the last state and checkpoint are untouched",
            )
        if not self.main:
            return
        self._running.folder.measure(step, values)
        self._running.measured(step, values["loss"])
        self._logged = values
        self._write_events(step, values)
        if self._observe is not None:
            self._observe(self._running, values)
        self._stopping(control)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Stop here where somebody asked for it, and save."""
        self._stopping(control)

    def signalled(self, _: int, __: Any) -> None:
        """The first ^C or TERM asks to stop after the step, the second stops now."""
        if self.asked_to_stop:
            raise KeyboardInterrupt
        self.asked_to_stop = True

    def _stopping(self, control: Any) -> None:
        if self.asked_to_stop:
            control.should_save = control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        """A state is on the disk: mark it, and let older ones go.

        A state whose weights are no numbers is none: the loss before the update was still one.
        """
        step = int(state.global_step)
        refuse_not_finite(model, step)
        if not self.main:
            return
        folder = self._running.folder
        mark_complete(folder.state_at(step), step)
        folder.prune_states(self.job.keep)
        self._running.say(saved=step)

    @property
    def last(self) -> dict[str, float]:
        """The last step's measurements."""
        return dict(self._logged)

    def close(self) -> None:
        """Flush the events."""
        if self._events is not None:
            self._events.close()

    def _write_events(self, step: int, values: dict[str, float]) -> None:
        if self._events is None:
            from tensorboardX import SummaryWriter

            self._events = SummaryWriter(
                str(self._running.folder.tensorboard), purge_step=step, flush_secs=10
            )
        for name, value in values.items():
            self._events.add_scalar(f"train/{name}", value, step)


def refuse_not_finite(model: Any, step: int) -> None:
    """Raise `NotFinite` for weights that are no numbers."""
    if model is not None and not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise NotFinite(
            f"step {step}: the update made weights that are no numbers",
            hint="a smaller lr, or dtype: float32; the last state and checkpoint are untouched",
        )


def train(trainer: Any, watch: Watch, running: Running, resume: int) -> None:
    """Run a trainer to its end from the state of step `resume` (0: from the beginning).

    Raises `Interrupted` after ^C with the state saved, `NotFinite`, and `HarnessError` for a full
    disk: in every case the last state and the registered checkpoint are whole.
    """
    folder = running.folder
    trainer.remove_callback(transformers.PrinterCallback)
    state = str(folder.state_at(resume)) if resume else None
    try:
        with on_signals(watch.signalled):
            trainer.train(resume_from_checkpoint=state)
        refuse_not_finite(trainer.model, int(trainer.state.global_step))
    except HarnessError as exc:
        running.ended("failed", error=str(exc))
        raise
    except KeyboardInterrupt:
        running.ended("stopped")
        raise Interrupted("stopped before the step was done", hint=_hint(folder)) from None
    except Exception as exc:
        running.ended("failed", error=f"{type(exc).__name__}: {exc}")
        if not disk_is_full(exc):
            raise
        folder.prune_states(watch.job.keep)
        told = f"the disk is full: `{folder.path}` cannot be written"
        raise HarnessError(told, hint=f"make room; {_hint(folder)}") from exc
    finally:
        with suppress(OSError):
            watch.close()
    if watch.asked_to_stop and int(trainer.state.global_step) < int(trainer.args.max_steps):
        running.ended("stopped")
        raise Interrupted(f"stopped after step {trainer.state.global_step}", hint=_hint(folder))


def write_model(trainer: Any, student: Student, job: TrainingJob, folder: Path) -> None:
    """The trained weights as a checkpoint folder, in the type of the base's."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    if job.lora is not None and job.lora.save == "merged":
        model = model.merge_and_unload()
    if job.lora is None or job.lora.save == "merged":
        model = model.to(student.stored)
        model.config.dtype = student.stored
    model.save_pretrained(folder)
    write_tokenizer(student, folder)


def write_tokenizer(student: Student, folder: Path) -> None:
    """Tokenizer and template of a checkpoint folder."""
    student.tokenizer.padding_side = "left"
    student.tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(student.template.source, encoding="utf-8")


def _hint(folder: JobFolder) -> str:
    saved = folder.saved_steps()
    return f"--resume goes on from step {saved[-1]}" if saved else "no state was saved yet"


def _stored(folder: Path) -> torch.dtype:
    found = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    return getattr(found, "dtype", None) or torch.float32


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _calm() -> None:
    """Warnings of the libraries about themselves are no news to who trains."""
    hush("transformers", "trl", "accelerate", "datasets", "peft")
    import datasets

    datasets.disable_progress_bars()
