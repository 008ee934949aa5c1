# ruff: noqa: E501  log lines stand here as servers write them
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness_cli.errors import BadFile
from harness_cli.main import app
from harness_cli.serving.engine_logs.lines import read_line
from harness_cli.serving.engine_logs.metrics import metrics_stats, totals
from harness_cli.serving.engine_logs.read import read_lines, read_log
from harness_cli.serving.engine_logs.stats import NEW, OLD, convention_of, log_stats, spread

SAMPLES = Path(__file__).parents[2].parent / "shared" / "data" / "sglang" / "log_samples.txt"
AT = "[2026-07-30 02:35:{:02d}{}] "
TAIL = "cuda graph: True, gen throughput (token/s): 300.12, #queue-req: 2"
HYBRID = (
    "#running-req: 3, #full token: 1000, full token usage: 0.01, mamba num: 4, mamba usage: 0.02, "
)

DECODE = {
    "0.3.6": "Decode batch. #running-req: 3, #token: 10, token usage: 0.00, gen throughput (token/s): 300.12, #queue-req: 2",
    "0.4.3 accept len alone": "Decode batch. #running-req: 3, #token: 10, token usage: 0.00, accept len: 2.17, gen throughput (token/s): 300.12, #queue-req: 2",
    "0.4.4 PD": "Decode batch. #running-req: 3, #token: 10, token usage: 0.00, pre-allocated usage: 0.01, gen throughput (token/s): 300.12, #queue-req: 2",
    "0.4.7 PD": "Decode batch. #running-req: 3, #token: 10, token usage: 0.00, pre-allocated usage: 0.01, #retracted-req: 0, " + TAIL,
    "0.4.9.post2": "Decode batch. #running-req: 3, #token: 10, token usage: 0.00, " + TAIL + ", timestamp: 2025-07-21T10:11:12.123456",
    "0.4.10": "Decode batch. #running-req: 3, #token: 10, token usage: 0.00, " + TAIL + ", ",
    "0.5.2 SWA": "Decode batch. #running-req: 3, #full token: 1, full token usage: 0.00, #swa token: 1, swa token usage: 0.00, cpu graph: False, gen throughput (token/s): 300.12, #queue-req: 2, ",
    "0.5.4 numbered": "Decode batch [123], #running-req: 3, #token: 10, token usage: 0.00, accept len: 2.17, accept rate: 0.54, " + TAIL + ", ",
    "0.5.5": "Decode batch, #running-req: 3, #token: 10, token usage: 0.00, accept len: 2.17, accept rate: 0.54, " + TAIL + ",",
    "0.5.9 npu": "Decode batch, #running-req: 3, #token: 10, token usage: 0.00, npu graph: False, gen throughput (token/s): 300.12, #queue-req: 2",
    "0.5.10 TFLOPS": "Decode batch, #running-req: 3, #token: 10, token usage: 0.00, est. decode TFLOPS/s (per GPU): 12.34, " + TAIL,
    "0.5.12 PD": "Decode batch, #running-req: 3, #token: 10, token usage: 0.00, pre-allocated usage: 0.01, #prealloc-req: 1, #transfer-req: 0, #retracted-req: 0, " + TAIL,
    "0.5.16 cap": "Decode batch, #running-req: 3, #token: 10, token usage: 0.00, accept len: 4.22, accept rate: 0.65, cap len: 6.00, block accept len: 3.10, " + TAIL,
    "0.5.23 Qwen3.6": "Decode batch, " + HYBRID + "accept len: 3.10, accept rate: 0.70, " + TAIL,
    "0.5.23 hisparse": "Decode batch, #running-req: 3, #gpu token: 10, #cpu token: 20, token usage: 0.00, musa graph: True, gen throughput (token/s): 300.12, #queue-req: 2, #host-receive-req: 0",
}  # fmt: skip
PREFILL = {
    "0.3.6": "Prefill batch. #new-seq: 1, #new-token: 2, #cached-token: 3, cache hit rate: 12.50%, token usage: 0.11, #running-req: 3, #queue-req: 2",
    "0.4.4 PD": "Prefill batch. #new-seq: 1, #new-token: 2, #cached-token: 3, token usage: 0.11, #running-req: 3, #unbootstrapped-req: 0, #queue-req: 2, #transferring-req: 0, time: 1.23 ",
    "0.4.10": "Prefill batch. #new-seq: 1, #new-token: 2, #cached-token: 3, token usage: 0.00, #running-req: 3, #queue-req: 2, ",
    "0.5.4": "Prefill batch [7], #new-seq: 1, #new-token: 2, #cached-token: 3, token usage: 0.00, #running-req: 3, #queue-req: 2, ",
    "0.5.23": "Prefill batch, #new-seq: 1, #new-token: 2, #cached-token: 3, full token usage: 0.12, mamba usage: 0.02, #running-req: 3, #queue-req: 2, #pending-token: 0, #replay-token: 4, cuda graph: False, input throughput (token/s): 9.58",
    "0.5.16 PD": "Prefill batch, #new-seq: 1, #new-token: 2, #cached-token: 3, token usage: 0.00, #running-req: 3, #queue-req: 2, #pending-token: 0, #bootstrap-req: 0, #inflight-req: 1, #optimistic-req: 0, cuda graph: True, input throughput (token/s): 9.58",
}  # fmt: skip
TAGS = ["", " TP0", " DP1 TP3 EP3", " DP0 PP1 ATTN_CP2 MOE_DP1 TP0 EP4"]


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("text", [*DECODE.values(), *PREFILL.values()], ids=[*DECODE, *PREFILL])
def test_every_variant_is_read_by_itself_and_in_bulk(text, tags):
    decode = text.startswith("Decode")
    raw = AT.format(1, tags) + text
    line = read_line(raw)
    assert line.kind == ("decode" if decode else "prefill")
    assert (line.values["running"], line.values["queue"], line.rank) == (3, 2, tags.strip())
    assert not [k for k in line.values if k.startswith("#")]
    for outer in ("", "2026-07-30T02:35:01Z INFO ", "\x1b[2K 50%|███  | 3/6 "):
        reading, table = read_lines([outer + raw + "\n"] * 3, "log")
        assert len(table.line) == 3, outer
        assert (table.column("running") == 3).all()
        assert (table.column("throughput") == 300.12).all() == decode
        assert not reading.mangled


def test_every_whole_line_of_the_real_samples_is_read():
    if not SAMPLES.is_file():
        pytest.skip("the shared folder is not beside this checkout")
    reading, table = read_log(SAMPLES)
    lines = enumerate(SAMPLES.read_text().splitlines(), 1)
    batches = [n for n, text in lines if "batch" in text and text[0] == "["]
    assert reading.mangled == [30, 31]
    assert sorted([*table.line.tolist(), *reading.mangled]) == batches
    assert reading.statuses == {"200": 3, "cut off": 1}
    assert reading.capacity["max_running_requests"] == 4096
    found = log_stats(reading, table)
    assert (found.convention, found.drafts) == (NEW, 6)
    assert found.idle_lines == 5


def log(*rows, start=1):
    """(second, tags, running, queue, accept len, accept rate, throughput) → lines."""
    return [
        AT.format(s + start, tags)
        + f"Decode batch, #running-req: {r}, #token: 1, token usage: 0.1, accept len: {a:.2f}, "
        f"accept rate: {p:.2f}, cuda graph: True, gen throughput (token/s): {g:.2f}, "
        f"#queue-req: {q}\n"
        for s, tags, r, q, a, p, g in rows
    ]


def prefill(second, running):
    text = PREFILL["0.5.23"].replace("#running-req: 3", f"#running-req: {running}")
    return AT.format(second, "") + text + "\n"


def test_a_line_counts_once_or_as_long_as_it_took():
    rows = [(0, "", 9, 0, 3.0, 0.67, 50), (1, "", 1, 0, 3.0, 0.67, 100), (2, "", 1, 0, 3.0, 0.67, 100),
            (12, "", 8, 4, 3.5, 0.83, 20)]  # fmt: skip
    found = log_stats(*read_lines(log(*rows), "log"))
    # The first line has no step of its own: it counts as long as others do (median 1 s).
    assert found.running.mean == pytest.approx(19 / 4)
    assert found.running.time_mean == pytest.approx((9 + 1 + 1 + 80) / 13)
    assert (found.running.p50, found.running.time_p50) == (1, 8)
    assert (found.queue.p95, found.queue.max) == (4, 4)
    assert found.throughput.lines == 3
    assert found.idle_lines == 1


def test_the_first_line_after_idle_time_is_left_out_of_throughput():
    rows = log((0, "", 1, 0, 3, 0.67, 100), (1, "", 1, 0, 3, 0.67, 101))
    rows += [prefill(30, 0), *log((31, "", 1, 0, 3, 0.67, 3.1), (32, "", 1, 0, 3, 0.67, 99))]
    rows += [prefill(34, 1), *log((35, "", 2, 0, 3, 0.67, 180))]
    found = log_stats(*read_lines(rows, "log"))
    assert found.idle_lines == 2
    assert found.throughput.lines == 3
    assert found.throughput.mean == pytest.approx((101 + 99 + 180) / 3)


def test_ranks_of_one_group_say_the_same_and_groups_are_summed():
    rows = log(
        (0, " DP0 TP0", 2, 1, 3, 0.67, 100), (0, " DP0 TP1", 2, 1, 3, 0.67, 100),
        (0, " DP1 TP2", 3, 0, 3, 0.67, 150), (1, " DP0 TP0", 4, 1, 3, 0.67, 200),
        (1, " DP0 TP1", 4, 1, 3, 0.67, 200), (2, " DP1 TP2", 1, 5, 3, 0.67, 50),
    )  # fmt: skip
    found = log_stats(*read_lines(rows, "log"))
    assert (found.decode, found.repeated) == (4, 2)
    assert found.running.max == 4 + 3
    assert found.queue.max == 1 + 5
    assert found.throughput.max == 350


@pytest.mark.parametrize(
    ("lengths", "rates", "drafts", "expected"),
    [
        ([2.17, 2.94, 3.12], [0.54, 0.735, 0.78], None, (OLD, 4)),
        ([2.99, 3.10, 2.17], [0.66, 0.70, 0.39], None, (NEW, 4)),
        ([4.22, 4.25], [0.65, 0.65], None, (NEW, 6)),
        ([1.0], [0.25], None, (OLD, 4)),
        ([2.99], [0.66], 4, (NEW, 4)),
        ([2.0, 3.0], [0.9, 0.1], None, (None, None)),
    ],
)
def test_both_meanings_of_accept_rate_are_told_apart(lengths, rates, drafts, expected):
    assert convention_of(np.array(lengths), np.array(rates), drafts) == expected


@given(
    st.integers(2, 9),
    st.lists(st.floats(1.05, 8.9), min_size=12, max_size=40),
    st.sampled_from([OLD, NEW]),
)
def test_a_log_of_either_convention_is_named(n, raw, name):
    lengths = np.array([round(min(v, n), 2) for v in raw])
    rates = lengths / n if name == OLD else (lengths - 1) / (n - 1)
    found = convention_of(lengths, np.round(rates, 2), n)
    assert found in ((name, n), (None, n))
    if np.abs(lengths / n - (lengths - 1) / (n - 1)).mean() > 0.05:
        assert found == (name, n)


def test_table_20_is_reproduced_in_shape(tmp_path):
    lengths = [2.9, 3.1, 3.2, 3.6]
    rows = log(*((n, "", 1 + n, 0, a, a / 4, 250) for n, a in enumerate(lengths)))
    (tmp_path / "hat.log").write_text("".join(rows))
    words = ["serve", "logs", "--stats", "hat.log", "-C", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "2.50/2/4" in done.stdout
    assert "3.20/3.10/3.60" in done.stdout
    assert "0.5.4 to 0.5.10" in done.stdout
    told = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(told.stdout)["logs"][0]["rate_new"] == pytest.approx((3.2 - 1) / 3, abs=1e-3)


OTHERS = [
    "[2026-07-30 02:35:01] The server is fired up and ready to roll!\n",
    "[2026-07-30 02:35:01 TP0] max_total_num_tokens=100, chunked_prefill_size=8, max_running_requests=48, context_len=9\n",
    "[2026-07-30 02:35:01] server_args=ServerArgs(model_path='m', speculative_num_draft_tokens=4, port=1)\n",
    "[2026-07-30 02:35:09 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: 10, #new_token_ratio: 0.1 -> 0.2\n",
    "[2026-07-30 02:35:09] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n",
    '[2026-07-30 02:35:09] INFO:     192.0.2.1:1 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error\n',
    'INFO:     192.0.2.1:1 - "GET /health HTTP/1.1" 200 OK\n',
    "Traceback (most recent call last):\n",
    "\n",
]  # fmt: skip


def test_other_lines_are_counted_by_what_they_say():
    found = log_stats(*read_lines([*OTHERS, *log((0, "", 1, 0, 1.0, 0.0, 9.0))], "log"))
    assert (found.ready, found.retractions, found.retracted, found.health_failures) == (1, 1, 3, 1)
    assert found.statuses == {"200": 1, "500": 1}
    assert found.server["speculative_num_draft_tokens"] == "4"
    assert found.foreign == 1
    said = " ".join(found.warnings)
    assert "drafts nothing" in said
    assert "48" in said
    assert "cache was full" in said


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t: t[:100],
        lambda t: t.replace("accept len: 3.00", "accept len: 3.0.0"),
        lambda t: t.rstrip("\n") + t,
        lambda t: t[:60] + "[2026-07-30 02:35:01 TP1] Load weight end.\n",
        lambda t: t.replace("#queue-req: 0", "#queue"),
        lambda t: t.replace("#running-req: 1, ", ""),
    ],
    ids=["cut", "number", "two in one", "interleaved", "end", "a field gone"],
)
def test_a_mangled_line_is_counted_and_never_fatal(spoil):
    whole = log((0, "", 1, 0, 3, 0.67, 100), (1, "", 2, 0, 3, 0.67, 100))
    bad = spoil(log((2, "", 1, 0, 3, 0.67, 100))[0]).rstrip("\n") + "\n"
    reading, table = read_lines([*whole, bad, *whole], "log")
    assert len(table.line) == 4
    assert reading.mangled == [3]


@given(st.lists(st.text(max_size=80), max_size=8), st.integers(0, 160))
def test_no_text_is_fatal(texts, cut):
    whole = log((0, "", 1, 0, 3, 0.67, 100))
    lines = [*whole, *(t + "\n" for t in texts), whole[0][:cut] + "\n", *whole]
    reading, table = read_lines(lines, "log")
    assert len(table.line) >= 2
    log_stats(reading, table)


def test_a_clock_that_jumps_back_weighs_nothing_and_is_said():
    line = (0, 3, 0.67, 100)
    rows = log((20, "", 1, *line), (21, "", 1, *line), (3, "", 5, *line))
    found = log_stats(*read_lines(rows, "log"))
    assert found.backwards == 1
    assert found.running.time_mean == 1
    assert "went back" in " ".join(found.warnings)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("127.0.0.1 - - [29/Nov/2026] GET / 200\n" * 9, "no batch line"),
        ("INFO 11-29 [loggers.py:1] Engine 000: Avg generation throughput: 1.2 tokens/s\n", "vLLM"),
        ("builtin:0123 listens on port 41001\n", "this program's own server; --metrics"),
        ("2026-11-30T10:00:00 1 answered in 12 ms\n", "this program's own server; --metrics"),
    ],
)
def test_a_log_of_another_program_is_a_clear_error(tmp_path, text, says):
    (tmp_path / "x.log").write_text(text)
    done = CliRunner().invoke(app, ["serve", "logs", "--stats", "x.log", "-C", str(tmp_path)])
    assert done.exit_code != 0
    with pytest.raises(BadFile) as raised:
        read_log(tmp_path / "x.log")
    assert says in (raised.value.hint or "")


PAGE = """# HELP sglang:generation_tokens_total tokens
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{{model_name="a",tp_rank="0"}} {tokens}
sglang:spec_verify_calls_total{{model_name="a"}} {passes}
sglang:time_to_first_token_seconds_bucket{{le="0.1"}} 4
sglang:num_running_reqs{{dp_rank="0"}} 2.0
sglang:num_running_reqs{{dp_rank="1"}} 3.0
"""


def test_accept_length_between_two_scrapes_counts_every_token_once():
    first, then = PAGE.format(tokens=1000, passes=500), PAGE.format(tokens=4000, passes=1500)
    found = metrics_stats("page", then, first, 10.0)
    assert (found.accept_len, found.generated, found.passes) == (3.0, 3000, 1000)
    assert found.gauges["sglang:num_running_reqs"] == 5.0
    assert "sglang:time_to_first_token_seconds_bucket" not in totals(then)
    # A restart in between: the counter is smaller than it was.
    assert metrics_stats("page", first, then).accept_len == 2.0


def test_vllms_counters_are_read_as_well():
    page = (
        "vllm:spec_decode_num_drafts_total 100\nvllm:spec_decode_num_accepted_tokens_total 210\n"
        "vllm:spec_decode_num_draft_tokens_total 300\nvllm:generation_tokens_total 320\n"
    )
    found = metrics_stats("page", page)
    assert (found.accept_len, found.accept_rate) == (3.1, 0.7)
    with pytest.raises(BadFile, match="holds no metrics"):
        metrics_stats("page", "go_goroutines 4\n")


def test_spreads_of_nothing_and_of_equal_weights():
    assert spread(np.array([np.nan]), None) is None
    found = spread(np.arange(1.0, 101.0), np.ones(100))
    assert (found.p50, found.time_p50, found.p95, found.time_p95) == (50, 50, 95, 95)


def test_lines_that_change_their_shape_are_read_as_one_by_one():
    """Blocks of one shape go a shorter way: what it gives is what each line alone gives."""
    kinds = [*DECODE.values(), *PREFILL.values()]
    usual, other = DECODE["0.5.23 Qwen3.6"], 'INFO:     192.0.2.1:1 - "GET /health HTTP/1.1" 200 OK'
    texts = [usual] * 500 + [PREFILL["0.5.23"], other] * 300 + kinds * 20 + [usual[:60], "7"] * 3
    texts += [usual.replace("300.12", "0300.12"), usual + " " + PREFILL["0.5.23"], other] * 2
    lines = [AT.format(n % 60, TAGS[n // 700 % 3]) + t + "\n" for n, t in enumerate(texts)]
    reading, table = read_lines(lines, "log")
    alone = [read_line(line.rstrip("\n")) for line in lines]
    rows = [(n, a) for n, a in enumerate(alone, 1) if a.values is not None]
    assert table.line.tolist() == [n for n, _ in rows]
    for name in ("running", "queue", "accept_len", "throughput", "input_throughput"):
        wanted = np.array([a.values.get(name, np.nan) for _, a in rows])
        np.testing.assert_array_equal(table.column(name), wanted)
    ranks = list(reading.ranks)
    assert [ranks[r] for r in table.rank] == [a.rank for _, a in rows]
    assert reading.mangled == [n for n, a in enumerate(alone, 1) if a.kind == "mangled"]
    assert reading.statuses == {"200": texts.count(other)}
    assert reading.lines == len(lines)
