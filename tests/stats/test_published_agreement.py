"""Real human labels: published κ and accuracies come out, under each way to count invalid verdicts.

PandaLM (999 pairs, three annotators): κ between annotators as its README prints them, accuracy and
macro scores of two judges as its `data/compute_metrics.py` prints them, where garbage counts as a
tie. LLMBar Natural (100 pairs): every number of its `statistics.json`, where an invalid winner is
wrong for the accuracies, and where κ reads everything but "1" as 0, the winner "2" included.
"""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from harness_cli.stats.agreement import agreement, krippendorff_alpha, macro_scores, majority

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "judge"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the shared folder is not beside this checkout"
)
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
KAPPAS = {(1, 2): 0.85, (1, 3): 0.88, (2, 3): 0.86}
TIE = 0.0


def read(name):
    return json.loads((DATA / name).read_text())


def ratings():
    return [[float(row[a]) for a in ANNOTATORS] for row in read("pandalm/testset-v1.json")]


def verdict(said):
    """A PandaLM verdict: 1, 2, a tie, or None for what the file calls garbage."""
    if said == "garbage":
        return None
    return TIE if said == "Tie" else float(said)


def verdicts(judge):
    file, field = {
        "gpt-3.5": ("gpt-3.5-turbo-testset-v1.json", "gpt_result"),
        "pandalm-7b": ("pandalm-7b-testset-v1.json", "pandalm_result"),
    }[judge]
    return [verdict(row[field]) for row in read(f"pandalm/{file}")]


@pytest.mark.parametrize("pair", list(combinations((1, 2, 3), 2)))
def test_the_annotators_of_pandalm_agree_as_its_readme_prints(pair):
    first, second = ([r[i - 1] for r in ratings()] for i in pair)
    found = agreement(first, second, resamples=500)
    assert round(found.kappa, 2) == KAPPAS[pair]
    assert found.kappa_interval.low < KAPPAS[pair] < found.kappa_interval.high


def test_the_majority_has_the_published_distribution_and_alpha_lies_among_the_kappas():
    counts = Counter(majority(r) for r in ratings())
    assert counts == {0.0: 105, 1.0: 422, 2.0: 472}
    assert min(KAPPAS.values()) < krippendorff_alpha(ratings()) < max(KAPPAS.values())


# `compute_metrics.py` of PandaLM prints: accuracy, macro precision, recall, F1; garbage is a tie.
PUBLISHED = {
    "gpt-3.5": (0.7107, 0.5879, 0.5736, 0.5755),
    "pandalm-7b": (0.6677, 0.5738, 0.5750, 0.5743),
}


@pytest.mark.parametrize("judge", PUBLISHED)
def test_judges_of_pandalm_reach_what_its_script_prints(judge):
    reference = [majority(r) for r in ratings()]
    found = agreement(reference, verdicts(judge), invalid=TIE, resamples=200)
    macro = macro_scores(found)
    mine = (found.raw, macro.precision, macro.recall, macro.f1)
    assert tuple(round(x, 4) for x in mine) == PUBLISHED[judge]


def test_garbage_counts_as_it_is_told_to():
    reference, given = [majority(r) for r in ratings()], verdicts("gpt-3.5")
    assert given.count(None) == 25
    wrong = agreement(reference, given, invalid="wrong", resamples=200)
    drop = agreement(reference, given, invalid="drop", resamples=200)
    tie = agreement(reference, given, invalid=TIE, resamples=200)
    assert (wrong.n, drop.n, tie.n) == (999, 974, 999)
    assert (sum(wrong.invalid), drop.invalid, tie.invalid) == (25, (), ())
    assert [round(100 * x.raw, 2) for x in (wrong, drop, tie)] == [69.77, 71.56, 71.07]
    assert [round(x.kappa, 3) for x in (wrong, drop, tie)] == [0.476, 0.493, 0.496]
    assert wrong.raw * 999 == pytest.approx(drop.raw * 974)


def test_the_ratio_of_pandalms_readme_does_not_come_out_of_its_files():
    """Its README states 93.75 % of GPT-3.5's F1; its own files and script give 99.8 %."""
    ratio = PUBLISHED["pandalm-7b"][3] / PUBLISHED["gpt-3.5"][3]
    assert ratio == pytest.approx(0.998, abs=0.001)


JUDGES = ("ChatGPT_Vanilla", "ChatGPT_Swap", "GPT-4_Vanilla", "GPT-4_Swap")


def winners(judge, swap):
    rows = read(f"llmbar/Natural/{judge}_result.json")
    given = [row["results"][-1][f"swap = {swap}"]["winner"] for row in rows]
    return [float(r["label"]) for r in rows], [float(w) if w in ("1", "2") else None for w in given]


def as_their_script_reads(given):
    """Only "1" stays; "2" and what is no winner become 0."""
    return [1.0 if w == 1 else 0.0 for w in given]


@pytest.mark.parametrize("judge", JUDGES)
def test_every_number_of_llmbars_statistics_comes_out(judge):
    published = read(f"llmbar/Natural/{judge}_statistics.json")
    shares, kappas = {}, {}
    for swap in (False, True):
        label, given = winners(judge, swap)
        shares[swap] = agreement(label, given, resamples=200).raw
        assert published[f"correct_{swap}"].endswith(f"= {100 * shares[swap]:.1f}%")
        theirs = agreement(label, as_their_script_reads(given), labels=(0, 1, 2), resamples=200)
        kappas[swap] = theirs.kappa
        assert theirs.kappa == pytest.approx(published[f"kappa_{swap}"], abs=1e-12)
    assert published["correct_average"] == f"{50 * sum(shares.values()):.1f}%"
    assert published["kappa_average"] == pytest.approx(sum(kappas.values()) / 2, abs=1e-12)
    (label, one), (_, two) = winners(judge, False), winners(judge, True)
    both = sum(a == b == c for a, b, c in zip(label, one, two, strict=True))
    assert published["correct_both"].startswith(f"{both} / 100")
    alike = agreement(one, two, resamples=200)
    assert published["equal"].endswith(f"= {100 * alike.raw:.1f}%")
    first, second = as_their_script_reads(one), as_their_script_reads(two)
    swapped = agreement(first, second, labels=(0, 1, 2), resamples=200).kappa
    assert published["kappa_agreement"] == pytest.approx(swapped, abs=1e-12)


def test_kappa_over_the_two_winners_is_far_above_the_published_one():
    """Their κ compares {0, 1} with {1, 2}; over the labels that there are, GPT-4 reaches 0.90."""
    label, given = winners("GPT-4_Vanilla", False)
    assert agreement(label, given, resamples=200).kappa == pytest.approx(0.898, abs=1e-3)
