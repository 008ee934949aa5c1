"""`harness train … --gpus N`: the job through `accelerate launch`, one process a GPU, one node."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_cli.commands._show import emit_json, line, note
from harness_cli.errors import HarnessError, MissingExtra, UsageError
from harness_cli.records.canonical import write_atomic
from harness_cli.records.reader import dump_yaml
from harness_cli.records.training_job import TrainingJob
from harness_cli.store.project import Project
from harness_cli.training.job_folder import JobFolder

if TYPE_CHECKING:
    from harness_cli.commands._training import Wish

ON_CPU = "ACCELERATE_USE_CPU"
"""Set by who wants the processes without GPUs: `accelerate launch` would want mpirun for that."""


def accelerate_config(gpus: int) -> dict[str, Any]:
    """What `accelerate launch --config_file` reads: data-parallel processes of one node."""
    return {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if gpus > 1 else "NO",
        "num_machines": 1,
        "machine_rank": 0,
        "num_processes": gpus,
        "main_process_ip": "127.0.0.1",
        "main_process_port": 0,
        "mixed_precision": "no",  # the trainer decides: the job's dtype
        "use_cpu": False,
        "rdzv_backend": "static",
        "same_network": True,
    }


def launch(project: Project, file: Path, job: TrainingJob, wish: "Wish", *, as_json: bool) -> None:
    """Write the configuration and run the job through it, or show both."""
    gpus = wish.gpus or 1
    folder = JobFolder.of(project.root, job.name)
    config = folder.path / "accelerate.yaml"
    write_atomic(config, dump_yaml(accelerate_config(gpus)).encode())
    words = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
    if os.environ.get(ON_CPU):
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        words += [f"--nproc_per_node={gpus}"]
    words += ["-m", "harness_cli.main", "train", wish.verb, str(file.resolve())]
    words += ["-C", str(project.root), "--quiet"]
    words += [f for f, given in (("--resume", wish.resume), ("--again", wish.again)) if given]
    if wish.dry_run:
        if as_json:
            emit_json({"dry_run": True, "command": words, "config": str(config)})
        else:
            line(shlex.join(words))
            note(f"configuration: {config}")
        return
    _run(words, job)


def _run(words: list[str], job: TrainingJob) -> None:
    from importlib.util import find_spec

    if find_spec("accelerate") is None:
        raise MissingExtra.of("`--gpus` (package accelerate)", "train")
    if job.name.startswith("-"):
        raise UsageError(f"`{job.name}` is no name")
    code = subprocess.run(words, check=False).returncode
    if code:
        raise HarnessError(f"`accelerate launch` ended with {code}", hint="its last lines say why")
