"""Diagnosis of very many failures: linear, near the cost of TF-IDF and SVD alone."""

import random
import time

import pytest
from threadpoolctl import threadpool_limits

from harness_cli.errors import UnknownName
from harness_cli.evolution import clusters
from harness_cli.evolution.diagnose import Material, Subject, diagnose
from harness_cli.evolution.failure import Failure, Observation, Seen


def failures(n):
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=5)) for _ in range(4_000)]
    for i in range(n):
        kind = draw.randrange(12)
        yield Failure(
            seen=Seen(
                item_id=f"i{i:06}",
                category="c",
                state="failed",
                comment=" ".join(draw.choices(words, k=8)) + f" topic{'abcdefghijkl'[kind]}",
            ),
            reply=" ".join(draw.choices(words, k=12)),
            observations=(Observation(kind="tool_not_called", detail=f"t{kind}", step=1),),
        )


@pytest.mark.accept
@pytest.mark.parametrize("kind", clusters.KINDS)
def test_fifty_thousand_failures_cost_at_most_twice_their_vectors(kind):
    found = tuple(failures(50_000))
    clusters.cluster(found[:40], kind)  # the imports
    with threadpool_limits(limits=1):  # as the diagnosis has it: idle threads spin, and count
        begin = time.process_time()
        clusters._vectors([clusters.tokens(f) for f in found])
        alone = time.process_time() - begin
    begin = time.process_time()
    material = Material(found, tuple(f.seen for f in found))
    made = diagnose(material, Subject("r", "h", "e"), vectors=kind)
    assert time.process_time() - begin <= 2 * alone
    assert sum(c.size for c in made.clusters) >= 45_000


def test_labels_of_large_groups_come_from_a_sample_and_still_name_the_topic():
    found = tuple(failures(6_000))
    made = diagnose(Material(found, tuple(f.seen for f in found)), Subject("r", "h", "e"))
    assert made.unexplained < 0.05
    named = [c for c in made.clusters if any(t.startswith("topic") for t in c.terms)]
    assert len(named) == len(made.clusters)


PARAPHRASES = (
    ["the parcel is cracked", "my package came broken", "box arrived damaged", "item smashed"],
    ["how much does it cost", "what is the price", "is it expensive", "cheap or dear"],
)


def test_words_that_mean_the_same_are_one_group_by_static_vectors():
    found = [
        Failure(
            seen=Seen(item_id=f"i{k}{n}{m}", category="c", state="failed", comment=text),
            observations=(Observation(kind="no_reply", step=m),),
        )
        for k, texts in enumerate(PARAPHRASES)
        for n, text in enumerate(texts)
        for m in range(2)
    ]
    groups, left = clusters.cluster(found, "static")
    assert sorted(i for g in groups for i in g) + left == list(range(16))
    apart = {frozenset(i // 8 for i in g) for g in groups}
    assert apart == {frozenset({0}), frozenset({1})}
    assert clusters.cluster(found, "static") == (groups, left), "the same each time"


def test_static_vectors_cost_in_proportion_to_the_failures():
    found = list(failures(4_000))
    clusters._static(found[:200])  # the imports, the tokenizer
    times = []
    for part in (found[:1_000], found):
        begin = time.process_time()
        clusters._static(part)
        times.append(time.process_time() - begin)
    assert times[1] < 12 * times[0], "four times the failures, quadratic would be sixteen"


def test_the_meaning_of_a_text_is_the_mean_of_its_token_vectors():
    texts = ["the parcel is cracked", "how much does it cost", "when will it arrive"]
    from harness_cli.evolution.word_sums import WordSums

    vectors = WordSums()
    sums = vectors.of(texts[0].split()).sum(axis=0)
    whole = vectors.embed(texts[:1])[0]
    assert sums / (sums**2).sum() ** 0.5 == pytest.approx(whole, abs=1e-3)


@pytest.mark.parametrize("kind", clusters.KINDS)
def test_failures_without_a_word_have_no_meaning_and_are_grouped_by_facts(kind):
    found = [
        Failure(
            seen=Seen(item_id=f"i{n}", category="c", state="failed", comment="?"),
            observations=(Observation(kind="no_reply" if n % 2 else "loop", step=1),),
        )
        for n in range(12)
    ]
    groups, left = clusters.cluster(found, kind)
    assert sorted([{i % 2 for i in g} for g in groups], key=min) == [{0}, {1}]
    assert not left


def test_an_unknown_kind_of_vectors_is_named():
    with pytest.raises(UnknownName, match="tf-idf"):
        clusters.kind_of("tf-idf")
    assert clusters.kind_of("static") == "static"
