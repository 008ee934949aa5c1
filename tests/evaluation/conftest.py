"""A small committed project whose policy is a loopback endpoint or a script."""

import importlib.util
import json
from pathlib import Path

import pytest
from faulty_endpoint import answer

from harness_cli.store.project import Project


def bench_project():
    path = Path(__file__).parents[2] / "benchmarks" / "project.py"
    spec = importlib.util.spec_from_file_location("bench_project", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCH = bench_project()


def coded_item(n):
    """An item that only its own answer passes."""
    return {
        **BENCH.item(n),
        "id": f"item-{n:04d}",
        "assert": [{"type": "contains", "value": answer(n)}],
        "tool_returns": {"lookup": {"article": n, "note": "n" * 60}},
    }


@pytest.fixture
def make_project(tmp_path):
    def make(url="http://127.0.0.1:9/v1", items=20, item=coded_item, **policy):
        folder = tmp_path / "project"
        settings = {"attempt_timeout_s": 10, "stall_timeout_s": 5, **policy}
        BENCH.make_project(folder, 1, url, **settings)
        lines = [json.dumps(item(n)) for n in range(items)]
        (folder / "evalsets/bench/items.jsonl").write_text("\n".join(lines) + "\n")
        header = f"schema: 1\nname: bench\nsplits: {{dev: {items}}}\ncatalogue: null\n"
        BENCH.write(folder / "evalsets/bench/evalset.yaml", header)
        BENCH.commit(folder)
        return Project.find(folder)

    return make
