"""Paired comparison of two runs: pairing, counting, refusing, reading."""

import random

import pytest

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.comparison_text import (
    category_rows,
    listed,
    markdown,
    metric_rows,
    remarks,
)
from harness_cli.evaluation.frames import (
    category_table,
    paired_table,
    read_table,
    results_frame,
    write_table,
)
from harness_cli.records.run import EvalsetRef, RunConfig
from harness_cli.records.verdict import Finding, ItemResult


def result(item, accuracy=1.0, effectiveness=1.0, *, category="product-qa", repeat=0, state=None):
    both = accuracy is not None and effectiveness is not None
    average = (accuracy + effectiveness) / 2 if both else None
    decided = "passed" if accuracy == effectiveness == 1 else "failed"
    return ItemResult(
        item_id=item,
        repeat=repeat,
        category=category,
        state=state or decided,
        scores={"accuracy": accuracy, "effectiveness": effectiveness, "avg": average},
        findings=() if accuracy else (Finding(kind="wrong_price", detail="x"),),
        wall_s=0.5,
    )


def run_config(run="a", **fields):
    evalset = {"name": "qa", "split": "dev", "digest": "d1", "n": 3, "catalogue_digest": "c1"}
    evalset.update({k: fields.pop(k) for k in list(fields) if k in evalset})
    settings = {"harness_id": "h" * 40, "policy": "builtin", "policy_id": "builtin@1",
                "judge": "grounded", "judge_id": "grounded@1", **fields}  # fmt: skip
    return RunConfig(id=run, evalset=EvalsetRef(**evalset), **settings)


def test_pairs_are_made_by_item_and_unmatched_ones_are_listed():
    found = compare(
        [result("x", 0), result("y"), result("z")], [result("w"), result("y"), result("x")]
    )
    assert found.items == 2
    assert (found.only_a, found.only_b) == (("z",), ("w",))
    accuracy = next(m for m in found.metrics if m.metric == "accuracy")
    assert (accuracy.mean_a, accuracy.mean_b, accuracy.paired.mean) == (0.5, 1.0, 0.5)
    assert (accuracy.mcnemar.gained, accuracy.mcnemar.lost) == (1, 0)


def test_repeats_are_averaged_before_pairing():
    a = [result("x", 1, repeat=0), result("x", 0, repeat=1)]
    b = [result("x", 1, repeat=0), result("x", 1, repeat=1)]
    accuracy = next(m for m in compare(a, b).metrics if m.metric == "accuracy")
    assert (accuracy.paired.n, accuracy.paired.mean) == (1, 0.5)
    assert accuracy.mcnemar is None  # ½ is no binary score


def test_fixed_and_broken_cases_carry_scores_and_findings():
    a = [result("x", 0), result("y"), result("z", 1, 0.5)]
    b = [result("x"), result("y", 0), result("z", 1, 0.5)]
    found = compare(a, b)
    assert [c.item_id for c in found.fixed] == ["x"]
    assert found.fixed[0].findings == ("wrong_price",)
    assert [(c.item_id, c.a["accuracy"], c.b["accuracy"]) for c in found.broken] == [
        ("y", 1.0, 0.0)
    ]


def test_unscored_and_errored_items_are_counted_and_bounded():
    a = [result(f"i{n}") for n in range(4)]
    b = [result("i0"), result("i1"), result("i2", None, None, state="unscored"),
         ItemResult(item_id="i3", category="product-qa", state="errored")]  # fmt: skip
    found = compare(a, b)
    accuracy = next(m for m in found.metrics if m.metric == "accuracy")
    assert (accuracy.paired.n, accuracy.of) == (2, 4)
    assert accuracy.paired.mean == 0.0
    assert accuracy.with_missing_as_zero == -0.5
    assert found.b.counts == {"passed": 2, "failed": 0, "unscored": 1, "errored": 1}
    assert [c.item_id for c in found.broken] == ["i2", "i3"]
    assert any("2 of 4 items unscored or errored" in r for r in remarks(found))


def test_categories_are_holm_adjusted_and_small_ones_are_too_few():
    rng = random.Random(0)
    a, b = [], []
    for n in range(40):
        a.append(result(f"big-{n}", 1))
        b.append(result(f"big-{n}", int(n >= 12)))
        a.append(result(f"even-{n}", int(rng.random() < 0.5), category="chat"))
        b.append(result(f"even-{n}", a[-1].scores["accuracy"], category="chat"))
    a += [result(f"few-{n}", 1, category="faq") for n in range(7)]
    b += [result(f"few-{n}", 0, category="faq") for n in range(7)]
    found = compare(a, b)
    read = {(c.category, c.metric): c for c in found.categories}
    assert read["product-qa", "accuracy"].reading == "regression"
    assert read["chat", "accuracy"].reading == "no difference seen"
    few = read["faq", "accuracy"]
    assert (few.reading, few.p_holm) == ("too few", None)
    # Four comparisons of categories with enough items: the smallest p is multiplied by 4.
    big = read["product-qa", "accuracy"]
    assert big.p_holm == pytest.approx(4 * big.p)
    assert any(r.startswith("regressions: product-qa accuracy -30.00") for r in remarks(found))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "other"}, "evalsets differ"),
        ({"split": "test"}, "splits differ"),
        ({"digest": "d2"}, "items of `qa` changed"),
        ({"catalogue_digest": "c2"}, "catalogue changed"),
        ({"judge_id": "grounded@2"}, "judges differ"),
    ],
)
def test_runs_that_do_not_compare_are_refused_unless_forced(change, message):
    a, b = run_config("a"), run_config("b", **change)
    with pytest.raises(UsageError, match=message):
        compare([result("x")], [result("x")], config_a=a, config_b=b)
    forced = compare([result("x")], [result("x")], config_a=a, config_b=b, force=True)
    assert any(message in w for w in forced.warnings)


def test_another_policy_or_repeat_is_a_warning():
    a, b = run_config("a"), run_config("b", policy_id="flash@2", repeat=4)
    found = compare([result("x")], [result("x")], config_a=a, config_b=b)
    assert [w.split(" differ")[0] for w in found.warnings] == ["policies", "repeats"]
    assert (found.a.run, found.b.policy, found.a.evalset) == ("a", "flash@2", "qa/dev")


def test_nothing_in_common_is_refused():
    with pytest.raises(UsageError, match="no item in common"):
        compare([result("x")], [result("y")])


def test_the_power_of_the_comparison_is_told():
    a = [result(f"i{n}", n % 2) for n in range(200)]
    b = [result(f"i{n}", (n + (n % 10 == 0)) % 2) for n in range(200)]
    found = compare(a, b)
    accuracy = next(m for m in found.metrics if m.metric == "accuracy")
    assert accuracy.paired.tie_rate == 0.9
    assert accuracy.detectable.difference == pytest.approx(
        2.8016 * accuracy.paired.sd / 200**0.5, rel=1e-3
    )
    assert any("200 pairs with 90% ties see a true difference of" in r for r in remarks(found))
    assert accuracy.needed < 200


def test_a_run_against_itself_shows_no_difference():
    a = [result(f"i{n}", n % 3 > 0, n % 2) for n in range(50)]
    found = compare(a, a)
    assert all(m.paired.mean == 0 and m.p == 1.0 for m in found.metrics)
    assert not found.fixed
    assert not found.broken


def test_markdown_holds_the_tables_and_escapes_bars():
    a = [result(f"i{n}", 1, category="a|b") for n in range(9)]
    b = [result(f"i{n}", int(n > 2), category="a|b") for n in range(9)]
    text = markdown(compare(a, b, config_a=run_config("a"), config_b=run_config("b")))
    assert "| metric | a % | b % |" in text
    assert "| a\\|b | accuracy |" in text
    assert "broken 3: i0, i1, i2" in text
    assert listed([]) == "none"
    assert listed(["x"] * 10, 2) == "x, x, … 8 more"


def test_rows_are_as_wide_as_their_columns():
    found = compare([result("x", 0)], [result("x")])
    assert {len(row) for row in metric_rows(found)} == {8}
    assert {len(row) for row in category_rows(found)} == {8}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_results_go_to_a_table_and_back(tmp_path, ending):
    frame = results_frame([result("x", 0), result("y", None, None, state="unscored")])
    path = tmp_path / f"results.{ending}"
    write_table(frame, path)
    again = read_table(path)
    assert list(again["item_id"]) == ["x", "y"]
    assert list(again["findings"].fillna("")) == ["wrong_price", "wrong_price"]
    assert again["score.accuracy"].isna().tolist() == [False, True]


def test_tables_average_repeats_within_an_item():
    rows = [result("x", 1, repeat=0), result("x", 0, repeat=1), result("y", 1)]
    table = category_table(results_frame(rows), ["accuracy", "unknown"])
    assert table.to_dict("records")[0]["mean"] == 0.75
    assert table.to_dict("records")[0]["scored"] == 2
    paired_rows = paired_table(compare(rows, rows))
    assert set(paired_rows["category"]) == {"all", "product-qa"}


def test_files_that_are_no_table_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"\.csv or \.parquet"):
        write_table(results_frame([result("x")]), tmp_path / "x.xlsx")
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    with pytest.raises(BadFile, match="no table"):
        read_table(tmp_path / "broken.parquet")
    with pytest.raises(BadFile, match="no file"):
        read_table(tmp_path / "absent.csv")
