"""The order in which tasks are taken: TRL's, but that none is left out and a job goes on in it."""

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training_shop import make_project, opd
from trl.trainer.utils import RepeatSampler

from harness_cli.errors import Interrupted
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.opd_job import run_opd
from harness_cli.training.task_order import TaskOrder


def epochs(tasks, each, count, **more):
    """The order of `count` epochs, as a trainer reads them."""
    made = [0]
    order = TaskOrder(tasks, each=each, done=lambda: made[0], **more)
    found = []
    for _ in range(count):
        read = list(order)
        assert len(read) == len(order)
        found.append(read)
        made[0] += order.iterations
    return found


def test_it_is_trls_own_order_where_that_leaves_nothing_out():
    theirs = RepeatSampler(
        list(range(12)), mini_repeat_count=3, batch_size=4, repeat_count=2, seed=7
    )
    assert epochs(12, 4, 3, copies=3, repeats=2, seed=7) == [list(theirs) for _ in range(3)]


def test_trl_leaves_out_what_is_no_whole_batch_and_this_does_not():
    theirs = RepeatSampler(list(range(7)), 1, batch_size=3, seed=7)
    assert len(set(theirs)) == 6
    (ours,) = epochs(7, 3, 1, seed=7)
    assert set(ours) == set(range(7))
    theirs = list(RepeatSampler(list(range(7)), 1, batch_size=3, seed=7))
    assert ours[:6] == theirs


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 5), st.integers(0, 9))
def test_every_task_comes_once_before_any_comes_again(tasks, each, count, seed):
    read = list(chain.from_iterable(epochs(tasks, each, count, seed=seed)))
    taken = [read[at : at + each] for at in range(0, len(read), each)]
    seen = Counter()
    for iteration in taken:
        seen.update(iteration)
        if tasks >= each:
            assert len(set(iteration)) == each, "a group would be two"
        assert max(seen.values()) - min(seen[task] for task in range(tasks)) <= 1 + each // tasks


def test_a_job_that_goes_on_in_a_later_epoch_reads_that_one():
    whole = epochs(7, 3, 4, seed=5)
    for done in (3, 4, 5):  # epochs have three iterations
        assert list(TaskOrder(7, each=3, seed=5, done=lambda: done)) == whole[1]  # noqa: B023
    assert whole[0] != whole[1]


@pytest.mark.parametrize("prompts", [6, 7])
def test_a_distillation_stopped_in_its_second_epoch_goes_on_to_the_same_curve(tmp_path, prompts):
    import signal

    shop = make_project(tmp_path / "shop")
    lines = (shop.root / "prompts.jsonl").read_text().splitlines()[:prompts]
    (shop.root / "prompts.jsonl").write_text("\n".join(lines) + "\n")
    given = {"batch": 3, "steps": 5, "save_every": 1, "new_tokens": 4}

    def observe(running, values):
        if running.state.step == 4:
            signal.raise_signal(signal.SIGTERM)

    run_opd(shop, opd("through", **given))
    with pytest.raises(Interrupted):
        run_opd(shop, opd("stopped", **given), observe=observe)
    run_opd(shop, opd("stopped", **given), resume=True)
    one, two = (
        [line["loss"] for line in JobFolder.of(shop.root, name).curve()]
        for name in ("through", "stopped")
    )
    assert len(one) == 5
    assert two == pytest.approx(one, abs=1e-6)
