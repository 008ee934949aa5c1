"""When to stop: METHODS §8 on the published record (TR Table 14) and on made-up ones."""

import msgspec
import pytest

from harness_cli.evolution.advice import Stage, advise, compare
from harness_cli.records.diagnosis import Cluster


def stage(name, accuracy, effectiveness, kind="evolution", **more):
    scores = {"accuracy": accuracy, "effectiveness": effectiveness}
    return Stage(name=name, kind=kind, scores=scores, n=482, **more)


def cluster(systematic, size=40, name="over-refusal"):
    return Cluster(
        id=name, label=name, size=size, share=size / 100, systematic=systematic, side="harness"
    )


REACT = stage("react", 0.8033, 0.8458, "baseline")
BASE = stage("base", 0.8240, 0.8716, "base")
ONE = stage("evolution-1", 0.9213, 0.8416)
TWO = stage("evolution-2", 0.9255, 0.9275)
THREE = stage("evolution-3", None, None, outcomes={"accuracy": "worse", "effectiveness": "worse"})
"""Table 14 gives no numbers for this row, only that both metrics regressed."""
FOUR = stage("evolution-4", 0.9151, 0.8996)
TABLE_14 = [REACT, BASE, ONE, TWO, THREE, FOUR]


def test_table_14_is_not_stopped_after_one_is_stopped_by_four_and_selects_two():
    after = {
        len(part): advise(part) for part in (TABLE_14[:3], TABLE_14[:4], TABLE_14[:5], TABLE_14)
    }
    assert after[3].action == "continue"
    assert after[6].action == "stop"
    assert after[6].selected == "evolution-2"
    assert after[5].selected == "evolution-2"


def test_table_14_with_its_own_diagnoses_stops_where_the_report_stopped():
    one = msgspec.structs.replace(ONE, clusters=(cluster(True),))
    two = msgspec.structs.replace(TWO, clusters=(cluster(False, 4, "a"), cluster(False, 3, "b")))
    assert advise([REACT, BASE, one]).action == "continue"
    stopped = advise([REACT, BASE, one, two])
    assert (stopped.action, stopped.selected) == ("stop", "evolution-2")
    assert any(reason.startswith("(a)") for reason in stopped.reasons)


def test_a_stage_that_buys_one_metric_with_another_does_not_pass():
    traded = stage("evolution-1", 0.95, 0.70)
    made = advise([BASE, traded, stage("evolution-2", 0.96, 0.70)])
    assert made.selected == "base"
    assert made.action == "stop"
    assert all(j.traded for j in made.stages[1:])


def test_two_idle_stages_in_a_row_are_needed_and_named():
    idle = [stage(f"evolution-{i}", 0.8240, 0.8716) for i in (1, 2)]
    assert advise([BASE, idle[0]]).action == "continue"
    assert advise([BASE, *idle]).action == "stop"
    assert "evolution-1" in advise([BASE, *idle]).reasons[0]
    assert advise([BASE, *idle], k=3).action == "continue"


def test_an_improving_stage_between_idle_ones_lets_the_loop_go_on():
    better = stage("evolution-2", 0.93, 0.93)
    assert advise([BASE, stage("evolution-1", 0.82, 0.87), better]).action == "continue"


def test_without_stages_the_clusters_alone_decide():
    assert advise([], clusters=[cluster(True)]).action == "continue"
    assert advise([], clusters=[cluster(False)]).action == "stop"
    assert advise([]).selected is None


@pytest.mark.parametrize(
    ("new", "old", "n", "outcome"),
    [
        (0.93, 0.87, 482, "better"),
        (0.84, 0.87, 482, "same"),
        (0.80, 0.87, 482, "worse"),
        (0.84, 0.87, None, "worse"),
        (None, 0.87, 482, "unknown"),
    ],
)
def test_means_are_told_apart_only_beyond_noise(new, old, n, outcome):
    assert compare(new, old, n, n) == outcome
