"""TR Tables 7, 17, 18 and 20 on one GPU, from a checkpoint folder to one page of results.

    python -m benchmarks.gpu.h20 --model /models/Qwen3.6-35B-A3B --out /data/h20 [--dry-run]

Needs a machine with one H20 (96 GB; any GPU that holds the weights will do), a CUDA driver, 100 GB
of disk and a Python 3.11 with this project installed (`make install EXTRA=serve`). It makes an
environment for SGLang, a project, and three jobs: MTP off, on with the lossy thresholds of TR
Table 19, on and exact. They take turns, since one GPU holds one of them; each is replayed at
C = 1, 2, 4, 8, C = 4 three times as in the report. About three hours. `--dry-run` prints every
command and writes the job files alone. What ended is not done again: start it anew to go on.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SGLANG = "0.5.23"
STRESS = 8
"""Requests a replica takes here: the stress levels of TR Table 17 go beyond the default of 2."""
ARMS: dict[str, dict | None] = {
    "off": None,
    "on": {"accept_threshold_single": 0.5, "accept_threshold_acc": 0.7},
    "exact": {"accept_threshold_single": 1.0, "accept_threshold_acc": 1.0},
}
LEVELS = (("1,2,8", 1), ("4", 3))
"""Concurrencies and runs at each."""


@dataclass(frozen=True)
class Plan:
    model: Path
    out: Path
    gpu: str
    limit: int | None

    @property
    def project(self) -> Path:
        return self.out / "project"

    @property
    def engine(self) -> Path:
        """The Python of SGLang's own environment."""
        return self.out / "sglang" / "bin" / "python"


@dataclass(frozen=True)
class Step:
    """One command. Its standard output goes to `keep`, which marks it as done."""

    words: tuple[str, ...]
    keep: Path | None = None
    group_of: Path | None = None
    """A replay whose group id goes in place of `{group}`."""
    against: Path | None = None
    """The same for `{against}`."""
    cwd: Path | None = None
    unless: Path | None = None
    """It is not needed once this is there."""


def job(plan: Plan, arm: str) -> dict:
    """The job file of one arm, as JSON, which is YAML."""
    mtp = ARMS[arm]
    drafting = {"algorithm": "NEXTN", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}
    return {
        "schema": 1,
        "name": f"h20-{arm}",
        "engine": "sglang",
        "version": SGLANG,
        "model": str(plan.model),
        "dtype": "bfloat16",
        "parallelism": {"tp": 1, "pp": 1},
        "port": 30000,
        "admission": {"per_replica": STRESS, "queue": 64},
        "process": {"ready_s": 1800, "drain_s": 60},
        "options": {"mem-fraction-static": 0.85, "random-seed": 20261130},
        "launcher": [str(plan.engine), "-m", "sglang.launch_server"],
        "gpu": plan.gpu,
        **({} if mtp is None else {"mtp": {**drafting, **mtp}}),
    }


def steps(plan: Plan) -> Iterator[Step]:
    """Everything, in order."""
    python, out = sys.executable, plan.out
    yield Step(("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv"),
               keep=out / "gpu.csv")  # fmt: skip
    yield Step((python, "-m", "venv", str(out / "sglang")), keep=out / "venv.txt")
    yield Step((str(plan.engine), "-m", "pip", "install", "--quiet", f"sglang=={SGLANG}"),
               keep=out / "pip.txt")  # fmt: skip
    yield Step(harness("init", str(plan.project)), keep=out / "init.txt", cwd=out)
    yield Step(harness("mtp", "check", str(plan.model), "--steps", "3", "--json"),
               keep=out / "head.json", cwd=plan.project)  # fmt: skip
    for arm in ARMS:
        yield from arm_steps(plan, arm)
    for arm in ("on", "exact"):
        for levels, _ in LEVELS:
            name = levels.replace(",", "")
            yield Step(
                harness("bench", "report", "{group}", "--against", "{against}",
                        "-o", str(out / f"{arm}-against-off-c{name}.md")),
                keep=out / f"report-{arm}-c{name}.txt",
                group_of=out / f"{arm}-c{name}.json",
                against=out / f"off-c{name}.json",
                cwd=plan.project,
            )  # fmt: skip


def arm_steps(plan: Plan, arm: str) -> Iterator[Step]:
    """One arm: up, replay at every level, its log in numbers, down."""
    out, name = plan.out, f"h20-{arm}"
    up = harness("serve", "up", str(plan.out / f"serve-{arm}.yaml"), "--json")
    # Started anew after a restart of the machine; a server that runs is left alone.
    yield Step(up, unless=out / f"down-{arm}.txt", cwd=plan.project)
    for levels, runs in LEVELS:
        words = ["bench", "replay", "--job", name, "-c", levels, "--runs", str(runs), "--json"]
        if plan.limit is not None:
            words += ["--limit", str(plan.limit)]
        kept = out / f"{arm}-c{levels.replace(',', '')}.json"
        yield Step(harness(*words), keep=kept, cwd=plan.project)
    stats = harness("serve", "logs", name, "--stats", "--json",
                    "--metrics", "http://127.0.0.1:30000/metrics")  # fmt: skip
    yield Step(stats, keep=out / f"log-{arm}.json", cwd=plan.project)
    yield Step(harness("serve", "down", name), keep=out / f"down-{arm}.txt", cwd=plan.project)


def harness(*words: str) -> tuple[str, ...]:
    """A verb of this project, by the Python that runs this script."""
    return (sys.executable, "-m", "harness_cli.main", *words)


def write_jobs(plan: Plan) -> list[Path]:
    """The job files."""
    plan.out.mkdir(parents=True, exist_ok=True)
    made = []
    for arm in ARMS:
        path = plan.out / f"serve-{arm}.yaml"
        path.write_text(json.dumps(job(plan, arm), indent=1) + "\n")
        made.append(path)
    return made


def filled(step: Step) -> list[str]:
    """The words of a step, with the group ids of the replays it reads."""
    ids = {
        "{group}": step.group_of,
        "{against}": step.against,
    }
    return [group(ids[word]) if ids.get(word) else word for word in step.words]


def group(replay: Path | None) -> str:
    """The id of the runs of one `bench replay --json`."""
    if replay is None or not replay.is_file():
        return f"<group of {replay.name if replay else 'a replay'}>"
    return str(json.loads(replay.read_text())["contracts"][0]["group"])


def run(step: Step) -> None:
    """Run one step unless what it makes is there; its output appears whole or not at all."""
    if any(path is not None and path.exists() for path in (step.keep, step.unless)):
        print(f"done: {shlex.join(step.words)}", flush=True)
        return
    words = filled(step)
    print(f"$ {shlex.join(words)}", flush=True)
    done = subprocess.run(words, cwd=step.cwd, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout)
        raise SystemExit(f"exit code {done.returncode}: mend it and start this script again")
    if step.keep is not None:
        part = step.keep.with_suffix(".part")
        part.write_text(done.stdout)
        part.replace(step.keep)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="checkpoint folder with mtp.*")
    parser.add_argument("--out", type=Path, default=Path("h20"), help="where everything goes")
    parser.add_argument("--gpu", default="NVIDIA H20", help="for the record")
    parser.add_argument("--limit", type=int, help="first cases only, warm-ups included")
    parser.add_argument("--dry-run", action="store_true", help="print what would be run")
    chosen = parser.parse_args()
    plan = Plan(chosen.model.resolve(), chosen.out.resolve(), chosen.gpu, chosen.limit)
    write_jobs(plan)
    for step in steps(plan):
        if chosen.dry_run:
            print(shlex.join(filled(step)))
        else:
            run(step)
    if not chosen.dry_run:
        print(f"results: {plan.out}/*-against-off-*.md, log-*.json")


if __name__ == "__main__":
    main()
