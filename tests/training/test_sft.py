"""HSA-SFT data: real rollouts of a scripted teacher, filtered, pruned, as lessons and tokens."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from chat_cases import needs_templates
from lesson_shop import ITEMS, LONG, byte_tokenizer, make_lesson_shop

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call

from harness_cli.errors import BudgetReached, HarnessError, Stale, UsageError
from harness_cli.evaluation.gate import Budget
from harness_cli.records.training import SftJob, SftRow, TokenisedRow
from harness_cli.store.project import Project
from harness_cli.training.rejection import kept_whole
from harness_cli.training.sft import write_sft
from harness_cli.training.teaching import teach
from harness_cli.training.tokens import Tokenizer

JOB = SftJob(evalset="shop", states=0, keep_retries=0.0)
STUDENTS = ("agent", "tool", "response")


def made(project, folder, **job):
    asked = msgspec.structs.replace(JOB, **job)
    taught = asyncio.run(teach(project, asked, folder))
    return write_sft(project, taught, asked, folder)


def rows(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def of_item(folder, student, item):
    (row,) = [r for r in rows(folder, f"{student}.jsonl") if r["provenance"]["item"] == item]
    return row


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return make_lesson_shop(tmp_path_factory.mktemp("sft") / "shop")


@pytest.fixture(scope="module")
def model(shop):
    return byte_tokenizer(shop.root / "model")


@pytest.fixture(scope="module")
def taught(shop, model):
    """The data set of the scripted teacher, retries pruned, with tokens."""
    folder = shop.root / "data"
    card = made(shop, folder, template="model")
    return folder, card


def test_only_what_the_judge_grades_1_and_1_is_kept_and_the_rest_is_counted(taught):
    folder, card = taught
    kept = {r["provenance"]["item"] for r in rows(folder, "agent.jsonl")}
    assert kept == ITEMS.keys() - {"wrong-1", "cut-1", "broken-1"}
    left = {(r["item"], r["reason"]) for r in rows(folder, "left_out.jsonl")}
    assert left == {
        ("wrong-1", "accuracy below 1"),
        ("cut-1", "cut off"),
        ("broken-1", "errored"),
    }
    assert card.candidates == len(ITEMS)


def test_every_candidate_and_student_is_a_row_or_a_line_of_what_was_left_out(taught):
    folder, card = taught
    total = sum(card.files[f"{s}.jsonl"].rows for s in STUDENTS)
    left = rows(folder, "left_out.jsonl")
    whole = sum(not r["student"] for r in left)
    assert total + len(left) - whole + whole * len(STUDENTS) == card.candidates * len(STUDENTS)
    assert sum(card.left_out.values()) == len(left)


def test_a_failed_output_and_the_hooks_words_about_it_are_pruned(taught):
    folder, card = taught
    said = of_item(folder, "agent", "long-1")
    text = json.dumps(said["messages"])
    assert LONG.strip() not in text
    assert "[harness]" not in text
    assert [m["role"] for m in said["messages"]][2:] == ["assistant", "tool", "assistant"]
    assert said["messages"][-1]["content"] == "Hello and welcome!"
    assert said["provenance"]["retries"] == "pruned"
    assert said["provenance"]["refused_outputs"] == 1
    assert card.retries == {"none": 3, "pruned": 4}


def test_of_several_calls_only_the_refused_one_goes_with_its_result(taught):
    folder, _ = taught
    messages = of_item(folder, "agent", "both-1")["messages"]
    calls = [c["function"] for c in messages[2]["tool_calls"]]
    assert calls == [
        {"name": "load_skill", "arguments": {"skill": "item-qa"}},
        {"name": "get_inventory", "arguments": {"link_id": 1}},
    ]
    assert [m["role"] for m in messages[3:]] == ["tool", "tool", "assistant"]
    assert "failed" not in json.dumps(messages)


def test_a_call_that_was_no_json_is_never_a_lesson(taught):
    folder, _ = taught
    messages = of_item(folder, "agent", "unclosed-1")["messages"]
    assert [len(m.get("tool_calls", ())) for m in messages if m["role"] == "assistant"] == [2, 0]


def test_the_tool_student_sees_nothing_behind_the_last_call_and_no_thinking(taught):
    folder, _ = taught
    messages = of_item(folder, "tool", "both-1")["messages"]
    assert messages[-1]["role"] == "assistant"
    assert messages[-1]["content"] == ""
    assert "12" not in json.dumps([m for m in messages if m["role"] != "system"])
    assert "reasoning" not in json.dumps(messages)
    whole = of_item(folder, "agent", "both-1")["messages"]
    assert whole[2]["content"] == "I look it up."
    assert whole[2]["reasoning_content"] == "Stock is asked."


def test_the_response_student_sees_everything_and_learns_the_final_answer(taught):
    folder, _ = taught
    row = of_item(folder, "response", "both-1")
    assert row["completion"] == [{"role": "assistant", "content": "There are 12 left."}]
    assert [m["role"] for m in row["prompt"]] == ["system", "user", "assistant", "tool", "tool"]
    assert "messages" not in row


def test_the_trained_tokens_decode_to_exactly_the_lesson(taught, model):
    folder, card = taught
    tokenizer = Tokenizer.read(model)
    call_text = '<call>load_skill {"skill": "item-qa"}</call><call>get_inventory {"link_id": 1}'
    expected = {
        "tool": f"{call_text}</call><|im_end|>",
        "response": "There are 12 left.<|im_end|>",
        "agent": f"<think>Stock is asked.</think>I look it up.{call_text}</call><|im_end|>"
        "<think>The tool says 12.</think>There are 12 left.<|im_end|>",
    }
    for student, words in expected.items():
        (row,) = [
            r for r in rows(folder, f"{student}.tokens.jsonl") if r["id"].startswith("both-1@")
        ]
        assert tokenizer.decode([t for t in row["labels"] if t != -100]) == words
        assert len(row["input_ids"]) == len(row["labels"]) == len(row["segment_ids"])
        pairs = zip(row["input_ids"], row["labels"], strict=True)
        assert all(label in (-100, token) for token, label in pairs)
    assert card.masks == {"marks": 21, "other context": 0}
    assert card.files["tool.tokens.jsonl"].trained == sum(
        t != -100 for r in rows(folder, "tool.tokens.jsonl") for t in r["labels"]
    )


@pytest.mark.parametrize("student", STUDENTS)
def test_every_result_stands_behind_the_call_it_answers(taught, student):
    folder, _ = taught
    for row in rows(folder, f"{student}.jsonl"):
        asked = []
        for message in row.get("messages") or row["prompt"] + row["completion"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] in asked, row["id"]
            else:
                asked = [c["id"] for c in message.get("tool_calls", ())]
                assert len(asked) == len(set(asked))


def test_tools_are_json_text_in_the_order_in_which_they_were_offered(taught):
    folder, _ = taught
    tools = json.loads(of_item(folder, "agent", "hello-1")["tools"])
    assert [t["function"]["name"] for t in tools] == ["get_inventory", "load_skill", "refuse"]
    assert list(tools[0]["function"]["parameters"]) == [
        "type",
        "properties",
        "required",
        "additionalProperties",
    ]


def test_rows_are_the_records_of_their_schemas(taught):
    folder, _ = taught
    for student in STUDENTS:
        for line in (folder / f"{student}.jsonl").read_bytes().splitlines():
            msgspec.json.decode(line, type=SftRow)
        for line in (folder / f"{student}.tokens.jsonl").read_bytes().splitlines():
            msgspec.json.decode(line, type=TokenisedRow)


def test_the_manifest_binds_every_file_and_says_where_it_all_comes_from(taught, shop):
    from harness_cli.records.canonical import sha256

    folder, card = taught
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest == json.loads(msgspec.json.encode(card))
    for name, file in manifest["files"].items():
        assert sha256((folder / name).read_bytes()) == file["sha256"]
    assert manifest["teacher"].startswith("shop@")
    assert manifest["judge"].startswith("grounded@")
    assert manifest["template_sha256"]
    text = (folder / "README.md").read_text()
    assert "accuracy below 1" in text
    assert "max_length=None" in text


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_the_retries_is_kept_whole_and_its_failures_bear_no_loss(shop, model, share):
    folder = shop.root / f"kept-{share}"
    card = made(shop, folder, template="model", keep_retries=share)
    row = of_item(folder, "agent", "long-1")
    assert (LONG.strip() in json.dumps(row["messages"])) == bool(share)
    assert row["provenance"]["retries"] == ("kept" if share else "pruned")
    (tokens,) = [r for r in rows(folder, "agent.tokens.jsonl") if r["id"] == row["id"]]
    trained = Tokenizer.read(model).decode([t for t in tokens["labels"] if t != -100])
    assert trained.count("Hello and welcome!") == 1
    assert LONG[:20] not in trained
    # Arguments that were no JSON cannot be shown again, whatever the share.
    assert of_item(folder, "agent", "unclosed-1")["provenance"]["retries"] == "pruned"
    assert any("hooks refused" in note for note in card.notes) == bool(share)


def test_the_kept_share_is_a_seeded_hash_of_the_item():
    names = [f"item-{n}" for n in range(4000)]
    kept = [n for n in names if kept_whole(n, 0.1, 7)]
    assert 320 < len(kept) < 480
    assert kept == [n for n in names if kept_whole(n, 0.1, 7)]
    assert kept != [n for n in names if kept_whole(n, 0.1, 8)]
    assert set(kept) <= {n for n in names if kept_whole(n, 0.2, 7)}


def test_without_the_last_call_the_tool_student_learns_those_before_it(shop):
    folder = shop.root / "not-last"
    card = made(shop, folder, include_last=False, students=("tool",))
    assert card.left_out["no tool call before the last one"] == 6
    (row,) = rows(folder, "tool.jsonl")
    assert row["provenance"]["item"] == "two-1"
    assert [c["function"]["name"] for c in row["messages"][-1]["tool_calls"]] == ["load_skill"]


def test_a_candidate_that_says_the_same_again_is_one_row(shop):
    folder = shop.root / "twice"
    card = made(shop, folder, candidates=2, limit=2)
    assert card.candidates == 4
    assert card.left_out == {"duplicate": 6}
    assert [r["provenance"]["candidate"] for r in rows(folder, "agent.jsonl")] == [0, 0]


def test_the_same_job_goes_on_with_what_the_folder_holds(shop):
    folder = shop.root / "resumed"
    with pytest.raises(BudgetReached, match="rollouts are missing"):
        asyncio.run(teach(shop, JOB, folder, budget=Budget(tokens=600), concurrency=1))
    assert not (folder / "manifest.json").exists()
    before = (folder / "teacher/journal.jsonl").read_bytes()
    card = made(shop, folder)
    after = (folder / "teacher/journal.jsonl").read_bytes()
    assert after.startswith(before)
    assert 0 < len(before) < len(after)
    fresh = shop.root / "at-once"
    assert made(shop, fresh).files == card.files
    for name in card.files:
        assert (fresh / name).read_bytes() == (folder / name).read_bytes()


def test_a_folder_of_another_job_is_refused_and_left_as_it_is(shop):
    folder = shop.root / "other"
    made(shop, folder, limit=1)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(Stale, match="another teacher's work: limit"):
        made(shop, folder, limit=2)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_over_long_rows_end_the_export_or_are_counted(shop, model):
    folder = shop.root / "long"
    with pytest.raises(HarnessError, match="rows are longer than 700 tokens") as refused:
        made(shop, folder, template="model", max_tokens=700)
    assert "over_long: drop" in refused.value.hint
    assert not (folder / "manifest.json").exists()
    with pytest.raises(HarnessError, match="no row is left"):
        made(shop, folder, template="model", max_tokens=10, over_long="drop")
    lengths = sorted(len(r["input_ids"]) for r in rows(shop.root / "data", "agent.tokens.jsonl"))
    card = made(shop, folder, template="model", max_tokens=lengths[-2], over_long="drop")
    assert card.left_out["over long"] >= 1
    assert card.files["agent.tokens.jsonl"].longest == lengths[-2]
    assert card.files["agent.jsonl"].rows == card.files["agent.tokens.jsonl"].rows


def test_a_template_that_writes_no_end_token_gives_no_row(shop, model):
    loose = shop.root / "loose"
    shutil.copytree(model, loose)
    text = (loose / "chat_template.jinja").read_text()
    text = text.replace("<|im_end|>{% endgeneration %}", "{% endgeneration %}")
    (loose / "chat_template.jinja").write_text(text)
    with pytest.raises(HarnessError, match="cannot be masked"):
        made(shop, shop.root / "no-end", template="loose")


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"states": 0, "original": False}, "names no harness state"),
        ({"judge": "nobody"}, "no judge named"),
        ({"students": ()}, "names no student"),
        ({"template": "no-such"}, "no chat template"),
        ({"template": "s.yaml"}, "comes without a tokenizer"),
        ({"template": "model", "tokenizer": "no-such"}, "no tokenizer"),
        ({"template": "model", "tokenizer": "s.yaml"}, "is no tokenizer"),
    ],
)
def test_a_job_that_cannot_be_meant_is_refused_before_anything_is_asked(
    shop, model, tmp_path, job, why
):
    with pytest.raises(UsageError, match=why):
        made(shop, tmp_path / "d", **job)


@needs_templates
def test_a_template_of_trl_is_named_and_comes_with_the_models_tokenizer(shop, model, tmp_path):
    out = tmp_path / "set"
    words = ["-o", str(out), "--limit", "1", "--states", "0", "--evalset", "shop", "--json"]
    named = [*words, "--tokenizer", str(model), "--template"]
    done = call(shop.root, "export", "sft", *named, "trl:qwen2_5_training")
    assert done.code == 0, done.err
    (row,) = rows(out, "response.tokens.jsonl")
    text = Tokenizer.read(model).decode([t for t in row["labels"] if t != -100])
    assert text == "Hello and welcome!<|im_end|>"
    wrong = call(shop.root, "export", "sft", *named, "trl:qwen2_5_trainin")
    assert wrong.code == 2
    assert "did you mean `qwen2_5_training`?" in wrong.err


def test_a_test_split_and_a_sealed_one_are_never_training_data(shop, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("evalset: shop\nsplit: test\n")
    done = call(shop.root, "export", "sft", str(job), "-o", str(tmp_path / "d"))
    assert done.code == 2
    assert "split" in done.err
    header = shop.root / "evalsets/shop/evalset.yaml"
    text = header.read_text()
    header.write_text(text.replace("splits: [test]", "splits: [test, dev]"))
    try:
        with pytest.raises(UsageError, match="sealed"):
            made(shop, tmp_path / "d")
    finally:
        header.write_text(text)
    assert not (tmp_path / "d/teacher/journal.jsonl").exists()


def test_roles_that_must_not_be_one_are_refused(shop, tmp_path):
    file = shop.root / "harness.yaml"
    text = file.read_text()
    file.write_text(text + "roles: {reward_judge: grounded, final_judge: grounded}\n")
    try:
        with pytest.raises(UsageError, match="the score a policy is trained on"):
            made(Project.find(shop.root), tmp_path / "d")
        file.write_text(text + "roles: {final_judge: grounded}\n")
        card = made(Project.find(shop.root), tmp_path / "e", limit=1)
    finally:
        file.write_text(text)
    assert any("`rejection_judge` and `final_judge` share" in note for note in card.notes)


def test_the_command_writes_the_set_and_says_what_was_left_out(shop, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("schema: 1\nevalset: shop\nstates: 0\nkeep_retries: 0\n")
    out = tmp_path / "set"
    done = call(shop.root, "export", "sft", str(job), "-o", str(out), "--limit", "8")
    assert done.code == 0, done.err
    assert "agent.jsonl" in done.out
    assert "1 × accuracy below 1" in done.out
    again = call(shop.root, "export", "sft", str(job), "-o", str(out), "--limit", "8", "--json")
    card = json.loads(again.out)
    assert (card["kind"], card["candidates"], card["folder"]) == ("sft", 8, str(out))
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("evalset: shop\nstuents: [tool]\n")
    refused = call(shop.root, "export", "sft", str(wrong), "-o", str(tmp_path / "x"))
    assert refused.code == 2
    assert "stuents" in refused.err
