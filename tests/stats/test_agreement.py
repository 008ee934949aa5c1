"""κ and α: textbook values, laws, and public data with human annotators."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.agreement import (
    agreement,
    cohen_kappa,
    confusion,
    krippendorff_alpha,
    majority,
)

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "judge"
LABELS = st.sampled_from([0.0, 0.5, 1.0])

# Krippendorff 2011, §C: four observers, twelve units, missing ratings.
UNITS = [
    [1, 1, None, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [None, 5, 5, 5], [None, None, 1, 1],
    [None, None, 3, None],
]  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_gives_krippendorffs_own_example(metric, alpha):
    assert krippendorff_alpha(UNITS, metric) == pytest.approx(alpha, abs=6e-4)


def test_alpha_is_undefined_without_variation_or_pairs():
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert krippendorff_alpha([[1, None], [2, None]]) is None


def test_kappa_gives_the_textbook_value():
    # Fleiss, Levin & Paik, table 18.1 as counts.
    table = [[75, 1, 4], [5, 4, 1], [0, 0, 10]]
    assert cohen_kappa(table) == pytest.approx(0.676, abs=1e-3)


@given(st.lists(st.tuples(LABELS, LABELS), min_size=3, max_size=40))
def test_kappa_agrees_with_scikit_learn(pairs):
    metrics = pytest.importorskip("sklearn.metrics")
    a, b = [str(x) for x, _ in pairs], [str(y) for _, y in pairs]
    names = ["0.0", "0.5", "1.0"]
    table = confusion(a, b, names)
    for weights, theirs in (("none", None), ("linear", "linear"), ("quadratic", "quadratic")):
        mine = cohen_kappa(table, weights)
        if mine is not None:
            expected = metrics.cohen_kappa_score(a, b, labels=names, weights=theirs)
            assert mine == pytest.approx(expected, abs=1e-9)


@given(st.lists(LABELS, min_size=2, max_size=30))
def test_a_rater_agrees_with_itself(labels):
    found = agreement(labels, labels, weights="quadratic", resamples=200)
    assert found.raw == 1.0
    assert found.kappa in (1.0, None)
    assert found.raw_interval.low == found.raw_interval.high == 1.0


def test_the_interval_narrows_with_more_labels_and_holds_the_point():
    a, b = [1.0, 0.0, 1.0, 1.0, 0.0] * 4, [1.0, 0.0, 0.0, 1.0, 0.0] * 4
    few, many = agreement(a, b), agreement(a * 20, b * 20)
    assert few.kappa == pytest.approx(many.kappa)
    assert few.kappa_interval is not None
    assert many.kappa_interval is not None
    width = few.kappa_interval.high - few.kappa_interval.low
    assert many.kappa_interval.high - many.kappa_interval.low < width / 3
    assert many.kappa_interval.low < many.kappa < many.kappa_interval.high


def test_nothing_labelled_is_refused():
    with pytest.raises(ValueError, match="no labelled pairs"):
        agreement([], [])
    with pytest.raises(ValueError, match="no pairs"):
        confusion([1], [1, 2], [1, 2])


def test_the_majority_breaks_ties_by_the_middle():
    assert majority([0.0, 1.0, 1.0]) == 1.0
    assert majority([0.0, 0.5, 1.0]) == 0.5
    assert majority([0.0, 1.0]) == 0.0


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared folder is not beside this checkout")
def test_three_human_annotators_of_pandalm_agree_as_alpha_and_kappa_say():
    rows = json.loads((DATA / "pandalm" / "testset-v1.json").read_text())
    ratings = [[row[f"annotator{i}"] for i in (1, 2, 3)] for row in rows]
    pairs = [agreement([r[0] for r in ratings], [r[i] for r in ratings], resamples=500)
             for i in (1, 2)]  # fmt: skip
    alpha = krippendorff_alpha(ratings)
    assert alpha is not None
    assert all(p.n == 999 for p in pairs)
    # Nominal α of three raters lies among their pairwise κ, up to the small-sample correction.
    kappas = [p.kappa for p in pairs if p.kappa is not None]
    assert min(kappas) - 0.05 < alpha < max(kappas) + 0.05
    assert 0.6 < alpha < 0.95


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared folder is not beside this checkout")
def test_a_public_judge_reaches_its_published_accuracy():
    folder = DATA / "llmbar" / "Natural"
    rows = json.loads((folder / "GPT-4_Vanilla_result.json").read_text())
    published = json.loads((folder / "GPT-4_Vanilla_statistics.json").read_text())
    for swap in (False, True):
        mine = [float(row["results"][0][f"swap = {swap}"]["winner"]) for row in rows]
        found = agreement([float(row["label"]) for row in rows], mine, resamples=200)
        share = published[f"correct_{swap}"].split("=")[-1].strip().rstrip("%")
        assert 100 * found.raw == pytest.approx(float(share), abs=0.05)
