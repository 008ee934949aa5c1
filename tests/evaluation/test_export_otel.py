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
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

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
        hooks=(HookEvent(hook="price", event="before_tool", outcome="deny", reason="secret"),),
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
    """The spans that the collector has sent on, once there are enough."""
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


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_rotel_takes_a_run_and_passes_on_every_span(shop, tmp_path, protocol):
    run = RunStore(Project.find(shop).runs).newest()
    done = list(run.trajectories())
    wanted = sum(1 + len(t.steps) + len(t.calls) for t in done)
    with server() as (port, got), rotel(port, tmp_path) as url:
        sent = call(shop, "export", "otel", "--endpoint", url, "--protocol", protocol, "--json")
        assert sent.code == 0, sent.err
        assert json.loads(sent.out)["sent"]["spans"] == wanted
        found = passed_on(got, wanted)
    by_trace: dict[bytes, list] = {}
    for span in found:
        by_trace.setdefault(span.trace_id, []).append(span)
    assert len(by_trace) == len(done)
    for trace in by_trace.values():
        (root,) = [s for s in trace if not s.parent_span_id]
        known = values(root.attributes)
        assert root.name == "invoke_agent harness"
        assert (known["gen_ai.operation.name"], known["harness.run"]) == ("invoke_agent", run.id)
        assert all(s.parent_span_id == root.span_id for s in trace if s is not root)
        assert all(root.start_time_unix_nano <= s.start_time_unix_nano for s in trace)
        assert all(s.end_time_unix_nano <= root.end_time_unix_nano for s in trace)
        chats = [s for s in trace if s.name.startswith("chat ")]
        assert chats
        assert "gen_ai.input.messages" not in values(chats[0].attributes)
        scores = [e for s in chats for e in s.events if e.name == "gen_ai.evaluation.result"]
        assert {values(e.attributes)["gen_ai.evaluation.name"] for e in scores} >= {"accuracy"}
    ids = [s.span_id for s in found]
    assert len(set(ids)) == len(ids)


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
    root, chat, tool, again = spans(exported(), content=False)
    told = {s["name"]: {a["key"] for a in s["attributes"]} for s in (root, chat, tool)}
    assert set(told) == {"invoke_agent harness", "chat p", "execute_tool get_price"}
    assert (root["kind"], chat["kind"], tool["kind"]) == (1, 3, 1)
    assert told["chat p"] >= {
        "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model",
        "gen_ai.response.model", "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.response.time_to_first_chunk", "gen_ai.conversation.id", "harness.attempts",
    }  # fmt: skip
    assert told["execute_tool get_price"] == {
        "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id",
        "error.type", "harness.executor",
    }  # fmt: skip
    assert tool["status"] == {"code": 2, "message": "not_found"}
    assert again["status"] == {"code": 2, "message": "timeout"}
    assert chat["events"][0]["name"] == "harness.hook"
    ends = [int(s["endTimeUnixNano"]) - END for s in (chat, tool, again, root)]
    assert ends == [-500_000_000, -250_000_000, -50_000_000, 0]


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
@given(told=st.dictionaries(st.text(min_size=1, max_size=12), PLAIN, max_size=6))
def test_our_protobuf_says_what_our_json_says(told):
    """Read back by opentelemetry-proto."""
    told = {k: v for k, v in told.items() if v not in ("", [])}
    (root, *rest) = spans(exported(), content=True)
    root["attributes"] = attributes(told)
    read = ExportTraceServiceRequest.FromString(otlp.protobuf(otlp.request([root, *rest])))
    found = read.resource_spans[0].scope_spans[0].spans
    assert values(found[0].attributes) == told
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
        assert otel.send([exported()], collector, content=False).spans == 4
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
