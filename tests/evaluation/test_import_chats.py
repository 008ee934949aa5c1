"""Tables, chat logs, spans, skill evals and inspect logs: what becomes of a row."""

import io
import json
import struct
import zipfile

import pytest
import zstandard
from imported_files import write

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.imports.bring_in import bring_in
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.evaluation.imports.kinds import reader
from harness_cli.evaluation.imports.source import opened
from harness_cli.evolution.recorded import diagnose_file, diagnose_imported


def read(path, kind, **options):
    with opened(path) as source:
        made = reader(kind)(source, ImportOptions(**options))
        return made, list(made.recorded())


def lines(*rows):
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)


TABLE = """id,prompt,expected,contains,reply,score,tags,note
a,"1+1, please",2,,2,1,"math;easy",x
b,"Capital
of France?",,Paris,paris it is,0,,y
"""


def test_a_table_gives_items_answers_and_scores(tmp_path):
    made, (one, two) = read(write(tmp_path, "t.csv", TABLE), "csv")
    a, b = made.items
    assert (a.request.prompt, a.tags) == ("1+1, please", ("math", "easy"))
    assert [(x.type, x.value) for x in a.assert_] == [("equals", "2")]
    assert b.request.prompt == "Capital\nof France?"
    assert [(x.type, x.value) for x in b.assert_] == [("icontains", "Paris")]
    assert (one.trajectory.reply, one.scores) == ("2", {"score": 1.0})
    assert two.scores == {"score": 0.0}
    assert "columns without a meaning here: note" in made.notes


def test_rescored_answers_are_decided_by_their_assertions_and_say_so(make_project):
    project = make_project()
    path = write(project.root, "t.csv", TABLE)
    recorded = bring_in(project, "csv", path, ImportOptions())
    ours = bring_in(project, "csv", path, ImportOptions(), rescore=True, judge="none")
    states = [{r.item_id: r.state for r in made.run.results()} for made in (recorded, ours)]
    assert states == [{"a": "passed", "b": "failed"}, {"a": "passed", "b": "passed"}]
    assert recorded.run.config().judge_id == "recorded@rows"
    assert (ours.run.config().judge_id, ours.run.config().imported.rescored) == ("none", True)


def test_rows_of_comments_are_items_of_a_live_room(tmp_path):
    rows = lines({"comment": "How much is #3?", "products": ["p1", "p2"], "current_link": 1})
    made, answers = read(write(tmp_path, "live.jsonl", rows), "jsonl")
    assert made.header.agent == "harness"
    assert made.items[0].request.room.products == ("p1", "p2")
    assert (made.items[0].id, answers) == ("row-00001", [])


def test_items_of_ours_come_in_as_they_are(tmp_path):
    row = {"id": "x", "request": {"prompt": "hi"}, "assert": [{"type": "is-json"}]}
    made, _ = read(write(tmp_path, "items.jsonl", lines(row)), "jsonl")
    assert (made.items[0].id, made.items[0].assert_[0].type) == ("x", "is-json")


def test_importing_answers_again_needs_answers(make_project):
    project = make_project()
    path = write(project.root, "t.jsonl", lines({"prompt": "hi"}))
    with pytest.raises(UsageError, match="records no answers"):
        bring_in(project, "jsonl", path, ImportOptions(), rescore=True)


CHATS = [
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {"role": "assistant", "content": "Rain."},
        ],
        "score": 1,
    },
    {
        "custom_id": "r-2",
        "request": {"model": "m-1", "messages": [{"role": "user", "content": "2+2?"}]},
        "response": {
            "body": {
                "model": "m-1-0613",
                "choices": [
                    {"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
                ],
                "usage": {"prompt_tokens": 7, "completion_tokens": 1},
            }
        },
    },
]


@pytest.mark.parametrize("form", ["jsonl", "list"])
def test_chat_logs_are_read_as_lines_and_as_a_list(form, tmp_path):
    value = lines(*CHATS) if form == "jsonl" else json.dumps(CHATS, indent=1)
    made, (one, two) = read(write(tmp_path, "chats.jsonl", value), "openai-chat")
    assert [i.id for i in made.items] == ["row-00001", "r-2"]
    assert made.items[0].request.prompt == "Weather?"
    assert [m["role"] for m in made.items[0].request.history] == ["system", "user", "assistant"]
    assert (one.trajectory.reply, len(one.trajectory.steps)) == ("Rain.", 2)
    assert (two.trajectory.reply, two.trajectory.steps[0].reply.usage.input_tokens) == ("4", 7)
    assert made.policy == "m-1-0613"


def test_chats_without_an_answer_are_an_evalset_alone(make_project):
    project = make_project()
    row = {"custom_id": "q", "body": {"messages": [{"role": "user", "content": "2+2?"}]}}
    made = bring_in(project, "openai-chat", write(project.root, "b.jsonl", lines(row)),
                    ImportOptions())  # fmt: skip
    assert made.run is None
    assert [i.request.prompt for i in made.evalset.items] == ["2+2?"]


def attribute(key, value):
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    text = value if isinstance(value, str) else json.dumps(value)
    return {"key": key, "value": {"stringValue": text}}


def message(role, *parts, **more):
    return {"role": role, "parts": list(parts), **more}


def text(content):
    return {"type": "text", "content": content}


CALL = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}
ANSWER = {"type": "tool_call_response", "id": "c1", "response": "rainy"}
ASKED = message("user", text("Weather in Paris?"))


def span(start, given, said, *, conversation="conv-1", **values):
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.conversation.id": conversation,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.input.messages": given,
        "gen_ai.output.messages": [said],
        **values,
    }
    return {
        "traceId": "t1",
        "spanId": f"s{start}",
        "name": "chat m-1",
        "startTimeUnixNano": str(start * 10**9),
        "endTimeUnixNano": str((start + 1) * 10**9),
        "attributes": [attribute(k, v) for k, v in told.items() if v is not None],
    }


def otlp(*spans):
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": list(spans)}]}]}


FIRST = span(1, [ASKED], message("assistant", CALL, finish_reason="tool_calls"))
SECOND = span(
    2,
    [ASKED, message("assistant", CALL), message("tool", ANSWER)],
    message("assistant", {"type": "reasoning", "content": "hm"}, text("Rainy."),
            finish_reason="stop"),
)  # fmt: skip


@pytest.mark.parametrize("form", ["document", "lines", "late first"])
def test_spans_of_a_conversation_become_one_rollout(form, tmp_path):
    value = {
        "document": otlp(FIRST, SECOND),
        "lines": lines(otlp(FIRST), otlp(SECOND)),
        "late first": otlp(SECOND, FIRST),
    }[form]
    made, (one,) = read(write(tmp_path, "trace.json", value), "otel")
    assert (made.items[0].id, made.items[0].request.prompt) == ("conv-1", "Weather in Paris?")
    first, second = one.trajectory.steps
    (call,) = first.calls
    assert (call.name, call.arguments, call.result.content) == (
        "weather",
        {"city": "Paris"},
        "rainy",
    )
    assert (second.reply.content, second.reply.reasoning) == ("Rainy.", "hm")
    assert (second.reply.usage.output_tokens, one.trajectory.wall_s) == (3, 2.0)
    assert made.policy == "m-1"


def test_old_numbered_attributes_and_evaluation_events_are_read(tmp_path):
    old = span(1, None, None, conversation=None)
    old["attributes"] = [
        attribute("gen_ai.request.model", "m-0"),
        attribute("gen_ai.prompt.0.role", "user"),
        attribute("gen_ai.prompt.0.content", "hi"),
        attribute("gen_ai.completion.0.content", "hello"),
    ]
    name, value = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value"
    result = [attribute(name, "kind"), {"key": value, "value": {"doubleValue": 0.5}}]
    old["events"] = [{"name": "gen_ai.evaluation.result", "attributes": result}]
    made, (one,) = read(write(tmp_path, "trace.json", otlp(old)), "otel")
    assert made.items[0].id == "t1"
    assert (one.trajectory.reply, one.scores) == ("hello", {"kind": 0.5})


def test_spans_without_messages_say_how_to_record_them(tmp_path):
    silent = span(1, None, None)
    silent["attributes"] = [a for a in silent["attributes"] if "messages" not in a["key"]]
    with pytest.raises(BadFile) as caught:
        read(write(tmp_path, "trace.json", otlp(silent)), "otel")
    assert "1 GenAI spans, none of which holds messages" in str(caught.value)
    assert "CAPTURE_MESSAGE_CONTENT" in caught.value.hint


def test_skill_evals_become_items_of_the_harness(tmp_path):
    value = {
        "skill_name": "csv-analyzer",
        "evals": [
            {
                "id": 1,
                "prompt": "Plot this.",
                "expected_output": "A bar chart.",
                "files": ["a.csv"],
                "assertions": ["Has axes", {"text": "Has a title"}],
            },
            {"id": 2, "prompt": "Tell a joke.", "should_trigger": False},
        ],
    }
    made, _ = read(write(tmp_path, "evals.json", value), "evals-json")
    one, two = made.items
    assert made.header.agent == "harness"
    assert [(a.type, a.value) for a in one.assert_] == [
        ("skill-used", "csv-analyzer"),
        ("llm-rubric", "A bar chart."),
        ("llm-rubric", "Has axes"),
        ("llm-rubric", "Has a title"),
    ]
    assert [a.type for a in two.assert_] == ["not-skill-used"]
    assert "the agent is not given them" in made.unsupported[0]


def sample(sample_id, epoch, said, value, **more):
    return {
        "id": sample_id,
        "epoch": epoch,
        "input": "1+2?",
        "target": ["3", "three"],
        "messages": [
            {"role": "user", "content": "1+2?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "k", "function": "add", "arguments": {"x": 1, "y": 2}}],
            },
            {"role": "tool", "tool_call_id": "k", "function": "add", "content": "3"},
            {"role": "assistant", "content": [{"type": "text", "text": said}]},
        ],
        "scores": {"includes": {"value": value}},
        "model_usage": {"m": {"input_tokens": 20, "output_tokens": 5}},
        "total_time": 0.5,
        **more,
    }


SAMPLES = [
    sample("sum", 1, "It is 3.", "C"),
    sample("sum", 2, "attachment://abc", "I", attachments={"abc": "It is four."}),
    sample("big", 1, "", "I", error={"message": "boom"}),
]
LOG = {
    "version": 2,
    "status": "success",
    "eval": {"task": "inspect_evals/sums", "task_version": 3, "model": "m-1", "created": ""},
    "plan": {},
    "samples": SAMPLES,
}


def zstd_archive(path, members):
    """An archive as inspect writes it: every member packed by Zstandard (method 93)."""
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w", zipfile.ZIP_STORED) as archive:
        for name, value in members.items():
            archive.writestr(name, zstandard.compress(json.dumps(value).encode()))
    data = bytearray(plain.getvalue())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        infos = archive.infolist()
    at = data.index(b"PK\x01\x02")
    for info, value in zip(infos, members.values(), strict=True):
        text = json.dumps(value).encode()
        told = struct.pack("<II", zipfile.crc32(text), info.compress_size)
        for place in (info.header_offset + 8, at + 10):  # method, in both headers
            struct.pack_into("<H", data, place, 93)
        for place in (info.header_offset + 14, at + 16):  # sum, packed size, size
            data[place : place + 8] = told
            struct.pack_into("<I", data, place + 8, len(text))
        at += 46 + len(info.filename)
    path.write_bytes(bytes(data))
    return path


@pytest.mark.parametrize("form", ["json", "deflated", "zstd"])
def test_inspect_logs_become_items_repeats_and_scores(form, tmp_path):
    path = tmp_path / ("log.json" if form == "json" else "log.eval")
    members = {"header.json": {k: v for k, v in LOG.items() if k != "samples"}}
    members |= {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in SAMPLES}
    if form == "json":
        write(tmp_path, path.name, LOG)
    elif form == "zstd":
        zstd_archive(path, members)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, value in members.items():
                archive.writestr(name, json.dumps(value))
    made, answers = read(path, "inspect")
    assert (made.header.name, made.header.version, made.repeats) == ("sums", "3", 2)
    assert [(i.id, i.assert_[0].type) for i in made.items] == [
        ("sum", "icontains-any"),
        ("big", "icontains-any"),
    ]
    told = {(a.item_id, a.trajectory.repeat): a for a in answers}
    assert told["sum", 0].scores == {"includes": 1.0}
    assert told["sum", 1].trajectory.reply == "It is four."
    assert told["sum", 0].trajectory.calls[0].result.content == "3"
    assert told["big", 0].trajectory.errored
    assert "1 tasks lack trials (of 2): `big`" in made.notes


def test_an_inspect_log_is_compared_and_rescored_like_any_run(make_project):
    project = make_project()
    path = write(project.root, "log.json", LOG)
    recorded = bring_in(project, "inspect", path, ImportOptions())
    assert recorded.report.counts == {
        "passed": 1,
        "failed": 1,
        "unscored": 0,
        "errored": 1,
        "missing": 1,
    }
    ours = bring_in(project, "inspect", path, ImportOptions(), rescore=True, judge="none")
    assert ours.report.counts["passed"] == 1
    made, _ = diagnose_file(path)
    assert made.failures == 2


def test_of_chats_without_scores_those_count_in_which_something_went_wrong(make_project):
    called = {"id": "a", "type": "function", "function": {"name": "stock", "arguments": "{}"}}
    rows = lines(
        {"messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Hi!"},
        ]},
        {"messages": [
            {"role": "user", "content": "how many are left"},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "a", "content": "Error: timeout"},
            {"role": "assistant", "content": "I cannot say."},
        ]},
    )  # fmt: skip
    project = make_project()
    path = write(project.root, "chat.jsonl", rows)
    run = bring_in(project, "openai-chat", path, ImportOptions()).run
    for made in (diagnose_file(path)[0], diagnose_imported(project, run)[0]):
        assert (made.failures, made.of) == (1, 2)
        (only,) = made.clusters
        assert (only.id, only.side) == ("tool-failed", "tool")
        assert only.cases[0].why == "tool error `stock:timeout`"
        assert made.notes == ("without a score, and nothing wrong was seen: 1 of 2",)
