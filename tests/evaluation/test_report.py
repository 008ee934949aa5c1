import xml.etree.ElementTree as ET

import msgspec

from harness_cli.evaluation import report as shown
from harness_cli.evaluation.item_tally import Tally
from harness_cli.records.run import EvalsetRef, Interval, MetricSummary, Report, RunConfig
from harness_cli.records.verdict import AssertionResult, Finding, ItemResult

RUN = RunConfig(
    id="20260101-000000-abcd",
    evalset=EvalsetRef(name="qa", split="dev", digest="d", n=8),
    harness_id="0123456789abcdef",
    dirty=True,
    policy="p",
    policy_id="p@1",
    judge="grounded",
    judge_id="grounded@2",
)
REPORT = Report(
    run=RUN,
    status="interrupted",
    counts={"passed": 3, "failed": 2, "unscored": 1, "errored": 1, "missing": 1},
    planned=8,
    metrics=(
        MetricSummary(
            metric="accuracy",
            mean=0.92546,
            interval=Interval(low=0.9, high=0.95, method="Wilson"),
            scored=5,
            of=8,
        ),
        MetricSummary(metric="naturalness", mean=None, scored=0, of=8),
    ),
    categories={"chat": (MetricSummary(metric="accuracy", mean=1.0, scored=2, of=3),)},
    usage={
        "calls": 12,
        "input_tokens": 10,
        "output_tokens": 2,
        "results_without_usage": 0,
        "cost": None,
        "results_without_cost": 7,
    },
    incidents={"hook a|b:deny": 2, "provider retries": 0},
    pass_hat={"1": 0.5, "2": None},
)


def result(item, state, **more):
    return ItemResult(item_id=item, category="chat", state=state, **more)


def test_the_headline_adds_up_to_n_and_says_what_is_missing():
    assert shown.headline(REPORT) == (
        "passed 3 / failed 2 / unscored 1 / errored 1 / missing 1 of 8 (interrupted)"
    )


def test_a_metric_shows_mean_interval_and_n_of_n_and_an_unscored_one_is_no_zero():
    assert shown.metric_rows(REPORT) == [
        ("accuracy", "92.55", "[90.00, 95.00]", "5 of 8"),
        ("naturalness", "–", "–", "0 of 8"),
    ]


def test_unknown_cost_is_said_and_undefined_pass_k_too():
    assert "cost unknown" in shown.usage_line(REPORT)
    none_known = {"calls": 9, "input_tokens": 0, "output_tokens": 0, "results_without_usage": 3}
    report = msgspec.structs.replace(REPORT, usage=none_known)
    assert shown.usage_line(report) == "9 model calls, tokens unknown, cost unknown"
    some = {**none_known, "input_tokens": 40, "output_tokens": 2}
    report = msgspec.structs.replace(REPORT, usage=some)
    assert "40 + 2 tokens + unknown for 3 results" in shown.usage_line(report)
    assert shown.pass_line(REPORT) == "pass^1 50.00, pass^2 undefined"


def test_markdown_is_golden():
    assert shown.markdown(REPORT) == (
        "### qa dev · policy p@1 · harness 0123456789ab (uncommitted) · judge grounded@2 · "
        "run 20260101-000000-abcd\n\n"
        "passed 3 / failed 2 / unscored 1 / errored 1 / missing 1 of 8 (interrupted)\n\n"
        "| metric | mean % | 95 % interval | scored |\n"
        "| --- | --- | --- | --- |\n"
        "| accuracy | 92.55 | [90.00, 95.00] | 5 of 8 |\n"
        "| naturalness | – | – | 0 of 8 |\n\n"
        "| category | metric | mean % | 95 % interval | scored |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| chat | accuracy | 100.00 | – | 2 of 3 |\n\n"
        "12 model calls, 10 + 2 tokens, cost unknown\n\n"
        "pass^1 50.00, pass^2 undefined\n\n"
        "- hook a\\|b:deny: 2\n"
    )


def test_junit_is_xml_whatever_the_replies_hold_and_counts_every_state():
    results = [
        result("a", "passed", wall_s=0.5),
        result(
            "b",
            "failed",
            reply='<b>&\x00\x1b[31m"]]> \ud83d',
            findings=(Finding(kind="wrong_price", detail='says "98"'),),
        ),
        result("c", "errored", error="policy: server: 500", repeat=1),
        result("d", "unscored", error="judge: no <verdict>"),
        result(
            "e", "failed", assertions=(AssertionResult(type="contains", passed=False, reason="r"),)
        ),
    ]
    root = ET.fromstring("".join(shown.junit(REPORT, results)))
    suite = root[0]
    assert suite.attrib == {
        "name": "qa dev",
        "tests": "7",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
    }
    cases = suite.findall("testcase")
    assert [case.attrib["name"] for case in cases] == ["a", "b", "c #1", "d", "e"]
    assert [case[0].tag if len(case) else "" for case in cases] == [
        "",
        "failure",
        "error",
        "skipped",
        "failure",
    ]
    assert cases[1][0].attrib["message"] == 'wrong_price: says "98"'
    assert cases[4][0].attrib["message"] == "contains: r"
    assert cases[0].attrib["time"] == "0.500"


def test_a_mean_is_over_items_so_that_repeats_do_not_count_as_items():
    tally = Tally()
    scores = {"a": [1.0, 1.0], "b": [0.0, 1.0], "c": [0.0, None]}
    for item, values in scores.items():
        rows = [
            result(item, "passed" if v else "failed", repeat=r, scores={"accuracy": v})
            for r, v in enumerate(values)
        ]
        tally.add(rows, repeats=2)
    (summary,) = tally.summaries(("accuracy",), of=6)
    assert summary.mean == (1.0 + 0.5 + 0.0) / 3
    assert (summary.scored, summary.of) == (5, 6)
    assert tally.trials == [(2, 2), (2, 1), (2, 0)]


def test_passed_is_a_metric_where_the_evalset_names_it_and_an_unscored_item_is_outside_of_it():
    tally = Tally()
    for n, state in enumerate(("passed", "failed", "errored", "unscored")):
        tally.add([result(str(n), state)], repeats=1)
    (summary,) = tally.summaries(("passed",), of=4)
    assert (summary.metric, summary.mean, summary.scored, summary.of) == ("passed", 1 / 3, 3, 4)
    assert tally.summaries((), of=4) == ()


def test_a_metric_the_evalset_names_is_shown_even_when_nothing_scored_it():
    assert [m.metric for m in Tally().summaries(("accuracy",), of=4)] == ["accuracy"]
