"""A complete verl job as a folder that is sent to the cluster as it is.

job.json            the job, the cluster, and the digests of what they were made of
overrides.txt       Hydra overrides, one a line
agent_loop.yaml     the rollout's class
runtime_env.yaml    what Ray gives every process
submit.sh           the command line
data/               rows of prompts, or of tokens
room/               harness, catalogue, tasks (rollouts alone)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.augmentation.recipes import recipe_of
from harness_cli.errors import UsageError
from harness_cli.harness.load import load_state
from harness_cli.records.canonical import write_atomic, write_json
from harness_cli.records.cluster import Cluster
from harness_cli.records.item import Item
from harness_cli.records.mtp import MtpTraining
from harness_cli.records.reader import dump_yaml
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.room import RoomCard
from harness_cli.records.training_job import OpdTraining, SftTraining, TrainingJob
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project
from harness_cli.training.opd_job import plan_opd
from harness_cli.training.opening import open_base, open_tools, vocabulary_of
from harness_cli.training.prompts import read_prompts
from harness_cli.training.rl_items import open_items, with_tasks
from harness_cli.training.scale.from_jobs import head_plan, opd_plan, rl_plan, sft_plan
from harness_cli.training.scale.parquet import write_rows
from harness_cli.training.scale.room import Room, harness_files, write_room
from harness_cli.training.scale.submit import ENV_FILE, shell_script, submit_words
from harness_cli.training.scale.verl_overrides import (
    head_overrides,
    opd_overrides,
    rl_overrides,
    sft_overrides,
)
from harness_cli.training.scale.verl_plugin import TESTED

PLUGIN: Final = "harness_cli.training.scale.verl_plugin"
LOOPS: Final = "harness_cli.training.scale.verl_loop"
START: Final = "harness_cli.training.scale.verl_start"
SHOWN: Final = 8
"""Rows of the validation set, which verl wants and never runs: `harness eval` measures."""


@dataclass(frozen=True, slots=True)
class VerlJob:
    """A written folder and how it is handed in."""

    folder: Path
    overrides: tuple[str, ...]
    words: tuple[str, ...]
    """The command line."""
    left: int = 0
    """Tasks that verl leaves out at the end of each of its rounds: no whole batch."""


def write_verl_job(project: Project, job: TrainingJob, cluster: Cluster, folder: Path) -> VerlJob:
    """Write the folder of a job, everything checked first.

    Raises `UsageError` for what verl cannot do and for a key that it does not know.
    """
    left = 0
    if isinstance(job, RlTraining):
        plan = rl_plan(project, job, cluster)
        lines = rl_overrides(plan, cluster)
        write_job_room(project, job, cluster, folder)
        left = _left(_write_tasks(folder), plan.prompts)
    elif isinstance(job, OpdTraining):
        distilled = opd_plan(project, job, cluster)
        lines = opd_overrides(distilled, cluster)
        if job.kind == "agentic":
            write_job_room(project, job, cluster, folder)
            left = _left(_write_tasks(folder), distilled.prompts)
        else:
            left = _left(_write_prompts(project, job, folder), distilled.prompts)
    elif isinstance(job, MtpTraining):
        head = head_plan(project, job, cluster)
        lines = head_overrides(head, cluster)
        left = _left(_write_prompts(project, job, folder), head.prompts)
    elif isinstance(job, SftTraining):
        lines = _sft(project, job, cluster, folder)
    else:
        raise TypeError(f"no exporter knows {type(job).__name__}")
    supervised = isinstance(job, SftTraining)
    words = submit_words(cluster, entry(lines, cluster, supervised=supervised))
    _write_rest(project, job, cluster, folder, lines, words)
    return VerlJob(folder, tuple(lines), tuple(words), left)


def _left(tasks: int, batch: int) -> int:
    """Tasks of a round that are no whole batch. Raises `UsageError` where there is not even one."""
    if tasks < batch:
        raise UsageError(
            f"a step of verl takes {batch} tasks and there are {tasks}",
            hint="fewer a step (`groups`, or `batch` × `accumulate`), or more tasks",
        )
    return tasks % batch


def entry(lines: Sequence[str], cluster: Cluster, *, supervised: bool) -> list[str]:
    """What runs on the cluster."""
    python = cluster.python or "python3"
    return [python, "-m", START, *(["--sft"] if supervised else []), *lines]


def room_card(
    project: Project,
    environment: RlTraining,
    cluster: Cluster,
    catalogue: str,
    job: RlTraining | OpdTraining,
) -> RoomCard:
    """What a room's card says: `environment` says where rollouts are made, `job` how."""
    recipe = recipe_of(project.root, environment.recipe)
    card = RoomCard(
        name=job.name,
        harness=load_state(project).id,
        catalogue=read_catalogue(project.evalsets / catalogue).digest,
        rooms=None if environment.evalset else environment.rooms,
        seed=job.seed,
        augmented=environment.augmented,
        pool=environment.pool,
        recipe=recipe,
        pipeline=job.served.pipeline,
        new_tokens=job.new_tokens,
        context=cluster.prompt_tokens + cluster.response_tokens,
        temperature=job.temperature,
        rows="segments" if isinstance(job, RlTraining) else "whole",
        one_version=cluster.trainer == "colocated",
    )
    if not isinstance(job, RlTraining):
        return card
    return msgspec.structs.replace(
        card,
        judge=job.reward_judge,
        penalty=job.penalty,
        final=job.final,
        std=job.std,
        spread=job.spread,
        truncated=job.truncated,
    )


def write_job_room(
    project: Project, job: RlTraining | OpdTraining, cluster: Cluster, folder: Path
) -> None:
    """The room that a job's rollouts work in."""
    where = with_tasks(project, job) if isinstance(job, RlTraining) else _environment(project, job)
    items: list[Item] = []
    catalogue = "catalogue"
    if where.evalset:
        evalset = open_items(project, where).evalset
        items = list(evalset.items)
        catalogue = evalset.header.catalogue or catalogue
    card = room_card(project, where, cluster, catalogue, job)
    files = harness_files(project)
    write_room(project, files, card, folder / "room", items=items, catalogue=catalogue)


def _environment(project: Project, job: OpdTraining) -> RlTraining:
    """Where an agentic student is rolled out: as its teacher was, but for what the job says."""
    found = plan_opd(project, job).environment
    if found is None:
        raise TypeError(f"`{job.name}` has no environment")
    return found.job


def _write_tasks(folder: Path) -> int:
    """One row a task; how many. The room is opened for it, as every worker will open it."""
    tasks = Room.open(folder / "room").ground.tasks
    rows = [_row([{"role": "user", "content": task}], number, task=task)
            for number, task in enumerate(tasks)]  # fmt: skip
    return _write_both(folder, rows)


def _write_prompts(project: Project, job: OpdTraining | MtpTraining, folder: Path) -> int:
    template, tools = open_tools(project, job, open_base(project, job.base))
    found = read_prompts(project.root, job.prompts, template, tools)
    long = [p for p in found if p.tokens > job.prompt_tokens]
    if long:
        raise UsageError(
            f"{len(long)} prompts are longer than {job.prompt_tokens} tokens, first `{long[0].id}`",
            hint="prompt_tokens: in the job, or leave them out",
        )
    return _write_both(folder, [_row(list(p.messages), number) for number, p in enumerate(found)])


def _row(prompt: list[dict[str, Any]], index: int, *, task: str = "") -> dict[str, Any]:
    return {
        "prompt": prompt,
        "data_source": "harness",
        "agent_name": "harness",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {"index": index, "task": task},
    }


def _write_both(folder: Path, rows: list[dict[str, Any]]) -> int:
    write_rows(folder / "data" / "train.parquet", rows)
    write_rows(folder / "data" / "val.parquet", rows[:SHOWN])
    return len(rows)


def _sft(project: Project, job: SftTraining, cluster: Cluster, folder: Path) -> list[str]:
    from harness_cli.training.training_rows import read_rows

    base = open_base(project, job.base)
    _, tools = open_tools(project, job, base)
    rows = read_rows(
        project.root,
        job.data,
        job.students,
        tools,
        max_tokens=job.max_tokens,
        vocabulary=vocabulary_of(base.folder),
    )
    plan = sft_plan(project, job, cluster, longest=rows.longest)
    lines = sft_overrides(plan, cluster)
    kept = [{"input_ids": list(r.input_ids), "labels": list(r.labels)} for r in rows.rows]
    write_rows(folder / "data" / "train.parquet", kept)
    return lines


def _write_rest(
    project: Project,
    job: TrainingJob,
    cluster: Cluster,
    folder: Path,
    lines: Sequence[str],
    words: Sequence[str],
) -> None:
    loop = "HarnessAgentLoop"
    own: dict[str, Any] = {"room": "room"}
    if isinstance(job, MtpTraining) or (isinstance(job, OpdTraining) and job.kind == "general"):
        loop, own = "PromptLoop", {}
    if not isinstance(job, SftTraining):
        given = [{"name": "harness", "_target_": f"{LOOPS}.{loop}", **own}]
        write_atomic(folder / "agent_loop.yaml", dump_yaml(given).encode())
    write_atomic(folder / "overrides.txt", ("\n".join(lines) + "\n").encode())
    write_atomic(folder / ENV_FILE, dump_yaml(runtime_env(cluster)).encode())
    script = folder / "submit.sh"
    write_atomic(script, shell_script(cluster, words).encode())
    script.chmod(0o755)
    write_json(
        folder / "job.json",
        {
            "schema": 1,
            "engine": f"verl {TESTED}",
            "job": msgspec.to_builtins(job),
            "cluster": msgspec.to_builtins(cluster),
            "base": msgspec.to_builtins(open_base(project, job.base).named),
        },
    )


def runtime_env(cluster: Cluster) -> dict[str, Any]:
    """Ray's runtime environment: this folder as the working folder, our plug-in by name.

    An entry point that fails to load is a DEBUG line in verl; a module named here fails aloud.
    """
    found: dict[str, Any] = {
        "working_dir": ".",
        "env_vars": {
            "VERL_USE_EXTERNAL_MODULES": PLUGIN,
            "TOKENIZERS_PARALLELISM": "true",
            **cluster.env,
        },
    }
    if cluster.python is not None:
        found["py_executable"] = cluster.python
    return found
