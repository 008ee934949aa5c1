"""Trajectories as OpenTelemetry traces, taken by `rotel`, a collector, as a process of its own."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))
sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from program import call
from small_shop import make_shop

from harness_cli.errors import HarnessError, UsageError
from harness_cli.evaluation.exports import otel, otlp
from harness_cli.evaluation.exports.otel_spans import Exported, attributes, spans
from harness_cli.evaluation.imports.bring_in import bring_in
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.records.chat import ChatReply, RawToolCall, Usage
from harness_cli.records.trajectory import (
    HookEvent,
    Route,
    Step,
    StopReason,
    ToolCall,
    ToolErrorKind,
    ToolResult,
    Trajectory,
)
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore
from harness_cli.store.served import append_served

END = 1_764_500_000_000_000_000


def values(span_attributes) -> dict:
    """Protobuf attributes as plain values."""
    found = {}
    for pair in span_attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = [v.string_value for v in value.values] if kind == "array_value" else value
    return found


def rollout(**more) -> Trajectory:
    asked = RawToolCall(id="c1", name="get_price", arguments='{"link_id":1}')
    failed = ToolResult(ok=False, content="no such link", error=ToolErrorKind.NOT_FOUND)
    first = Step(
        index=0,
        messages=({"role": "system", "content": "be kind"}, {"role": "user", "content": "价格?"}),
        reply=ChatReply(
            tool_calls=(asked,), finish_reason="tool_calls", latency_s=0.5, ttft_s=0.1, attempts=3,
            usage=Usage(input_tokens=100, output_tokens=9, cached_tokens=80), model="m-1",
        ),
        calls=(
            ToolCall(
                id="c1", name="get_price", arguments_raw=asked.arguments, executor="python",
                result=failed, latency_s=0.25,
            ),
        ),
        hooks=(HookEvent(hook="price", event="before_tool", outcome="deny", reason="secret",
                         latency_s=0.02),),
    )  # fmt: skip
    second = Step(
        index=1,
        messages=({"role": "tool", "tool_call_id": "c1", "content": "no such link"},),
        reply=ChatReply(
            content="I do not know.", latency_s=0.2, usage=Usage(input_tokens=120, output_tokens=5)
        ),
        fallback=True,
        error="timeout: 15 s",
    )
    known = {
        "request_id": "item-1#0", "item_id": "item-1", "harness_id": "tree", "policy_id": "p@1",
        "steps": (first, second), "reply": "I do not know.", "wall_s": 1.0,
    }  # fmt: skip
    return Trajectory(**{**known, **more})


def exported(**more) -> Exported:
    return Exported(trajectory=rollout(**more), source="run-1", end_ns=END, run="run-1")


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@contextmanager
def server(answer=lambda n: (200, b"", {})):
    """A loopback HTTP endpoint: its port and the requests that it got."""
    got, ready, box = [], threading.Event(), {}

    async def take(request: web.Request) -> web.Response:
        got.append((request.path, dict(request.headers), await request.read()))
        status, body, headers = answer(len(got))
        return web.Response(status=status, body=body, headers=headers)

    async def serve() -> None:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/{any:.*}", take)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        box["port"], box["end"] = runner.addresses[0][1], asyncio.Event()
        box["loop"] = asyncio.get_running_loop()
        ready.set()
        await box["end"].wait()
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait(20)
    try:
        yield box["port"], got
    finally:
        box["loop"].call_soon_threadsafe(box["end"].set)
        thread.join(20)


@contextmanager
def rotel(forward_to: int, folder: Path):
    """The collector `rotel` as a process: the URL of its HTTP receiver."""
    found = find_spec("rotel")
    program = Path(found.origin).with_name("rotel-agent") if found else None
    if program is None or subprocess.run([program, "--version"], capture_output=True).returncode:
        pytest.skip("rotel does not run here")
    http, grpc = free_port(), free_port()
    words = [
        program, "start",
        "--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}",
        "--exporter", "otlp", "--otlp-exporter-protocol", "http",
        "--otlp-exporter-endpoint", f"http://127.0.0.1:{forward_to}",
        "--otlp-exporter-compression", "none", "--batch-timeout", "100ms",
        "--pid-file", folder / "rotel.pid", "--log-file", folder / "rotel.log",
    ]  # fmt: skip
    with (folder / "rotel.out").open("wb") as out:
        process = subprocess.Popen([str(w) for w in words], stdout=out, stderr=out, cwd=folder)
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", http)) == 0:
                    break
            assert process.poll() is None, (folder / "rotel.out").read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{http}"
    finally:
        process.terminate()
        process.wait(20)


def passed_on(got: list, wanted: int) -> list:
    """The spans that the receiver got, as it sends them on, once there are enough."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = [
            span
            for path, _, body in list(got)
            if path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        if len(found) >= wanted:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{len(found)} of {wanted} spans came")


@pytest.fixture(scope="module")
def shop(tmp_path_factory, isolated_session) -> Path:
    root = tmp_path_factory.mktemp("otel") / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "-q", "--json").code == 0
    return root


def told(span) -> dict:
    """A span that came over the wire, in the words of the one that was made."""
    found = {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_time_unix_nano),
        "endTimeUnixNano": str(span.end_time_unix_nano),
        "attributes": values(span.attributes),
        "events": [
            (e.name, str(e.time_unix_nano), values(e.attributes)) for e in span.events
        ],
    }  # fmt: skip
    if span.parent_span_id:
        found["parentSpanId"] = span.parent_span_id.hex()
    if span.status.code:
        found["status"] = {"code": span.status.code, "message": span.status.message}
    return found


def meant(span: dict) -> dict:
    """The same of a span as it was made: OTLP's JSON read with the plainest code there is."""

    def one(value: dict):
        ((kind, inside),) = value.items()
        if kind == "arrayValue":
            return [one(v) for v in inside["values"]]
        return int(inside) if kind == "intValue" else inside

    def pairs(found: list) -> dict:
        return {a["key"]: one(a["value"]) for a in found}

    events = [(e["name"], e["timeUnixNano"], pairs(e["attributes"])) for e in span["events"]]
    return {**span, "attributes": pairs(span["attributes"]), "events": events}


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_rotel_gets_every_span_of_a_run_and_of_a_serving_log_as_it_was_made(
    shop, tmp_path, protocol
):
    """`rotel` is a collector of its own from PyPI: what it got is what it passes on to us."""
    run = RunStore(Project.find(shop).runs).newest()
    log = tmp_path / "room.jsonl"
    append_served(log, rollout(), at=datetime(2026, 11, 29, 10, 0, 1, tzinfo=UTC))
    wanted = [
        meant(span)
        for one in (*otel.of_run(run), *otel.of_logs([log], []))
        for span in spans(one, content=one.run is None)
    ]
    done = list(run.trajectories())
    assert len(wanted) == sum(
        1 + len(t.steps) + len(t.calls) + len(t.hooks) + sum(len(s.hooks) for s in t.steps)
        for t in (*done, rollout())
    )
    with server() as (port, got), rotel(port, tmp_path) as url:
        to = ("--endpoint", url, "--protocol", protocol, "--json")
        sent = [
            call(shop, "export", "otel", "--run", run.id, *to),
            call(shop, "export", "otel", "--log", str(log), "--content", *to),
        ]
        assert [one.code for one in sent] == [0, 0], sent
        assert sum(json.loads(one.out)["sent"]["spans"] for one in sent) == len(wanted)
        found = passed_on(got, len(wanted))
    by_id = {span["spanId"]: span for span in map(told, found)}
    assert len(by_id) == len(found)
    assert by_id == {span["spanId"]: span for span in wanted}
    roots = {s["traceId"]: s for s in by_id.values() if "parentSpanId" not in s}
    assert len(roots) == len(done) + 1
    for span in by_id.values():
        root = roots[span["traceId"]]
        assert span is root or span["parentSpanId"] == root["spanId"]
        assert root["startTimeUnixNano"] <= span["startTimeUnixNano"]
        assert span["endTimeUnixNano"] <= root["endTimeUnixNano"]
    kinds = {span["name"].partition(" ")[0] for span in by_id.values()}
    assert kinds == {"invoke_agent", "chat", "execute_tool", "hook"}
    scores = [e for s in by_id.values() for e in s["events"]]
    assert {e[2]["gen_ai.evaluation.name"] for e in scores} >= {"accuracy"}
    (room,) = (s for s in by_id.values() if s["name"] == "execute_tool get_price")
    assert room["attributes"]["gen_ai.tool.call.arguments"] == '{"link_id":1}'
    assert room["attributes"]["gen_ai.tool.call.id"] == "c1"
    assert not any(
        "gen_ai.input.messages" in s["attributes"]
        for s in by_id.values()
        if s["traceId"] != room["traceId"]
    )


def test_a_serving_log_is_exported_at_its_own_times(tmp_path, shop):
    log = tmp_path / "room.jsonl"
    append_served(log, rollout(), at=datetime(2026, 11, 29, 10, 0, 1, tzinfo=UTC))
    with log.open("a") as file:
        file.write("{torn\n")
    append_served(log, rollout(route=Route.SUPPRESSED, stop=StopReason.ERROR))
    out = tmp_path / "traces.jsonl"
    done = call(shop, "export", "otel", "--log", str(log), "-o", str(out), "--json")
    assert done.code == 0, done.err
    assert "room.jsonl:2" in done.err
    assert json.loads(done.out)["bad_lines"] == 1
    whole = json.loads(out.read_text())
    made = whole["resourceSpans"][0]["scopeSpans"][0]["spans"]
    roots = [s for s in made if "parentSpanId" not in s]
    assert len(roots) == 2
    end = int(datetime(2026, 11, 29, 10, 0, 1, tzinfo=UTC).timestamp()) * 10**9
    assert (roots[0]["startTimeUnixNano"], roots[0]["endTimeUnixNano"]) == (
        str(end - 10**9), str(end)
    )  # fmt: skip
    assert roots[1]["status"] == {"code": 2, "message": "error"}


def test_the_names_are_those_of_the_genai_conventions():
    root, chat, hook, tool, again = spans(exported(), content=False)
    keys = {s["name"]: {a["key"] for a in s["attributes"]} for s in (root, chat, hook, tool)}
    assert set(keys) == {"invoke_agent harness", "chat p", "hook price", "execute_tool get_price"}
    assert (root["kind"], chat["kind"], hook["kind"], tool["kind"]) == (1, 3, 1, 1)
    assert keys["chat p"] >= {
        "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model",
        "gen_ai.response.model", "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.response.time_to_first_chunk", "gen_ai.conversation.id", "harness.attempts",
    }  # fmt: skip
    assert keys["execute_tool get_price"] == {
        "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id",
        "error.type", "harness.executor", "harness.step",
    }  # fmt: skip
    assert keys["hook price"] == {
        "harness.hook", "harness.hook.event", "harness.hook.outcome", "harness.step",
    }  # fmt: skip
    made = {key for s in spans(exported(), content=True) for key in meant(s)["attributes"]}
    published = {v for k, v in vars(gen_ai_attributes).items() if k.startswith("GEN_AI_")}
    assert {key for key in made if not key.startswith("harness.")} <= {*published, "error.type"}
    known = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert {"invoke_agent", "chat", "execute_tool"} <= known
    assert tool["status"] == {"code": 2, "message": "not_found"}
    assert again["status"] == {"code": 2, "message": "timeout"}
    ends = [int(s["endTimeUnixNano"]) - END for s in (chat, hook, tool, again, root)]
    assert ends == [-500_000_000, -480_000_000, -230_000_000, -30_000_000, 0]


def test_hooks_stand_between_the_calls_that_they_watched():
    def event(name: str, where: str, **more) -> HookEvent:
        return HookEvent(hook=name, event=where, outcome="allow", latency_s=0.01, **more)

    first, second = rollout().steps
    around = (
        event("a", "before_model"), event("b", "after_model"), event("c", "before_tool"),
        event("d", "after_tool"),
        HookEvent(hook="e", event="before_reply", outcome="failed", reason="timeout"),
    )  # fmt: skip
    whole = (event("first", "request"), event("last", "after_reply"))
    made = spans(exported(steps=(structs.replace(first, hooks=around), second), hooks=whole),
                 content=False)  # fmt: skip
    assert [s["name"] for s in made] == [
        "invoke_agent harness", "hook first", "hook a", "chat p", "hook b", "hook c",
        "execute_tool get_price", "hook d", "hook e", "chat p", "hook last",
    ]  # fmt: skip
    starts = [int(s["startTimeUnixNano"]) for s in made]
    assert starts == sorted(starts)
    assert len({s["spanId"] for s in made}) == len(made)
    assert [s["name"] for s in made if "status" in s] == [
        "execute_tool get_price", "hook e", "chat p",
    ]  # fmt: skip
    steps = [meant(s)["attributes"].get("harness.step") for s in made]
    assert steps == [None, None, 0, 0, 0, 0, 0, 0, 0, 1, None]


def test_what_was_said_travels_only_when_it_is_asked_for():
    plain = json.dumps(spans(exported(), content=False), ensure_ascii=False)
    for said in ("be kind", "价格", "I do not know", "link_id", "no such link", "secret"):
        assert said not in plain
    whole = json.dumps(spans(exported(), content=True), ensure_ascii=False)
    for said in ("be kind", "价格", "I do not know", "link_id", "no such link", "secret"):
        assert said in whole


def test_an_exported_file_comes_back_by_import(shop, tmp_path):
    out = tmp_path / "traces.jsonl"
    assert call(shop, "export", "otel", "-o", str(out), "--content", "-q").code == 0
    project = Project.find(shop)
    run = RunStore(project.runs).newest()
    replies = {t.item_id: t.reply for t in run.trajectories()}
    brought = bring_in(project, "otel", out, ImportOptions(name="again"))
    back = list(brought.run.trajectories())
    assert len(back) == len(replies)
    assert sorted(t.reply for t in back) == sorted(replies.values())


def test_exporting_again_gives_the_same_ids():
    assert spans(exported(), content=True) == spans(exported(), content=True)
    other = Exported(trajectory=rollout(), source="run-2", end_ns=END)
    assert (
        spans(other, content=False)[0]["traceId"] != spans(exported(), content=False)[0]["traceId"]
    )


PLAIN = st.one_of(
    st.text(max_size=40), st.integers(-(2**63), 2**63 - 1), st.booleans(),
    st.floats(allow_nan=False), st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=3),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(said=st.dictionaries(st.text(min_size=1, max_size=12), PLAIN, max_size=6))
def test_our_protobuf_says_what_our_json_says(said):
    """Read back by opentelemetry-proto."""
    said = {k: v for k, v in said.items() if v not in ("", [])}
    (root, *rest) = spans(exported(), content=True)
    root["attributes"] = attributes(said)
    read = ExportTraceServiceRequest.FromString(otlp.protobuf(otlp.request([root, *rest])))
    found = read.resource_spans[0].scope_spans[0].spans
    assert values(found[0].attributes) == said
    assert [s.name for s in found] == [s["name"] for s in (root, *rest)]
    for span, mine in zip(found, (root, *rest), strict=True):
        assert span.span_id.hex() == mine["spanId"]
        assert span.parent_span_id.hex() == mine.get("parentSpanId", "")
        assert str(span.start_time_unix_nano) == mine["startTimeUnixNano"]
        assert len(span.events) == len(mine["events"])
        assert span.status.code == mine.get("status", {}).get("code", 0)
    assert values(read.resource_spans[0].resource.attributes)["service.name"] == "harness"


def test_a_busy_collector_is_tried_again_and_then_given_up(monkeypatch):
    monkeypatch.setattr(otlp.time, "sleep", lambda s: None)
    busy = (503, b"", {"Retry-After": "1"})
    with server(lambda n: busy if n < 3 else (200, b"", {})) as (port, got):
        collector = otlp.Collector(f"http://127.0.0.1:{port}", "http/protobuf")
        assert otel.send([exported()], collector, content=False).spans == 5
        assert len(got) == 3
    with server(lambda n: busy) as (port, got):
        collector = otlp.Collector(f"http://127.0.0.1:{port}", "http/protobuf")
        with pytest.raises(HarnessError, match="503"):
            otel.send([exported()], collector, content=False)
        assert len(got) == otlp.TRIES


def test_what_a_collector_refuses_is_not_sent_again():
    with server(lambda n: (400, b"bad span", {})) as (port, got):
        collector = otlp.Collector(f"http://127.0.0.1:{port}", "http/json")
        with pytest.raises(HarnessError, match=r"400 Bad Request bad span.*0 rollouts"):
            otel.send([exported()], collector, content=False)
        assert len(got) == 1


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_a_partial_success_is_an_error_of_its_own(shop, protocol):
    partial = ExportTraceServiceResponse()
    partial.partial_success.rejected_spans = 300
    partial.partial_success.error_message = "too old"
    as_json = msgspec.json.encode({"partialSuccess": {"rejectedSpans": "300"}})
    body = as_json if protocol == "http/json" else partial.SerializeToString()
    with server(lambda n: (200, body if n == 1 else b"", {})) as (port, _):
        url = f"http://127.0.0.1:{port}"
        done = call(shop, "export", "otel", "--endpoint", url, "--protocol", protocol)
    assert done.code == 1
    assert "the collector rejected 300 spans" in done.err


def test_headers_come_from_the_environment_and_are_shown_nowhere(shop, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=top%20shelf, tenant=shop")
    with server(lambda n: (400, b"", {})) as (port, got):
        done = call(shop, "export", "otel", "--endpoint", f"http://u:pw-word@127.0.0.1:{port}/otlp")
    path, headers, _ = got[0]
    assert (path, headers["x-api-key"], headers["tenant"]) == (
        "/otlp/v1/traces",
        "top shelf",
        "shop",
    )
    assert "shelf" not in done.out + done.err
    assert "pw-word" not in done.out + done.err


def test_where_nothing_listens_the_error_says_so(shop, monkeypatch):
    monkeypatch.setattr(otlp.time, "sleep", lambda s: None)
    done = call(shop, "export", "otel", "--endpoint", f"http://127.0.0.1:{free_port()}")
    assert done.code == 1
    assert "is a collector listening there?" in done.err


@pytest.mark.parametrize("words", [[], ["--endpoint", "grpc://x:1"], ["--run", "a", "--log", "b"]])
def test_what_cannot_be_meant_is_a_wrong_option(shop, words):
    done = call(shop, "export", "otel", *words, *(["-o", "x"] if "--run" in words else []))
    assert done.code == 2


def test_a_broken_list_of_headers_is_a_wrong_setting():
    with pytest.raises(UsageError, match="key=value"):
        otlp.headers("just text")


@given(data=st.binary(max_size=60))
def test_any_answer_of_a_server_is_read_without_harm(data):
    for as_json in (True, False):
        assert isinstance(otlp.rejected(data, as_json=as_json), int)


def test_batches_hold_whole_rollouts():
    sizes = [3, 500, 10, 510, 2, 600, 1]
    made = list(otlp.batches([{"n": k}] * n for k, n in enumerate(sizes)))
    assert sum(len(b) for _, b in made) == sum(sizes)
    assert sum(n for n, _ in made) == len(sizes)
    assert all(len(b) <= otlp.BATCH for n, b in made if n > 1)
