"""A project with a tiny base and rows to train on, for tests of jobs."""

import json
import random
from pathlib import Path

from tiny_checkpoint import make_tiny
from tokenizers import Tokenizer

from harness_cli.records.training_job import OpdTraining, SftTraining
from harness_cli.store.project import Project

START = "<|im_start|>"


def make_project(folder: Path, *, rows: int = 24) -> Project:
    """`tiny/` and `other/` (the same vocabulary), `rows.jsonl`, `prompts.jsonl`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "harness.yaml").write_text("schema: 1\n")
    make_tiny(folder / "tiny")
    make_tiny(folder / "other", seed=7, spread=0.3)
    write_rows(folder, "rows.jsonl", greetings(folder / "tiny", rows))
    lines = [json.dumps({"prompt": f"Say something about number {i}"}) for i in range(12)]
    (folder / "prompts.jsonl").write_text("\n".join(lines) + "\n")
    return Project.find(folder)


def greetings(model: Path, count: int) -> list[dict[str, list[int]]]:
    """Rows of different lengths; the loss is on what the host says."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    draws = random.Random(0)
    made = []
    for i in range(count):
        asked = f"{START}user\nsay {draws.randint(0, 9)}<|im_end|>\n{START}assistant\n"
        prompt = tokenizer.encode(asked).ids
        said = tokenizer.encode("hello there" + "!" * (i % 5) + "<|im_end|>").ids
        made.append({"input_ids": prompt + said, "labels": [-100] * len(prompt) + said})
    return made


def write_rows(folder: Path, name: str, rows: list[dict]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def sft(name: str = "student", **more) -> SftTraining:
    given = {
        "base": "tiny",
        "data": ("rows.jsonl",),
        "steps": 6,
        "lr": 1e-2,
        "batch": 2,
        "threads": 1,
        "save_every": 2,
    }
    return SftTraining(name=name, **{**given, **more})


def opd(name: str = "distilled", **more) -> OpdTraining:
    given = {
        "base": "other",
        "teacher": "tiny",
        "prompts": ("prompts.jsonl",),
        "new_tokens": 12,
        "steps": 4,
        "lr": 1e-2,
        "batch": 4,
        "threads": 1,
        "save_every": 2,
    }
    return OpdTraining(name=name, **{**given, **more})
