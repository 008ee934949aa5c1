"""The parts of a page that need no browser."""

import json
import xml.etree.ElementTree as ET
import zlib
from base64 import b64decode
from contextlib import ExitStack
from io import BytesIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.evaluation.comparison import CategoryDelta
from harness_cli.evaluation.page import charts
from harness_cli.evaluation.page.agreed import MetricTable
from harness_cli.evaluation.page.chunks import SIZE, Pieces, deflated, embedded, inflated
from harness_cli.evaluation.page.located import JournalReader, Places
from harness_cli.evaluation.page.rows import SHORT, short, short_end, spool
from harness_cli.evaluation.page.template import SCRIPTS, STYLES, policy, static
from harness_cli.evaluation.page.trace import LIMIT, Shower, Texts
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.journal import (
    ItemRecord,
    NoteRecord,
    TextRecord,
    TrajectoryRecord,
    VerdictRecord,
)
from harness_cli.records.trajectory import Step, ToolCall, ToolResult, Trajectory
from harness_cli.records.verdict import Finding, ItemResult, Verdict
from harness_cli.stats.agreement import agreement
from harness_cli.stats.paired import paired
from harness_cli.store.journal import line_of
from harness_cli.store.runs import Key, RunFolder

HOSTILE = "</script><script>alert(1)</script><!-- <svg onload=x> & ' \" \u2028"


@given(st.binary(max_size=4000))
def test_a_piece_comes_back_as_it_was(data):
    assert inflated(deflated(data)) == data
    assert b"<" not in deflated(data)


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_embedded_json_is_the_same_value_and_closes_no_element(value):
    data = embedded(msgspec.json.encode(value))
    assert json.loads(data) == json.loads(msgspec.json.encode(value))
    assert not {b"<", b">", b"&"} & {data[i : i + 1] for i in range(len(data))}


def read_pieces(text: bytes, prefix: str) -> list[list]:
    found = []
    for part in text.split(b"</script>")[:-1]:
        head, _, body = part.partition(b'">')
        if f'id="{prefix}'.encode() in head:
            found.append(json.loads(zlib.decompress(b64decode(body), -15)))
    return found


def test_documents_lie_where_their_place_says():
    file = BytesIO()
    pieces = Pieces(file, "t")
    documents = [{"n": n, "text": "x" * 9000} for n in range(40)]
    places = [pieces.add(msgspec.json.encode(d)) for d in documents]
    pieces.close()
    found = read_pieces(file.getvalue(), "t")
    assert len(found) == 1 + places[-1].piece > 1
    assert [found[p.piece][p.entry] for p in places] == documents
    assert pieces.written == len(file.getvalue())
    assert all(sum(len(msgspec.json.encode(d)) for d in piece) < SIZE + 9100 for piece in found)


def step(index, **more):
    return Step(index=index, **{"messages": (), "reply": ChatReply(), **more})


CALL = ToolCall(
    id="c1",
    name="look",
    arguments_raw="{}",
    arguments={},
    result=ToolResult(ok=True, content='{"a": 1}', structured={"a": 1}),
)
ASKED = ChatReply(tool_calls=(RawToolCall(id="c1", name="look", arguments="{}"),))
WIRE_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def shower(**texts):
    file = BytesIO()
    kept = Texts(Pieces(file, "x"), str)
    return Shower(kept, texts.__getitem__), kept


def test_what_only_repeats_the_step_before_is_shown_once():
    second = step(
        1,
        messages=(
            {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": '{"a": 1}'},
            {"role": "user", "content": "the hook says: shorter"},
        ),
    )
    found = Trajectory(
        request_id="r", steps=(step(0, reply=ASKED, calls=(CALL,)), second), reply="ok"
    )
    shown = shower()[0].trajectory(found)
    assert [m["role"] for m in shown["steps"][1]["messages"]] == ["user"]
    assert "structured" not in shown["steps"][0]["calls"][0]
    assert "asked" not in shown["steps"][0]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "tool_call_id": "c1", "content": '{"a": 2}'},
        {"role": "tool", "tool_call_id": "c2", "content": '{"a": 1}'},
        {"role": "assistant", "content": "something else", "tool_calls": [WIRE_CALL]},
        {"role": "assistant", "content": ""},
        {"role": "system", "content": ""},
    ],
)
def test_a_message_that_differs_from_what_was_shown_is_kept(message):
    steps = (step(0, reply=ASKED, calls=(CALL,)), step(1, messages=(message,)))
    shown = shower()[0].trajectory(Trajectory(request_id="r", steps=steps))
    assert len(shown["steps"][1]["messages"]) == 1


def test_a_call_that_was_asked_and_never_made_is_shown():
    shown = shower()[0].trajectory(Trajectory(request_id="r", steps=(step(0, reply=ASKED),)))
    assert shown["steps"][0]["asked"] == ["look({})"]


def test_a_long_text_is_kept_once_and_a_very_long_one_says_what_is_missing():
    made, kept = shower(abc="p" * 700)
    messages = ({"role": "system", "content": {"$text": "abc"}},)
    steps = (
        step(0, messages=messages),
        step(1, messages=messages, reply=ChatReply(content="y" * (LIMIT + 7))),
    )
    shown = made.trajectory(Trajectory(request_id="r", steps=steps))
    assert shown["steps"][0]["messages"][0]["text"] == shown["steps"][1]["messages"][0]["text"]
    assert shown["steps"][1]["content"] == {"$": (0, 1)}
    assert kept.cut == 1
    assert "7 more characters" in kept._kept("y" * (LIMIT + 7))


def test_the_question_is_the_last_thing_the_user_said_at_first():
    messages = (
        {"role": "user", "content": "history"},
        {"role": "user", "content": {"$text": "q"}},
        {"role": "assistant", "content": "…"},
    )
    made, _ = shower(q="how much is it")
    assert (
        made.question(Trajectory(request_id="r", steps=(step(0, messages=messages),)))
        == "how much is it"
    )
    assert made.question(Trajectory(request_id="r")) == ""


@given(st.text(max_size=4000))
def test_cells_are_short_and_say_when_something_is_missing(text):
    joined = " ".join(text.split())
    for made in (short(text), short_end(text)):
        assert len(made) <= SHORT
        assert "\n" not in made
        assert made == joined or "…" in made or len(text) > 4 * SHORT


def journal(path, n, *, reply="r", twice=False):
    lines = [NoteRecord(event="started", at="now", pid=1), TextRecord(id="sys", text="s" * 600)]
    for i in range(n):
        for turn in range(1 + twice):
            state = "errored" if twice and turn == 0 else ("passed" if i % 2 else "failed")
            item = f"i-{i:05}"
            message = {"role": "system", "content": {"$text": "sys"}}
            text = f"{reply}{i}.{turn}" * 40
            found = Trajectory(
                request_id=item,
                item_id=item,
                steps=(step(0, messages=(message,), reply=ChatReply(content=text)),),
                reply=text,
            )
            verdict = Verdict(
                judge="g", scores={"accuracy": 1.0}, findings=(Finding(kind="k", detail=HOSTILE),)
            )
            result = ItemResult(item_id=item, category="c", state=state, reply=text, wall_s=0.5)
            lines += [
                TrajectoryRecord(item=item, trajectory=found),
                VerdictRecord(item=item, verdict=verdict),
                ItemRecord(item=item, result=result),
            ]
    path.write_bytes(b"".join(line_of(msgspec.json.encode(x)) for x in lines))
    return path


def run_of(path):
    return RunFolder(path.parent)


def spooled(path, room=10_000_000):
    with ExitStack() as stack:
        reader = stack.enter_context(JournalReader(run_of(path), Places.of(run_of(path))))
        out = spool(reader, before={}, clean=str, room=room, stack=stack)
        for file in (out.rows, out.pieces):
            file.seek(0)
        rows = json.loads(b"[" + out.rows.read() + b"]")
        return out, rows, out.pieces.read()


def test_rows_point_to_their_own_trajectories_the_worst_first(tmp_path):
    out, rows, pieces = spooled(journal(tmp_path / "journal.jsonl", 9))
    assert [r["state"] for r in rows] == ["failed"] * 5 + ["passed"] * 4
    assert (out.items, out.left_out, len(out.walls)) == (9, 0, 9)
    found, texts = read_pieces(pieces, "t"), read_pieces(pieces, "x")
    for row in rows:
        shown = found[row["at"][0]][row["at"][1]]
        at = shown["t"]["reply"]["$"]
        assert texts[at[0]][at[1]].startswith(f"r{int(row['id'][2:])}.")
        assert shown["v"]["judge"] == "g"


def test_of_an_item_that_was_asked_again_the_last_answer_counts(tmp_path):
    _, rows, pieces = spooled(journal(tmp_path / "journal.jsonl", 3, twice=True))
    assert len(rows) == 3
    texts = read_pieces(pieces, "x")
    found = read_pieces(pieces, "t")
    at = found[rows[0]["at"][0]][rows[0]["at"][1]]["t"]["reply"]["$"]
    assert texts[at[0]][at[1]].startswith("r0.1")


def test_where_room_is_short_passes_lose_their_trajectories_and_every_row_stays(tmp_path):
    path = journal(tmp_path / "journal.jsonl", 400)
    _, _, pieces = spooled(path)
    out, rows, fewer = spooled(path, room=512 * 1024 + 400 * 400)
    kept = [r["state"] for r in rows if "at" in r]
    assert len(rows) == 400
    assert 0 < out.left_out == 400 - len(kept) < 400
    assert len(fewer) < len(pieces)
    states = [r["state"] for r in rows]
    assert kept == states[: len(kept)]


def test_a_place_reads_the_record_that_stands_there(tmp_path):
    path = journal(tmp_path / "journal.jsonl", 4)
    run = run_of(path)
    places = Places.of(run)
    with JournalReader(run, places) as reader:
        for key in places.items:
            assert reader.result(key).item_id == key.item
            assert reader.trajectory(key).item_id == key.item
            assert reader.verdict(key).judge == "g"
        assert reader.text("sys") == "s" * 600
        places.trajectories.clear()
        assert reader.trajectory(Key("i-00000")) is None


STAGES = (
    charts.Stage(name="ReAct", kind="baseline", accuracy=0.8, effectiveness=0.7, n=482),
    charts.Stage(name=f"base {HOSTILE}", kind="base", accuracy=0.9, effectiveness=0.8, n=482),
    charts.Stage(name="evolution 1", kind="evolution", accuracy=0.95, effectiveness=None, n=482),
    charts.Stage(
        name="evolution 2", kind="evolution", accuracy=0.93, effectiveness=0.9, n=482, selected=True
    ),
)
SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg):
    tree = ET.fromstring(svg)
    assert tree.tag == SVG + "svg"
    assert tree.get("role") == "img"
    assert tree.find(SVG + "title").text
    assert tree.find(SVG + "desc").text
    for node in tree.iter():
        assert not [a for a in node.attrib if a.startswith("on") or a in ("style", "href")]
        assert node.tag.removeprefix(SVG) in {
            "svg",
            "title",
            "desc",
            "line",
            "text",
            "polyline",
            "circle",
            "rect",
        }
    return tree


def test_the_evolution_chart_has_a_point_a_measured_stage_and_rings_the_selected_one():
    tree = parsed(charts.evolution(STAGES))
    circles = [
        c.get("class") for c in tree.iter(SVG + "circle") if c.find(SVG + "title") is not None
    ]
    assert circles.count("dot accuracy") == 3
    assert circles.count("dot effectiveness") == 2
    rings = [c for c in tree.iter(SVG + "circle") if c.get("class").startswith("ring")]
    assert len(rings) == 2
    assert len([n for n in tree.iter(SVG + "line") if n.get("class").startswith("base ")]) == 2
    assert (
        "evolution 2: accuracy 93.00 %, effectiveness 90.00 % (selected)"
        in tree.find(SVG + "desc").text
    )
    # higher is higher
    points = next(p.get("points").split() for p in tree.iter(SVG + "polyline"))
    heights = [float(p.split(",")[1]) for p in points]
    assert heights[1] < heights[2] < heights[0]


def test_charts_of_nothing_are_nothing():
    assert charts.evolution(()) == charts.latency([], bound_s=15) == charts.differences([]) == ""


def test_the_histogram_counts_everything_and_marks_the_percentiles():
    walls = [0.1] * 50 + [0.2] * 40 + [9.0] * 10
    tree = parsed(charts.latency(walls, bound_s=15.0))
    bars = [int(r.find(SVG + "title").text.split(": ")[1]) for r in tree.iter(SVG + "rect")]
    assert sum(bars) == 100
    texts = [t.text for t in tree.iter(SVG + "text")]
    assert {"p50 0.1 s", "p90 0.2 s", "p99 9 s", "15 s"} <= set(texts)
    assert "100 fresh rollouts" in tree.find(SVG + "desc").text


def delta(name, diffs, reading):
    found = paired(diffs)
    return CategoryDelta(
        category=name,
        metric="accuracy",
        mean_a=0.5,
        mean_b=0.6,
        paired=found,
        p=None,
        p_holm=None,
        reading=reading,
    )


def test_differences_lie_left_and_right_of_nought():
    rows = [
        delta("up", [1.0] * 9 + [0.0], "gain"),
        delta(HOSTILE, [-1.0, 0.0] * 9, "regression"),
        delta("none", [], "too few"),
    ]
    tree = parsed(charts.differences(rows))
    axis = float(next(n for n in tree.iter(SVG + "line") if n.get("class") == "axis").get("x1"))
    dots = {c.get("class"): float(c.get("cx")) for c in tree.iter(SVG + "circle")}
    assert dots["dot good"] > axis > dots["dot bad"]
    assert len(dots) == 2


def test_a_confusion_chart_holds_every_count():
    found = agreement([0, 0, 1, 1, 1], [0, 1, 1, 1, 0], labels=(0.0, 1.0))
    texts = [
        t.text
        for t in parsed(charts.confusion(MetricTable.of("accuracy", found))).iter(SVG + "text")
    ]
    assert [t for t in texts if t.isdigit()][-1]
    assert sorted(texts).count("2") == 1
    assert texts.count("1") >= 2  # two counts of one, beside the labels


def test_our_own_files_fit_into_their_elements():
    script, style = static(SCRIPTS), static(STYLES)
    assert "</script" not in script
    assert "<!--" not in script
    assert "</style" not in style
    for banned in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "http",
    ):
        assert banned not in script
    assert "url(" not in style
    assert "@import" not in style
    made = policy(style=style, script=script)
    assert "'sha256-" in made
    assert "unsafe" not in made
