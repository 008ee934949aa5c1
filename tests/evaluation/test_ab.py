"""`harness ab`: buckets that stay, tables refused with row and fix, uplift that is right."""

import csv
import hashlib
import io
import json
from time import process_time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.evaluation.ab.assigning import assigned
from harness_cli.evaluation.ab.metric import parse_metric
from harness_cli.evaluation.ab.report import ab_report
from harness_cli.evaluation.ab.users import read_users
from harness_cli.evaluation.shares import parse_arms
from harness_cli.main import app


def harness(*words, **more):
    done = CliRunner().invoke(app, [str(w) for w in words], **more)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def synthetic(users, lift=1.1, seed=0, share=0.1):
    """Generated users, no data of anyone."""
    rng = np.random.default_rng(seed)
    arm = np.where(rng.random(users) < share, "harness", "react")
    buys = rng.random(users) < 0.3
    more = np.where(arm == "harness", lift, 1.0)
    return pd.DataFrame(
        {
            "user_id": [f"u{n:07d}" for n in range(users)],
            "arm": arm,
            "gmv": np.round(np.where(buys, rng.lognormal(3, 0.8, users) * more, 0.0), 2),
            "orders": np.where(buys, 1 + rng.poisson(0.3, users), 0),
            "turns": 1 + rng.poisson(0.8, users),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# assign


def test_assignment_is_the_hash_in_the_range_of_its_arm_and_goes_through_streams(here):
    (here / "u.csv").write_text('\ufeffuser_id,note\n007,"a, b"\n7,x\n用户,y\n', encoding="utf-8")
    words = ("--salt", "exp-1", "--arm", "control=0.5", "--arm", "new=30%")
    shown = harness("ab", "assign", "u.csv", *words)
    rows = list(csv.reader(io.StringIO(shown.stdout)))
    assert rows[0] == ["user_id", "note", "arm", "bucket"]
    assert rows[1][:2] == ["007", "a, b"]
    for user, _, arm, place in rows[1:]:
        value = int(hashlib.sha256(f"exp-1{user}".encode()).hexdigest()[:13], 16) / 16**13
        assert float(place) == pytest.approx(value, abs=1e-8)
        assert arm == ("control" if value < 0.5 else "new" if value < 0.8 else "")
    piped = harness("ab", "assign", "-", *words, input="user_id,note\n7,x\n")
    assert piped.stdout.splitlines()[1] == shown.stdout.splitlines()[2]
    done = harness("ab", "assign", "u.csv", *words, "-o", "out/arms.csv", "--json")
    assert json.loads(done.stdout)["users"] == 3
    assert (here / "out/arms.csv").read_text() == shown.stdout


def test_shares_are_met_and_another_salt_is_another_experiment():
    lines = ["id\n", *(f"{n}\n" for n in range(20_000))]
    arms = {}
    for salt in ("a", "b"):
        made = assigned(lines, name="x", user="id", salt=salt, shares={"control": 0.9, "new": 0.1})
        next(made)
        arms[salt] = [arm for _, arm in made]
        assert arms[salt].count("new") == pytest.approx(2000, abs=130)
    both = sum(x == y == "new" for x, y in zip(*arms.values(), strict=True))
    assert both == pytest.approx(200, abs=45)  # independent: 1 % of the users


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("name\nx\n", "no column in u.csv named `user_id`"),
        ("user_id,arm\nx,a\n", "has a column `arm` already"),
        ("user_id,n\nx\n", "u.csv:2: 1 cells, the header has 2"),
        ("user_id,n\nx,1\n ,2\n", "u.csv:3: no user id"),
        ('user_id\n"x\n', "u.csv:2: no CSV"),
    ],
)
def test_rows_that_are_none_stop_with_their_line_and_leave_no_file(here, text, message):
    (here / "u.csv").write_text(text)
    with pytest.raises(UsageError) as caught:
        harness("ab", "assign", "u.csv", "--salt", "s", "--arm", "a=1", "-o", "out.csv")
    assert message in str(caught.value)
    assert not (here / "out.csv").exists()


def test_users_that_are_no_utf8_are_refused(here):
    (here / "u.csv").write_bytes(b"user_id\n\xff\xfe\n")
    with pytest.raises(BadFile, match="no UTF-8"):
        harness("ab", "assign", "u.csv", "--salt", "s", "--arm", "a=1", "-o", "out.csv")
    with pytest.raises(BadFile, match="no file"):
        harness("ab", "assign", "none.csv", "--salt", "s", "--arm", "a=1")
    with pytest.raises(UsageError, match="need a file"):
        harness("ab", "assign", "u.csv", "--salt", "s", "--arm", "a=1", "--json")
    with pytest.raises(UsageError, match="no arm is named"):
        harness("ab", "assign", "u.csv", "--salt", "s")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "no share"),
        (["=0.5"], "no share"),
        (["a=x"], "`x` is no share above 0"),
        (["a=0"], "`0` is no share above 0"),
        (["a=nan"], "`nan` is no share"),
        (["a=0.5", "a=0.5"], "named twice"),
        (["a=0.7", "b=40%"], "sum to 1.1"),
    ],
)
def test_arms_that_cannot_be_meant_are_refused(words, message):
    with pytest.raises(UsageError) as caught:
        parse_arms(words)
    assert message in str(caught.value)


def test_shares_may_be_in_percent_and_names_may_hold_equals_signs():
    assert parse_arms(["a=b=25%", "c=0.75"]) == {"a=b": 0.25, "c": 0.75}


# metrics


def test_metrics_are_columns_ratios_and_shares():
    columns = ["gmv", "orders", "visits", "a/b"]
    assert parse_metric("gmv", columns).kind == "mean"
    assert parse_metric("a/b", columns).column == "a/b"
    ratio = parse_metric("orders / visits", columns)
    assert (ratio.kind, ratio.columns) == ("ratio", ("orders", "visits"))
    for text, values in (
        ("visits>1", [0, 0, 1]),
        ("visits>=1", [0, 1, 1]),
        ("visits=1", [0, 1, 0]),
    ):
        rows = parse_metric(text, columns).rows({"visits": np.array([0.0, 1.0, 2.0])})
        assert rows.tolist() == [[v, 1.0] for v in values]
    for wrong in ("gmw", "gmv/visit", "visit>1"):
        with pytest.raises(UnknownName, match="no column named"):
            parse_metric(wrong, columns)
    with pytest.raises(UsageError, match="is no number"):
        parse_metric("visits>1.2.3", columns)


# report


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_report_says_sizes_ratio_uplift_and_interval(here, ending):
    frame = synthetic(40_000)
    path = here / f"users.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, index=False)
    words = ("--arm", "react=0.9", "--arm", "harness=0.1", "--metric", "gmv", "--metric", "orders",
             "--metric", "turns>1", "--metric", "gmv/orders")  # fmt: skip
    found = json.loads(harness("ab", "report", path, *words, "--json").stdout)
    assert found["control"] == "react"
    assert found["arms"] == frame["arm"].value_counts().to_dict()
    assert not found["sample_ratio"]["mismatch"]
    means = frame.groupby("arm")["gmv"].mean()
    gmv = found["metrics"][0]
    assert gmv["uplift"]["uplift"] == pytest.approx(means["harness"] / means["react"] - 1)
    assert gmv["uplift"]["interval"]["low"] < 0.1 < gmv["uplift"]["interval"]["high"]
    share = (frame["turns"] > 1).groupby(frame["arm"]).mean()
    assert found["metrics"][2]["uplift"]["treatment"] == pytest.approx(share["harness"])
    total = frame.groupby("arm")[["gmv", "orders"]].sum()
    ratio = total["gmv"] / total["orders"]
    assert found["metrics"][3]["uplift"]["control"] == pytest.approx(ratio["react"])
    shown = harness("ab", "report", path, *words)
    assert "sample ratio as it should be" in shown.stdout
    assert "4 intervals, each 95 % for itself" in shown.stdout


def test_both_files_and_every_order_of_rows_give_one_report(here):
    frame = synthetic(3000)
    frame.to_csv(here / "a.csv", index=False)
    frame.iloc[::-1].to_parquet(here / "b.parquet", index=False)
    one, other = (
        ab_report(
            read_users(here / name, user="user_id", arm="arm", control="react"), resamples=500
        )
        for name in ("a.csv", "b.parquet")
    )
    assert [m.metric for m in one.metrics] == ["gmv", "orders", "turns"]
    for a, b in zip(one.metrics, other.metrics, strict=True):
        assert a.uplift.uplift == pytest.approx(b.uplift.uplift)
        assert a.uplift.interval.low == pytest.approx(b.uplift.interval.low, abs=1e-9)


def test_several_treatments_are_each_held_against_the_control(here):
    frame = synthetic(900)
    frame["arm"] = ["control", "b", "a"] * 300
    frame.to_csv(here / "u.csv", index=False)
    found = json.loads(harness("ab", "report", "u.csv", "--metric", "orders", "--json").stdout)
    assert [(m["metric"], m["arm"]) for m in found["metrics"]] == [("orders", "a"), ("orders", "b")]
    assert found["sample_ratio"] is None
    assert "sample ratio not checked" in harness("ab", "report", "u.csv").stdout


def test_users_that_were_lost_in_one_arm_are_a_mismatch(here):
    frame = synthetic(50_000, share=0.5)
    gone = (frame["arm"] == "harness") & (frame.index % 20 == 0)
    frame[~gone].to_csv(here / "u.csv", index=False)
    shown = harness("ab", "report", "u.csv", "--arm", "react=0.5", "--arm", "harness=0.5")
    assert "SAMPLE RATIO MISMATCH" in shown.stdout
    assert "warning: sample ratio mismatch" in shown.stderr
    assert shown.exit_code == 0


def test_a_salt_tells_who_stands_in_another_arm_than_assigned(here):
    (here / "ids.csv").write_text("user_id\n" + "".join(f"{n:03}\n" for n in range(300)))
    arms = ("--arm", "control=0.5", "--arm", "new=0.5")
    harness("ab", "assign", "ids.csv", "--salt", "s", *arms, "-o", "arms.csv", "-q")
    frame = pd.read_csv(here / "arms.csv", dtype={"user_id": str})
    frame["gmv"] = 1.0
    frame.loc[:4, "arm"] = frame.loc[:4, "arm"].map({"control": "new", "new": "control"})
    frame.to_csv(here / "u.csv", index=False)
    words = ("ab", "report", "u.csv", *arms, "--metric", "gmv", "--json")
    assert json.loads(harness(*words, "--salt", "s").stdout)["misplaced"] == 5
    assert json.loads(harness(*words).stdout)["misplaced"] is None
    with pytest.raises(UsageError, match="needs the shares"):
        harness("ab", "report", "u.csv", "--salt", "s")


HEAD = "user_id,arm,gmv,orders\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,x,1,1\nb,y,-2.5,1\n", "row 3: `gmv` is -2.5: a user's total is 0 or more"),
        ("a,x,1,1\nb,y,NaN,1\n", "row 3: `gmv` is missing: write 0"),
        ("a,x,,1\nb,y,1,1\n", "row 2: `gmv` is missing: write 0"),
        ("a,x,1,1\nb,y,2,1\nc,y,many,1\n", "row 4: `gmv` is `many`, no number"),
        ("a,x,inf,1\nb,y,1,1\n", "row 2: `gmv` is infinite"),
        ("a,x,1,1\nb,y,1,1\na,x,1,1\n", "rows 2 and 4: user `a` stands twice: one row a user"),
        ("a,x,1,1\nb,y,1,1\na,y,1,1\n", "rows 2 and 4: user `a` is in the arms `x` and `y`"),
        ("a,x,1,1\n,y,1,1\n", "row 3: no user id"),
        ("a,x,1,1\nb, ,1,1\n", "row 3: no arm"),
        ("a,x,1,1\nb,x,1,1\n", "all users are in the arm `x`: an uplift needs two"),
        ("a,x,1,1\nb,y,1,1\n", "which of `x`, `y` is the control?"),
        ("", "no user"),
        ("a,x,1,1,9\n", "rows have more cells than the header"),
        ("a,x,1,1\nb,y,1,1,9\n", "no table"),
        ("a,x,1,1\nb,y\n", "row 3: `gmv` is missing"),
    ],
)
def test_tables_that_cannot_be_meant_are_refused_with_row_and_fix(here, rows, message):
    (here / "u.csv").write_text(HEAD + rows)
    with pytest.raises(UsageError) as caught:
        harness("ab", "report", "u.csv")
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_faults_are_told_up_to_twenty(here):
    rows = "".join(f"u{n},{'xy'[n % 2]},-1,1\n" for n in range(40))
    (here / "u.csv").write_text(HEAD + rows)
    with pytest.raises(BadFile) as caught:
        harness("ab", "report", "u.csv", "--control", "x")
    assert str(caught.value).count("`gmv` is -1") == 20
    assert str(caught.value).endswith("… and more")


def test_other_bad_questions_have_their_answers(here):
    (here / "u.csv").write_text(HEAD + "a,x,0,1\nb,y,1,1\n")
    for words, message in (
        (("--user", "uid"), "no column in u.csv named `uid`"),
        (("--control", "z"), "no arm named `z`"),
        (("--control", "x", "--metric", "gmvv"), "no column named `gmvv`"),
        (("--arm", "x=0.5", "--arm", "z=0.5"), "the users are in the arms `x`, `y`, shares are"),
        (("--control", "x", "--metric", "orders/gmv"), "the control arm has nothing to divide by"),
    ):
        with pytest.raises(UsageError) as caught:
            harness("ab", "report", "u.csv", *words)
        assert message in str(caught.value)
    (here / "u.txt").write_text("x")
    with pytest.raises(UsageError, match=r"\.csv or \.parquet"):
        harness("ab", "report", "u.txt")
    (here / "p.parquet").write_bytes(b"no parquet")
    with pytest.raises(BadFile, match="no table"):
        harness("ab", "report", "p.parquet")
    found = json.loads(harness("ab", "report", "u.csv", "--control", "x", "--json").stdout)
    assert found["metrics"][0]["reading"] == "undefined"  # the control sold nothing


def test_a_handful_of_users_decides_nothing(here):
    (here / "u.csv").write_text("\ufeff" + HEAD + "a,x,1,1\nb,y,2,1\n", encoding="utf-8")
    (found, _) = json.loads(harness("ab", "report", "u.csv", "--control", "x", "--json").stdout)[
        "metrics"
    ]
    assert (found["uplift"]["uplift"], found["uplift"]["interval"]) == (1.0, None)
    assert found["reading"] == "undefined"
    rows = "".join(f"u{n},{'xy'[n % 2]},{1 + n % 2},1\n" for n in range(198))
    (here / "u.csv").write_text(HEAD + rows)
    words = ("ab", "report", "u.csv", "--control", "x", "--metric", "gmv", "--json")
    assert json.loads(harness(*words).stdout)["metrics"][0]["reading"] == "too few"
    (here / "u.csv").write_text(HEAD + rows + "u198,x,1,1\nu199,y,2,1\n")
    assert json.loads(harness(*words).stdout)["metrics"][0]["reading"] == "up"


def test_a_column_that_stands_twice_is_refused(here):
    (here / "u.csv").write_text("user_id,arm,gmv,gmv\na,x,1,2\nb,y,1,2\n")
    with pytest.raises(BadFile, match="the column `gmv` stands twice"):
        harness("ab", "report", "u.csv", "--control", "x")


def test_ids_are_texts_and_NA_is_a_name(here):
    (here / "u.csv").write_text(HEAD + "007,NA,1,1\n7,b,2,1\nNA,b,3,1\nnan,NA,1,1\n")
    users = read_users(here / "u.csv", user="user_id", arm="arm", control="NA")
    assert users.ids == ["007", "7", "NA", "nan"]
    assert users.sizes() == {"NA": 2, "b": 2}
    frame = pd.DataFrame({"user_id": [7, 8], "arm": ["x", "y"], "gmv": [1.0, 2.0]})
    frame.to_parquet(here / "u.parquet", index=False)
    assert read_users(here / "u.parquet", user="user_id", arm="arm", control="x").ids == ["7", "8"]
    frame["arm"] = ["x", None]
    frame.to_parquet(here / "gap.parquet", index=False)
    with pytest.raises(BadFile, match=r"row 2: no arm in `arm`"):
        read_users(here / "gap.parquet", user="user_id", arm="arm", control="x")


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5, unique=True))
def test_any_user_id_has_an_arm_when_shares_are_whole(users):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([["id"], *[[u] for u in users]])
    lines = io.StringIO(out.getvalue(), newline="")
    shares = {"a": 0.1, "b": 0.2, "c": 0.7}
    try:
        made = list(assigned(lines, name="x", user="id", salt="s", shares=shares))
    except BadFile:  # blanks alone are no id, and NUL is no CSV
        assert any(not user.strip() or "\0" in user for user in users)
        return
    assert all(arm in shares for _, arm in made[1:])


@pytest.mark.slow
def test_a_million_users_take_seconds(here):
    """Generated users; CPU seconds of the whole report, reading included (docs/ab.md)."""
    synthetic(1_000_000).to_parquet(here / "u.parquet", index=False)
    start = process_time()
    done = harness("ab", "report", "u.parquet", "--control", "react", "--metric", "gmv", "-q")
    assert process_time() - start < 20  # about two on an idle machine
    assert done.exit_code == 0
