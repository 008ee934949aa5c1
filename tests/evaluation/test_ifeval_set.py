"""`ifeval` as an evalset: imported, scored on published answers, gated."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import findings, load_evalset
from harness_cli.evaluation.imports.bring_in import bring_in
from harness_cli.evaluation.imports.ifeval import read_ifeval
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.records.gates import Gate
from harness_cli.release.candidate import evidence_of
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gates.regression import check

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "ifeval"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the shared folder is not beside this checkout"
)
ROWS = [
    {
        "key": 7,
        "prompt": "Say hi without a comma, twice.",
        "instruction_id_list": ["punctuation:no_comma", "combination:two_responses"],
        "kwargs": [{}, {}],
    },
    {
        "key": 9,
        "prompt": "Use the letter # four times.",
        "instruction_id_list": ["keywords:letter_frequency"],
        "kwargs": [{"letter": "#", "let_frequency": 1, "let_relation": "at least"}],
    },
]


def import_ifeval(project, where):
    return bring_in(project, "ifeval", where, ImportOptions()).evalset.header


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
@needs_shared
def test_the_published_answers_score_as_the_official_evaluator_scored_them(make_project):
    project = make_project()
    header = import_ifeval(project, SHARED)
    assert "the 541 official prompts" in header.provenance
    assert header.splits == {"test": 541}
    assert findings(project, "ifeval") == []
    answers = SHARED / "input_response_data_gpt4_20231107_145030.jsonl"
    outcome = asyncio.run(evaluate(project, EvalOptions(evalset="ifeval", responses=answers)))
    official = json.loads((SHARED / "official_evaluator_seed0_gpt4.json").read_text())
    results = {int(r.item_id.removeprefix("ifeval-")): r for r in outcome.run.results()}
    for kind, pick in (("strict", lambda a: a.passed), ("loose", lambda a: a.score == 1.0)):
        for key, *expected in official[kind]:
            assert [pick(a) for a in results[key].assertions] == expected, key
    assert results[2785].state == "errored"
    assert outcome.report.counts == {
        "passed": 417, "failed": 123, "unscored": 0, "errored": 1, "missing": 0,
    }  # fmt: skip
    found = {m.metric: m for m in outcome.report.metrics}
    strict, loose = (flatten(official[kind]) for kind in ("strict", "loose"))
    assert found["instruction_strict"].mean == pytest.approx(sum(strict) / len(strict))
    assert found["instruction_loose"].mean == pytest.approx(sum(loose) / len(loose))
    assert found["prompt_strict"].mean == pytest.approx(417 / 540)
    assert found["prompt_loose"].mean == pytest.approx(431 / 540)
    assert all(m.interval.low < m.mean < m.interval.high for m in outcome.report.metrics[:4])

    gate = Gate(name="general", kind="capability", evalset="ifeval", metric="passed", floor=0.7)
    evidence = evidence_of(outcome.run)
    passed = check(gate, Facts(runs={"general": evidence}))
    assert passed.outcome == "PASS", passed.summary
    higher = msgspec.structs.replace(gate, floor=0.8)
    assert check(higher, Facts(runs={"general": evidence})).outcome == "FAIL"


def flatten(rows):
    return [result for _, *results in rows for result in results]


def test_a_bare_policy_runs_the_imported_set(make_project, tmp_path):
    project = make_project()
    import_ifeval(project, write_rows(tmp_path / "input_data.jsonl", ROWS))
    answers = tmp_path / "answers.jsonl"
    write_rows(
        answers, [{"id": "ifeval-7", "reply": "hi ****** hello"}, {"id": "ifeval-9", "reply": "x"}]
    )
    outcome = asyncio.run(evaluate(project, EvalOptions(evalset="ifeval", responses=answers)))
    found = {m.metric: m.mean for m in outcome.report.metrics}
    assert found["prompt_strict"] == 0.5
    assert found["instruction_strict"] == pytest.approx(2 / 3), "pooled over instructions"


def test_two_runs_are_compared_by_the_numbers_of_their_reports(make_project, tmp_path):
    project = make_project()
    import_ifeval(project, write_rows(tmp_path / "input_data.jsonl", ROWS))
    runs = []
    for said in ("hi ****** hello", "hi, you ****** hello"):
        rows = [{"id": "ifeval-7", "reply": said}, {"id": "ifeval-9", "reply": "y"}]
        answers = write_rows(tmp_path / "answers.jsonl", rows)
        asked = EvalOptions(evalset="ifeval", responses=answers)
        runs.append(asyncio.run(evaluate(project, asked)))
    found = compare(*(r.run.results() for r in runs))
    delta = next(m for m in found.metrics if m.metric == "instruction_strict")
    means = [
        next(m.mean for m in r.report.metrics if m.metric == "instruction_strict") for r in runs
    ]
    assert [delta.mean_a, delta.mean_b] == pytest.approx(means)
    assert means == pytest.approx([1.0, 2 / 3])
    assert delta.paired.mean == pytest.approx(-1 / 3)


def test_a_letter_that_is_none_becomes_what_the_seeded_evaluator_draws(tmp_path):
    imported = read_ifeval(write_rows(tmp_path / "prompts.jsonl", ROWS))
    value = imported.items[1].assert_[0].value
    assert (value["letter"], value["loosely"]) == ("y", {"letter": "W"})
    assert "NOT the official prompts" in imported.header.provenance


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"key": 7}, "prompts.jsonl:2: the key `7` stands twice"),
        ({"kwargs": []}, "prompts.jsonl:2: 1 instructions, 0 kwargs"),
        ({"instruction_id_list": ["punctuation:no_coma"]}, "did you mean `punctuation:no_comma`"),
        ({"prompt": 5}, "prompts.jsonl:2"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(tmp_path, change, said):
    path = write_rows(tmp_path / "prompts.jsonl", [ROWS[0], {**ROWS[1], **change}])
    with pytest.raises(BadFile, match=said):
        read_ifeval(path)


def test_where_no_prompts_are_the_error_says_what_to_name(tmp_path):
    with pytest.raises(UsageError, match=r"no `input_data.jsonl`"):
        read_ifeval(tmp_path)
    with pytest.raises(UsageError):
        read_ifeval("no_such_package_here")


def test_an_installed_package_that_holds_the_prompts_is_found(tmp_path, monkeypatch):
    (tmp_path / "prompt_holder" / "data").mkdir(parents=True)
    write_rows(tmp_path / "prompt_holder" / "data" / "input_data.jsonl", ROWS)
    (tmp_path / "prompt_holder" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert len(read_ifeval("prompt_holder").items) == 2


@pytest.mark.parametrize("line", ['{"id": "a"}', '{"reply": "x"}', '{"prompt": "p"}'])
def test_an_answer_without_its_item_is_refused(make_project, tmp_path, line):
    project = make_project()
    file = tmp_path / "answers.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(BadFile, match="neither `id` and `reply`"):
        asyncio.run(evaluate(project, EvalOptions(evalset="bench", responses=file)))


def test_before_the_import_the_verb_says_how_to_get_the_prompts(make_project):
    with pytest.raises(UnknownName, match="`ifeval` is not imported yet") as caught:
        asyncio.run(evaluate(make_project(), EvalOptions(evalset="ifeval")))
    assert "harness evalset import ifeval WHERE" in caught.value.hint


def test_the_imported_set_loads_with_its_digest(make_project, tmp_path):
    project = make_project()
    import_ifeval(project, write_rows(tmp_path / "input_data.jsonl", ROWS))
    assert len(load_evalset(project, "ifeval").items) == 2
